"""Makes torchvision importable next to a CPU build of torch.

The registry's torchvision is compiled for CUDA. Beside a CPU torch its compiled operators do not
load, and its import then fails while registering shape functions for two of them. Declaring those
two, without implementing them, is all that data sets, transforms and timm need.
"""

from __future__ import annotations

import functools

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


@functools.cache
def prepare_torchvision() -> None:
    """Import torchvision, declaring its missing operators first where the import needs it."""
    try:
        import torchvision
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
        _declare_operators()
        import torchvision  # noqa: F401


@functools.cache
def _declare_operators() -> object:
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for schema in _SCHEMAS:
        library.define(schema)  # type: ignore[no-untyped-call]
    return library  # kept by the cache: the declarations live as long as this object
