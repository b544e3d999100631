"""A report taken apart: its elements, the words of its sections, its plots."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from importlib.resources import files

LIBRARY = "plotly-cartesian.min.js"
SECTIONS = (
    "certificate",
    "curve",
    "network",
    "search",
    "probabilities",
    "prediction",
    "training",
    "time",
    "configuration",
)
_VOID = {"meta", "input", "br", "img", "link"}


class Page(HTMLParser):
    """What a page is made of, plotly's own code aside.

    Attributes:
        own: The text of the page without the library.
        elements: Every element's tag and attributes.
        words: The words of each section, by its id.
        plots: What is drawn, by place.
        places: The places of plots in each section.
        inside: The attributes of the elements in each section.
    """

    def __init__(self, text):
        super().__init__()
        library = files("hardcorenas.report").joinpath("vendor", LIBRARY).read_text("utf-8")
        assert text.count(library) == 1
        self.own = text.replace(library, "")
        self.elements, self.words, self.places, self.inside = [], {}, {}, {}
        self._open = []
        self._script = None
        self._scripts = {}
        self.feed(self.own)
        self.close()
        assert self._open == []
        self.plots = json.loads(self._scripts["plots"])

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.elements.append((tag, known))
        if tag not in _VOID:
            self._open.append((tag, known.get("id")))
        if tag == "script":
            self._script = known.get("id")
        section = self._section
        if section is not None:
            self.words.setdefault(section, "")
            self.places.setdefault(section, [])
            self.inside.setdefault(section, []).append(known)
            if "data-plot" in known:
                self.places[section].append(known["data-plot"])

    def handle_endtag(self, tag):
        opened, _ = self._open.pop()
        assert opened == tag
        self._script = None

    def handle_data(self, data):
        if self._open and self._open[-1][0] == "script":
            self._scripts[self._script] = data
        elif self._section is not None:
            self.words[self._section] += data

    @property
    def _section(self):
        return next((name for tag, name in reversed(self._open) if tag == "section"), None)

    def said(self, section):
        """The words of a section, with single blanks."""
        return re.sub(r"\s+", " ", self.words[section])

    def plots_of(self, section):
        """The plots of a section, in their order."""
        return [self.plots[place] for place in self.places[section]]

    def texts(self):
        """Yield every text that plots are made of."""
        yield from _texts(self.plots)


def _texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
