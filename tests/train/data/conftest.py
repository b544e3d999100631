"""Folders of small images, each file different from every other."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def make_folder(tmp_path):
    """Return a function that makes ``tmp_path/images`` from {class path: number of files}."""

    def make(counts, *, size=(40, 30), suffix=".png", root=None):
        root = root or tmp_path / "pictures"
        generator = np.random.default_rng(sum(counts.values()))
        for name, count in counts.items():
            (root / name).mkdir(parents=True, exist_ok=True)
            for number in range(count):
                pixels = generator.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
                Image.fromarray(pixels).save(root / name / f"{number:03}{suffix}")
        return root

    return make
