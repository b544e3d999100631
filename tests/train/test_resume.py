"""A run that was stopped anywhere and resumed ends with the weights of one that never was."""

from __future__ import annotations

import os
import pickle
import signal

import numpy as np
import pytest
import torch

from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.jobs.signals import Interrupted
from hardcorenas.train import supernet_training
from hardcorenas.train.supernet_training import train_supernet
from train.tiny_task import job, judged, logged, weights_of

pytestmark = pytest.mark.slow

STEPS_OF_AN_EPOCH, STEPS_OF_A_PHASE = 3, 15
# With a save after every step, save 16 is the border between the phases and save 31 the last.
BORDER, LAST = STEPS_OF_A_PHASE + 1, 2 * STEPS_OF_A_PHASE + 1


class StopError(Exception):
    """Stands for a sudden end."""


@pytest.fixture(scope="module")
def uninterrupted(images, tmp_path_factory):
    """Return a function to the folder of a finished run with these changes of the recipe."""
    finished = {}

    def run(**changes):
        key = str(changes)
        if key not in finished:
            finished[key] = tmp_path_factory.mktemp("whole") / "run"
            train_supernet(job(images, finished[key], save_seconds=1e9, **changes))
        return finished[key]

    return run


def stop_at_save(a_job, number, *, written=True):
    """Train, saving after every step; the n-th save is the last that happens, or nearly does."""
    real, saves = RunFolder.save_checkpoint, []

    def save(self, state):
        saves.append(state)
        if len(saves) == number - 1 or (written and len(saves) == number):
            real(self, state)  # those before would be overwritten
        if len(saves) == number:
            raise StopError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_checkpoint", save)
        with pytest.raises(StopError):
            train_supernet(a_job)


def assert_same_run(folder, whole):
    """The weights are the same to the bit; the log tells the same, and no step twice."""
    assert weights_of(folder) == weights_of(whole)
    assert judged(folder) == judged(whole)
    steps = [moment["step"] for moment in logged(folder) if moment["loss"] is not None]
    assert steps
    assert steps == sorted(set(steps))


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (1, False),
        (STEPS_OF_AN_EPOCH + 1, True),
        (2 * STEPS_OF_AN_EPOCH, True),
        (STEPS_OF_A_PHASE, True),
        (BORDER, False),
        (BORDER, True),
        (BORDER + STEPS_OF_AN_EPOCH, True),
        (LAST, False),
        (LAST, True),
    ],
)
def test_stopped_at_any_step(images, tmp_path, uninterrupted, number, written):
    folder = tmp_path / "run"
    stop_at_save(job(images, folder), number, written=written)
    train_supernet(job(images, folder, resume=True, save_seconds=1e9))
    assert_same_run(folder, uninterrupted())


@pytest.mark.parametrize(
    "changes",
    [
        {"accumulate": 2},
        {"mixup": 0.3, "distillation": 0.4},
        {"paths": "single", "seed": 3},
        {"paths": "sandwich"},
    ],
    ids=str,
)
def test_stopped_in_both_phases(images, tmp_path, uninterrupted, changes):
    folder = tmp_path / "run"
    stop_at_save(job(images, folder, **changes), 4)
    stop_at_save(job(images, folder, resume=True, **changes), STEPS_OF_A_PHASE + 4)
    train_supernet(job(images, folder, resume=True, save_seconds=1e9, **changes))
    assert_same_run(folder, uninterrupted(**changes))
    assert weights_of(folder) != weights_of(uninterrupted())


@pytest.mark.parametrize("step", [6, 10, 24])
def test_stopped_after_something_was_logged(images, tmp_path, uninterrupted, step):
    """The log is ahead of the checkpoint then, at step 10 by a loss, else by a judgement."""

    def report(moment):
        if moment.step == step:
            raise StopError

    folder = tmp_path / "run"
    with pytest.raises(StopError):
        train_supernet(job(images, folder), report=report)
    assert logged(folder)[-1]["step"] == step
    train_supernet(job(images, folder, resume=True, save_seconds=1e9))
    assert_same_run(folder, uninterrupted())


def test_a_torn_line_of_the_log_is_dropped(images, tmp_path, uninterrupted):
    folder = tmp_path / "run"
    stop_at_save(job(images, folder), BORDER + 5)
    log = RunFolder(folder).log
    log.write_text(log.read_text() + log.read_text().splitlines()[-1][:20])
    train_supernet(job(images, folder, resume=True, save_seconds=1e9))
    assert_same_run(folder, uninterrupted())


def test_a_finished_run_is_left_as_it_is(images, tmp_path):
    folder, reports = tmp_path / "run", []
    trained = train_supernet(job(images, folder, save_seconds=1e9)).supernet().state_dict()
    run = RunFolder(folder)
    files = (run.description, run.supernet, run.log, run.weights("supernet"))
    before = [path.read_bytes() for path in files]
    again = train_supernet(job(images, folder, resume=True), report=reports.append).supernet()
    assert not again.training
    for name, value in again.state_dict().items():
        assert torch.equal(value, trained[name])
    assert [path.read_bytes() for path in files] == before
    assert not run.checkpoint.exists()  # nothing is left to go on with
    assert not reports


@pytest.mark.parametrize(
    ("number", "step"), [(signal.SIGTERM, STEPS_OF_A_PHASE), (signal.SIGINT, 10)]
)
def test_asked_to_stop(images, tmp_path, uninterrupted, number, step):
    """Also when asked between the phases, where no step is being done."""

    def report(moment):
        if moment.step == step:
            os.kill(os.getpid(), number)

    folder, handlers = tmp_path / "run", [signal.getsignal(n) for n in (number, signal.SIGTERM)]
    rarely = {"save_seconds": 1e9}
    with pytest.raises(Interrupted, match=rf"{number.name} .* all saved") as caught:
        train_supernet(job(images, folder, **rarely), report=report)
    assert caught.value.signal_number == number
    sent = pickle.loads(pickle.dumps(caught.value))  # as between processes
    assert (str(sent), sent.signal_number) == (str(caught.value), number)
    assert [signal.getsignal(n) for n in (number, signal.SIGTERM)] == handlers
    saved = RunFolder(folder).load_checkpoint(torch.device("cpu"))
    before = {"heaviest": 0, "paths": STEPS_OF_A_PHASE}[saved["phase"]]
    assert before + saved["loop"]["step"] == step + 1
    train_supernet(job(images, folder, resume=True, **rarely))
    assert_same_run(folder, uninterrupted())


@pytest.mark.parametrize(
    ("numbers", "end"),
    [
        ([signal.SIGINT, signal.SIGINT], KeyboardInterrupt),
        ([signal.SIGTERM, signal.SIGTERM], Interrupted),  # from a manager and its parent
    ],
)
def test_asked_twice(images, tmp_path, numbers, end):
    def report(moment):
        for number in numbers:
            os.kill(os.getpid(), number)

    with pytest.raises(end):
        train_supernet(job(images, tmp_path / "run"), report=report)


def test_asked_to_stop_while_networks_are_judged(images, tmp_path, uninterrupted, monkeypatch):
    """What is said to be saved is saved, though no save was due."""
    real, folder = supernet_training.score, tmp_path / "run"

    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        return real(*arguments)

    rarely = {"save_seconds": 1e9}
    monkeypatch.setattr(supernet_training, "score", interrupted)
    with pytest.raises(Interrupted, match=r"after step 3, all saved"):
        train_supernet(job(images, folder, **rarely))
    monkeypatch.undo()
    assert RunFolder(folder).load_checkpoint(torch.device("cpu"))["loop"]["step"] == 3
    train_supernet(job(images, folder, resume=True, **rarely))
    assert_same_run(folder, uninterrupted())


def test_two_processes_killed_and_asked_to_stop_at_random_moments(
    start, train_arguments, by_two, tmp_path
):
    """The command line; only its first process gets the signal, and the other ends by itself."""
    folder = tmp_path / "run"

    def num_steps():
        moments = logged(folder) if RunFolder(folder).log.exists() else []
        return moments[-1]["step"] if moments else 0

    rng = np.random.default_rng(0)
    ends = [signal.SIGKILL, signal.SIGTERM, signal.SIGKILL]
    for number, end in enumerate(ends):
        # A third of the 72 steps for each; within it, at any moment.
        moment = max(24 * number + int(rng.integers(2, 16)), num_steps())
        command = start(*train_arguments, "--folder", folder, *(["--resume"] if number else []))
        command.wait_until(lambda moment=moment: num_steps() > moment)
        command.process.send_signal(end)
        code, out, err = command.finish()
        assert out == ""
        if end == signal.SIGKILL:
            assert code == -signal.SIGKILL
        else:
            assert code == 128 + end
            assert RunFolder(folder).checkpoint.exists()
            assert err.splitlines()[-1].startswith(f"stopped by {end.name} after step")
        assert "Traceback" not in err
    command = start(*train_arguments, "--folder", folder, "--resume")
    code, out, _ = command.finish()
    assert code == 0
    assert out.splitlines()[-1] == f"written: {folder / 'supernet.safetensors'}"
    assert_same_run(folder, by_two)
