"""What training writes down can be read again: JSON lines, and TensorBoard by its own reader."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from hardcorenas.artifacts import Moment
from hardcorenas.errors import ArtifactError
from hardcorenas.train.training_run import TrainingLog

pytestmark = pytest.mark.slow


def moment(step, **facts):
    return Moment(
        phase="paths", step=step, steps=40, epoch=1, epochs=4, seconds=1.5 * step, **facts
    )


def steps(path):
    return [json.loads(line)["step"] for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def places(tmp_path):
    return tmp_path / "training.jsonl", tmp_path / "tensorboard"


def test_a_line_is_a_moment(places):
    log = TrainingLog(*places, resumed_at=0, judged_again=False)
    told = moment(10, loss=2.5, learning_rate=0.1, images_per_second=99.0)
    log.write(told)
    log.close()
    assert Moment(**json.loads(places[0].read_text(encoding="utf-8"))) == told


def test_tensorboard_reads_the_same(places):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = TrainingLog(*places, resumed_at=0, judged_again=False)
    log.write(moment(10, loss=2.5, learning_rate=0.1, images_per_second=99.0))
    log.write(moment(20, loss=2.0, learning_rate=0.05, images_per_second=98.0))
    log.write(moment(20, accuracies={"lightest": 0.5}))
    log.close()
    events = EventAccumulator(str(places[1]))
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("training/loss")] == [(10, 2.5), (20, 2.0)]
    assert [(e.step, e.value) for e in events.Scalars("accuracy/lightest")] == [(20, 0.5)]


def test_both_phases_are_one_curve(places):
    """Their steps are counted on, so that TensorBoard shows them in one chart."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = TrainingLog(*places, resumed_at=0, judged_again=False)
    for phase, step in (("heaviest", 10), ("heaviest", 20), ("paths", 30)):
        log.write(replace(moment(step, loss=step / 4, learning_rate=0.5), phase=phase))
        log.write(replace(moment(step, accuracies={"heaviest": step / 80}), phase=phase))
    log.close()
    events = EventAccumulator(str(places[1]))
    events.Reload()
    tags = {"training/loss", "training/learning rate", "accuracy/heaviest"}
    assert set(events.Tags()["scalars"]) == tags
    steps_and_values = [(e.step, e.value) for e in events.Scalars("training/loss")]
    assert steps_and_values == [(10, 2.5), (20, 5.0), (30, 7.5)]


def test_what_was_written_beyond_a_checkpoint_is_taken_back(places):
    log = TrainingLog(*places, resumed_at=0, judged_again=False)
    for step in (10, 20, 30):
        log.write(moment(step, loss=1.0))
    log.write(moment(20, accuracies={"lightest": 0.5}))  # judged after the state was saved
    log.close()
    with places[0].open("a", encoding="utf-8") as file:
        file.write('{"phase": "paths", "step": 3')  # torn by a sudden end
    TrainingLog(*places, resumed_at=20, judged_again=True).close()
    assert steps(places[0]) == [10, 20]


def test_a_log_that_is_no_text(places):
    places[0].write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ArtifactError, match=r"training\.jsonl: is not a text file") as caught:
        TrainingLog(*places, resumed_at=20, judged_again=True)
    assert "\n" not in str(caught.value)
    assert places[0].read_bytes() == b"\xff\xfe\x00"
