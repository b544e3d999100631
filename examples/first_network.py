"""Name an architecture, know its exact size, build it, export it, and check what was exported.

Run: python examples/first_network.py
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import torch

import hardcorenas as hc

# A space is a declaration: presets by name, your own from a TOML file.
space = hc.SearchSpace.preset("mobile").replace(num_classes=37)

# What everything costs, by choice. Tables hold exact integers.
macs, params, memory = (hc.count(space, resource) for resource in ("macs", "params", "memory"))
limit = 250_000_000
print(f"MACs in this space: {macs.cost(space.lightest):,} to {macs.cost(space.heaviest):,}")

# The largest of some random networks that keeps a limit.
rng = np.random.default_rng(seed=0)
fitting = [a for a in (space.sample(rng) for _ in range(200)) if macs.cost(a) <= limit]
architecture = max(fitting, key=macs.cost)
print(f"{len(fitting)} of 200 random networks have at most {limit:,} MACs; the largest of them:")
print(f"  {architecture}")
print(f"  {macs.cost(architecture):,} MACs, {params.cost(architecture):,} parameters, ", end="")
print(f"{memory.cost(architecture):,} bytes of activations at its peak")

# Build it: a plain torch module.
network = hc.build(space, architecture).eval()
assert sum(p.numel() for p in network.parameters()) == params.cost(architecture)

# Export it and see that the file says what the module says.
images = torch.randn(1, 3, space.resolution, space.resolution)
with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # the exporter's own
    path = Path(folder) / "network.onnx"
    torch.onnx.export(network, (images,), str(path), input_names=["images"], dynamo=False)
    session = onnxruntime.InferenceSession(path)
    (logits,) = session.run(None, {"images": images.numpy()})
    largest = np.abs(logits - network(images).detach().numpy()).max()
    print(f"Exported to ONNX ({path.stat().st_size:,} bytes); ", end="")
    print(f"largest difference from PyTorch: {largest:.1e}")
