"""Makes the sample of Fashion-MNIST that comes with the package, the same bytes every time.

From every class 600 of the 6,000 training images, chosen by seed 0, and all test images: with fewer
the error of an accuracy would hide how networks differ.
Run: python tools/make_fashion_sample.py FOLDER, which has the four idx.gz files.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from hardcorenas.train.data.chance import Use, permutation
from hardcorenas.train.data.named import SETS, Arrays, read_fashion


def chosen(labels, num_each):
    """Return rising indices of ``num_each`` images of every class."""
    order = permutation(Use.SAMPLE, 0, length=len(labels))
    rows = [order[labels[order] == label][:num_each] for label in np.unique(labels)]
    return np.sort(np.concatenate(rows))


def main():
    """Write the sample next to the code that reads it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    whole = read_fashion(parser.parse_args().folder)
    SETS["fashion-mnist"].check(whole)
    sample = SETS["fashion-mnist-sample"]
    train = chosen(whole.train_labels, 600)
    arrays = Arrays(whole.train[train], whole.train_labels[train], whole.test, whole.test_labels)
    sample.write(arrays, np.savez_compressed)
    print(f"written: {sample.path} ({sample.path.stat().st_size / 1e6:.2f} MB)")


if __name__ == "__main__":
    main()
