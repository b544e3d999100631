"""Labelled images for training: loading, splitting, augmenting, batching.

`load_data` turns a name or a folder into an `ImageData`: images to train weights on, images
held out for the search, and images to test with. `training_batches` and `evaluation_batches` turn
those into tensors, reproducibly to the bit.
"""

from hardcorenas.train.data.batches import (
    BatchPlan,
    Normalise,
    evaluation_batches,
    num_batches,
    training_batches,
)
from hardcorenas.train.data.images import ArrayImages, FileImages, Images
from hardcorenas.train.data.loading import ImageData, load_data, resized

__all__ = [
    "ArrayImages",
    "BatchPlan",
    "FileImages",
    "ImageData",
    "Images",
    "Normalise",
    "evaluation_batches",
    "load_data",
    "num_batches",
    "resized",
    "training_batches",
]
