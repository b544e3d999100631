"""The plots of a report, each from plain data; colours of text and grid are the page's."""
