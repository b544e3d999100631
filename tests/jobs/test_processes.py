"""Two processes do what one does, and none is left behind or waited for when another has ended."""

from __future__ import annotations

import os
import signal
import socket
import time

import pytest
import torch

from hardcorenas.errors import HardcorenasError, InvalidArgumentError
from hardcorenas.jobs import processes
from hardcorenas.jobs.processes import (
    Processes,
    require_processes,
    run_together,
    suitable_count,
)
from hardcorenas.train.data import BatchPlan, training_batches
from train.tiny_task import ALONE, image_data, logged, weights_of
from train.together import (
    ONE_STEP,
    Forked,
    InTurn,
    Poison,
    first_fails,
    gradients,
    new_supernet,
    nothing,
    other_is_killed,
    some_batch,
)

pytestmark = pytest.mark.slow


def test_gradients_are_those_of_the_joined_batch(met):
    expected = gradients(new_supernet(), *some_batch())
    assert met["gradients"].keys() == expected.keys()
    for name, gradient in expected.items():
        found = met["gradients"][name]
        if gradient is None:  # no image of either process has chosen it
            assert found is None
        else:
            torch.testing.assert_close(found, gradient, rtol=1e-10, atol=1e-14)
    alone = gradients(new_supernet(), *(half[:8] for half in some_batch()))
    assert sum(gradient is None for gradient in alone.values()) > 0
    assert any(alone[name] is None and expected[name] is not None for name in alone)


def test_pieces_of_a_batch_are_shared_though_the_last_uses_other_weights(met):
    """Each branch sees one piece of each process: brute force over all four."""
    data, model, task = image_data(), Forked(), InTurn()
    plan = BatchPlan(72, (0,), ONE_STEP.augmentation, ONE_STEP.flip)
    for rank in range(2):
        process = Processes(rank, 2, torch.device("cpu"))
        ((images, labels),) = training_batches(data, data.train, plan, 0, process)
        for piece, its_labels in zip(images.chunk(2), labels.chunk(2), strict=True):
            (task.loss(model, piece, its_labels, None) / 4).backward()
    for (name, weight), total in zip(model.named_parameters(), met["forked, summed"], strict=True):
        stepped = (weight - 0.1 * weight.grad).detach()
        torch.testing.assert_close(met["forked"][name], stepped)
        torch.testing.assert_close(torch.tensor(total), 2 * stepped.flatten().double(), **LOOSE)


LOOSE = {"rtol": 1e-5, "atol": 1e-6, "check_dtype": False}


def test_sums_and_averages(met):
    assert met["sums"] == [3.0, 20.0]
    matrix, number = met["averages"]
    assert torch.equal(matrix, torch.full((2, 3), 1.5))
    assert number == 2.0


def test_one_process_agrees_with_itself():
    tensor = torch.arange(3.0)
    ALONE.average_([tensor])
    assert torch.equal(tensor, torch.arange(3.0))
    assert ALONE.sum(2, 0.5) == [2, 0.5]
    model = Forked()
    assert ALONE.share_gradients(model) is model


@pytest.mark.parametrize("cores", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("batch_size", [2, 32, 63, 64, 96, 100, 128, 250, 1024])
def test_how_many_processes_suit(monkeypatch, cores, batch_size):
    monkeypatch.setattr(processes, "num_cores", lambda: cores)
    counts = range(1, cores + 1)
    good = [n for n in counts if batch_size % n == 0 and batch_size // n >= 32]
    assert suitable_count(batch_size) == max(good, default=1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert suitable_count(batch_size) == 1


@pytest.mark.parametrize("count", [17, 10**12, 10**5000], ids=["17", "many", "more"])
def test_far_too_many_processes(monkeypatch, count):
    """They would be started one by one until the memory is gone."""
    monkeypatch.setattr(processes, "num_cores", lambda: 2)
    require_processes(16)
    with pytest.raises(InvalidArgumentError, match="processes: expected at most 16, 8 for each"):
        require_processes(count)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "17")
    require_processes(17)  # torchrun has started them, on as many machines as it likes


def test_an_error_of_the_first_process_ends_the_other(tmp_path):
    with pytest.raises(ZeroDivisionError, match="an error of the first"):
        run_together(2, first_fails, tmp_path)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize(
    ("work", "arguments"),
    [(other_is_killed, ()), (nothing, (Poison(),))],
    ids=["at work", "while starting"],
)
def test_another_process_that_has_ended_is_not_waited_for(work, arguments):
    start = time.monotonic()
    with pytest.raises(HardcorenasError, match=r"another process .* has ended.*--resume"):
        run_together(2, work, *arguments)
    assert time.monotonic() - start < 60
    assert not torch.distributed.is_initialized()


def test_the_other_ends_when_the_first_is_killed_while_it_starts(start, train_arguments, tmp_path):
    command = start(*train_arguments, "--folder", tmp_path / "run")
    # The first process, the other, and the one that Python starts to clean up after them.
    command.wait_until(lambda: len(command.members()) == 3)
    command.process.send_signal(signal.SIGKILL)
    assert command.finish()[0] == -signal.SIGKILL


def test_torchrun(start, train_arguments, by_two, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launch = "-m torch.distributed.run --nproc-per-node 2 --master-addr 127.0.0.1 --master-port"
    command = start(*launch.split(), port, *train_arguments, "--folder", tmp_path / "run")
    code, out, err = command.finish()
    assert code == 0, err
    assert out.count("written: ") == 1
    assert out.count("trained in") == 1
    assert err.count("accuracy on held-out images:") == 1
    steps = [moment["step"] for moment in logged(tmp_path / "run") if moment["loss"] is not None]
    assert steps == [10, 20, 30, 46, 56, 66]
    assert weights_of(tmp_path / "run") == weights_of(by_two)
