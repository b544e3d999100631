"""Use an exported network without this package: only numpy, Pillow and ONNX Runtime.

Run: python examples/classify.py NETWORK.onnx PICTURE [PICTURE ...]
"""

from __future__ import annotations

import json
import sys

import numpy as np
import onnxruntime
from PIL import Image


def main(model: str, files: list[str]) -> None:
    """Print the most probable class of each image."""
    session = onnxruntime.InferenceSession(model)
    (given,) = session.get_inputs()
    batch, channels, side, _ = given.shape
    # Every file carries what one has to know to use it.
    card = json.loads(session.get_modelmeta().custom_metadata_map["hardcorenas.card"])
    mean, std = (np.array(card[name], np.float32).reshape(-1, 1, 1) for name in ("mean", "std"))
    for file in files:
        with Image.open(file) as image:
            # Networks see the middle square; of larger images its inner seven eighths.
            square = min(image.size) * (1 if side <= 40 else side / round(side * 8 / 7))
            left, top = ((length - square) / 2 for length in image.size)
            pixels = np.asarray(
                image.convert("L" if channels == 1 else "RGB").resize(
                    (side, side),
                    Image.Resampling.BILINEAR,
                    (left, top, left + square, top + square),
                ),
                np.float32,
            )
        prepared = (pixels.reshape(side, side, channels).transpose(2, 0, 1) / 255 - mean) / std
        (logits,) = session.run(None, {given.name: np.stack([prepared] * batch)})
        odds = np.exp(logits[0] - logits[0].max())
        best = int(odds.argmax())
        print(f"{file}: {card['classes'][best]} ({odds[best] / odds.sum():.0%})")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("expected a network and one or more images; see the first lines of this file")
    main(sys.argv[1], sys.argv[2:])
