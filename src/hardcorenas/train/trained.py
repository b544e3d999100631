"""A supernet that has been trained: its weights, its images, how it was made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hardcorenas import files
from hardcorenas.artifacts import FinetunedFile, FinetuneRunFile, RunFile, SupernetFile
from hardcorenas.errors import ArtifactError, DataError, HardcorenasError, shown
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.networks.build import Network, build, channels_last
from hardcorenas.networks.saved_network import Card
from hardcorenas.space import Architecture, SearchSpace
from hardcorenas.supernet.model import Supernet
from hardcorenas.train.data import ImageData, load_data, resized
from hardcorenas.train.recipe import Recipe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hardcorenas.files import Json
    from hardcorenas.train.data.images import Progress

Model = TypeVar("Model", Supernet, Network)


def training_inputs(run: RunFile) -> Json:
    """Return what decides the training of a supernet; where its images are does not."""
    return {field: value for field, value in run.to_dict().items() if field != "source"}


@dataclass(frozen=True)
class TrainedSupernet:
    """A finished training of a supernet.

    Attributes:
        folder: Where it is kept.
        space: What can be built, with the number of classes of the data; see `at`.
        recipe: How it was trained.
        run: All that is written down of what it is of.
        made: The digests of its weights.
    """

    folder: Path
    space: SearchSpace
    recipe: Recipe
    run: RunFile
    made: SupernetFile

    @classmethod
    def open(cls, folder: str | Path) -> TrainedSupernet:
        """Read what a run is of; its weights and images are read when asked for."""
        place = RunFolder(Path(folder))
        if not place.description.exists():
            raise ArtifactError(
                f"{folder}: holds no supernet; train one with: hardcorenas train --folder {folder}"
            )
        run, made = RunFile.load(place.description), SupernetFile.load_if_there(place.supernet)
        if made is None:
            raise ArtifactError(
                f"{folder}: its supernet is not trained to its end; go on with: "
                f"hardcorenas train … --folder {folder} --resume"
            )
        if made.inputs != files.digest_of(training_inputs(run)):
            raise ArtifactError(
                f"{place.supernet}: is of another training than {place.description.name} beside it"
            )
        try:
            return cls(Path(folder), _trained_space(run), Recipe(**run.recipe), run, made)
        except (TypeError, ValueError) as error:  # of spaces and recipes too
            raise ArtifactError(
                f"{place.description}: is not what training wrote ({error})"
            ) from None

    def at(self, resolution: int) -> TrainedSupernet:
        """Return the same supernet with the space and the images of one of its resolutions."""
        return replace(self, space=self.space.at(resolution))

    def seen_by(self, space: SearchSpace) -> TrainedSupernet:
        """Return it at the resolution of a network's space, where it was trained on several."""
        if not self.space.resolutions:
            return self
        space.require_one_resolution()
        return self.at(space.resolution)

    @property
    def has_several(self) -> bool:
        """Whether it was trained on several resolutions, of which this may be one."""
        return bool(_trained_space(self.run).resolutions)

    @property
    def is_resized(self) -> bool:
        """Whether images are smaller than those that the statistics of its batch norms are of."""
        return self.space.resolution != _trained_space(self.run).resolution

    @property
    def seed(self) -> int:
        """What decided all that was random."""
        return self.run.seed

    @property
    def digest(self) -> str:
        """What tells this supernet's weights from all others."""
        return self.made.files.get("supernet.safetensors", "")

    def supernet(self) -> Supernet:
        """Return the supernet with w*, in evaluation mode."""
        return with_weights(Supernet(self.space), "supernet", self.folder, self.made.files)

    def heaviest(self) -> Network:
        """Return the heaviest network with w̄*, in evaluation mode."""
        # Which it is may differ from one resolution to the next.
        stages = _trained_space(self.run).heaviest.stages
        network = build(self.space, Architecture(self.space, stages))
        return channels_last(with_weights(network, "heaviest", self.folder, self.made.files))

    def finetuned(self, folder: Path, expected: Architecture | None = None) -> Network:
        """Return the network that was fine-tuned in a folder, in evaluation mode.

        Args:
            folder: Of the fine-tuning.
            expected: Which network it has to be; None for any.
        """
        architecture, made = self._finetuned(folder)
        if expected is not None and made.architecture != str(expected):
            raise ArtifactError(
                f"{RunFolder(folder).finetuned}: is of another network, "
                f"{shown(made.architecture)}; expected {shown(str(expected))}"
            )
        return with_weights(build(architecture.space, architecture), "network", folder, made.files)

    def finetuned_architecture(self, folder: Path) -> Architecture:
        """Return which network was fine-tuned in a folder."""
        return self._finetuned(folder)[0]

    def _finetuned(self, folder: Path) -> tuple[Architecture, FinetunedFile]:
        place = RunFolder(folder)
        made = FinetunedFile.load_if_there(place.finetuned)
        if made is None:
            raise ArtifactError(
                f"{folder}: holds no fine-tuned network; train it with: hardcorenas finetune"
            )
        side = FinetuneRunFile.load(place.description).resolution if self.has_several else None
        space = self.space if side is None else self.space.at(side)
        return Architecture.parse(space, made.architecture), made

    def card(self, architecture: Architecture) -> Card:
        """Return what one has to know to use a network of this supernet."""
        network = Architecture(self.seen_by(architecture.space).space, architecture.stages)
        return Card(network, self.run.data.classes, self.run.data.mean, self.run.data.std)

    def data(self, source: str | None = None, progress: Progress | None = None) -> ImageData:
        """Return the images, split as they were for the training.

        Args:
            source: A folder, where it is not where it was.
            progress: Told how far it is.
        """
        try:
            data = load_data(
                source or self.run.source,
                resolution=_trained_space(self.run).resolution,
                channels=self.space.input_channels,
                seed=self.seed,
                heldout_share=self.run.heldout_share,
                store=RunFolder(self.folder).decoded,
                progress=progress,
            )
        except DataError as error:
            if source is None and not Path(self.run.source).exists():
                raise DataError(f"{error}; say where its images are with --data") from None
            raise
        if (data.fingerprint, data.split) != (self.run.data.fingerprint, self.run.split):
            raise HardcorenasError(
                f"{source or self.run.source}: is not the set of images that {self.folder} was "
                f"trained on; its files or their order have changed"
            )
        data = replace(data, mean=self.run.data.mean, std=self.run.data.std)
        return resized(data, self.space.resolution)


def _trained_space(run: RunFile) -> SearchSpace:
    return SearchSpace.from_dict(run.space | {"num_classes": len(run.data.classes)})


def with_weights(model: Model, name: str, folder: Path, digests: Mapping[str, str]) -> Model:
    """Return a model with the weights of a file of a folder, in evaluation mode."""
    place = RunFolder(folder)
    place.load_weights_(model, name, digests.get(place.weights(name).name))
    model.eval()
    return model
