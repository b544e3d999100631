"""``python -m hardcorenas``: the command line."""

from hardcorenas.cli import main

if __name__ == "__main__":
    main()
