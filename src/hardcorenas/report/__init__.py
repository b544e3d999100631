"""The files of runs, turned into one HTML page that needs nothing else; no torch."""
