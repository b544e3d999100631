"""Changes of a run's folder that tests make behind its back."""

from __future__ import annotations

import json

from hardcorenas import files
from hardcorenas.artifacts import RunFile, SupernetFile
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.jobs.step import digests
from hardcorenas.train.trained import training_inputs


def change(folder, **fields):
    """Change what run.json says, without its digest; None takes a field away."""
    path = RunFolder(folder).description
    described = json.loads(path.read_text())
    described.pop("digest", None)
    described.update(fields)
    path.write_text(json.dumps({name: v for name, v in described.items() if v is not None}))


def rewrite(folder, **fields):
    """Make a finished training one of other fields, and of the weights that are there now."""
    change(folder, **fields)
    place = RunFolder(folder)
    before = SupernetFile.load(place.supernet)
    inputs = files.digest_of(training_inputs(RunFile.load(place.description)))
    named = digests(place.path, *before.files)
    SupernetFile(inputs=inputs, files=named, seconds=before.seconds).save(place.supernet)


def flip_a_bit(path):
    """Spoil a file in its middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
