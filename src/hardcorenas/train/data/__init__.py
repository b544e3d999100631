"""Labelled pictures for training: loading, splitting, augmenting, batching.

`load_data` turns a name or a folder into an `ImageData`: pictures to train weights on, pictures
held out for the search, and pictures to test with. `training_batches` and `evaluation_batches` turn
those into tensors, reproducibly to the bit.
"""

from hardcorenas.train.data.batches import (
    Augmentation,
    Normalise,
    evaluation_batches,
    num_batches,
    training_batches,
)
from hardcorenas.train.data.loading import ImageData, load_data
from hardcorenas.train.data.pictures import ArrayPictures, FilePictures, Pictures

__all__ = [
    "ArrayPictures",
    "Augmentation",
    "FilePictures",
    "ImageData",
    "Normalise",
    "Pictures",
    "evaluation_batches",
    "load_data",
    "num_batches",
    "training_batches",
]
