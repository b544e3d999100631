"""A supernet that has been trained: its weights, its images, how it was made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hardcorenas import files
from hardcorenas.errors import (
    ArtifactError,
    DataError,
    HardcorenasError,
)
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.networks.build import Network, build, channels_last
from hardcorenas.space import Architecture, SearchSpace
from hardcorenas.supernet.model import Supernet
from hardcorenas.train.data import load_data
from hardcorenas.train.recipe import Recipe

if TYPE_CHECKING:
    from hardcorenas.files import Json
    from hardcorenas.train.data import ImageData
    from hardcorenas.train.data.decoding import Progress

Model = TypeVar("Model", Supernet, Network)


@dataclass(frozen=True)
class TrainedSupernet:
    """A finished training of a supernet.

    Attributes:
        folder: Where it is kept.
        space: What can be built, with the number of classes of the data.
        recipe: How it was trained.
        seed: What decided all that was random.
        description: All that the folder says of the run.
    """

    folder: Path
    space: SearchSpace
    recipe: Recipe
    seed: int
    description: Json

    @classmethod
    def open(cls, folder: str | Path) -> TrainedSupernet:
        """Read what a run is of; its weights and images are read when asked for."""
        run = RunFolder(Path(folder))
        if not run.description.exists():
            raise ArtifactError(
                f"{folder}: holds no supernet; train one with: hardcorenas train --folder {folder}"
            )
        if not run.weights("supernet").exists():
            raise ArtifactError(
                f"{folder}: its supernet is not trained to its end; go on with: "
                f"hardcorenas train … --folder {folder} --resume"
            )
        description = run.read_description()
        try:
            num_classes = len(description["data"]["classes"])
            space = SearchSpace.from_dict(description["space"] | {"num_classes": num_classes})
            recipe = Recipe(**description["recipe"])
            return cls(Path(folder), space, recipe, int(description["seed"]), description)
        except (KeyError, TypeError, ValueError) as error:  # of spaces and recipes too
            reason = f"is not what training wrote ({error})"
            raise ArtifactError(f"{run.description}: {reason}") from None

    def supernet(self) -> Supernet:
        """Return the supernet with w*, in evaluation mode."""
        return self._with_weights(Supernet(self.space), "supernet")

    def heaviest(self) -> Network:
        """Return the heaviest network with w̄*, in evaluation mode."""
        network = self._with_weights(build(self.space, self.space.heaviest), "heaviest")
        return channels_last(network)

    def finetuned(self, architecture: Architecture, folder: Path) -> Network:
        """Return a network that was fine-tuned in a folder, in evaluation mode."""
        network = build(self.space, Architecture(self.space, architecture.stages))
        return self._with_weights(network, "network", folder)

    def data(self, source: str | None = None, progress: Progress | None = None) -> ImageData:
        """Return the images, split as they were for the training.

        Args:
            source: A folder, where it is not where it was.
            progress: Told how far it is.
        """
        known = self.description
        try:
            data = load_data(
                source or known["source"],
                resolution=self.space.resolution,
                channels=self.space.input_channels,
                seed=self.seed,
                heldout_share=known["heldout_share"],
                store=RunFolder(self.folder).data,
                progress=progress,
            )
            same = (data.fingerprint, data.split) == (known["data"]["fingerprint"], known["split"])
        except KeyError as error:
            raise ArtifactError(f"{self.folder}: its run.json says nothing of {error}") from None
        except DataError as error:
            if source is None and not Path(known["source"]).exists():
                raise DataError(f"{error}; say where its images are with --data") from None
            raise
        if not same:
            raise HardcorenasError(
                f"{source or known['source']}: is not the set of images that {self.folder} was "
                f"trained on; its files or their order have changed"
            )
        return data

    def digest(self) -> str:
        """Return what tells this model's weights from all others."""
        return files.digest(RunFolder(self.folder).weights("supernet"))

    def _with_weights(self, model: Model, name: str, folder: Path | None = None) -> Model:
        folder = folder or self.folder
        weights = RunFolder(folder).load_weights(name)
        try:
            model.load_state_dict(weights)
        except RuntimeError as error:
            first = str(error).strip().splitlines()[-1].strip()
            raise ArtifactError(
                f"{RunFolder(folder).weights(name)}: does not hold the weights of what "
                f"{self.folder} is of ({first})"
            ) from None
        model.eval()
        return model
