"""One thread for tiny networks, images that every test may read, and commands that end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from hardcorenas.jobs import processes
from hardcorenas.train.recipe import SMALL
from hardcorenas.train.supernet_training import TrainingJob, train_supernet
from train.tiny_task import SPACE, SPACE_TOML, write_images
from train.together import meet

PATIENCE = 60  # seconds, on a busy machine


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Run tiny networks on one thread: two of them mostly wait for each other."""
    patch = pytest.MonkeyPatch()
    patch.setattr(processes, "num_cores", lambda: 1)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    patch.undo()


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """A folder of 24 images of each class."""
    return write_images(tmp_path_factory.mktemp("pictures") / "sides")


class Started:
    """A command in a process group of its own.

    Attributes:
        process: Its first process.
    """

    def __init__(self, command):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )

    def members(self):
        """Ids of all processes of the group that have not ended."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, _, group = stat.read_text().rpartition(")")[2].split()[:3]
            except OSError:  # it has ended just now
                continue
            if int(group) == self.process.pid and state not in "ZX":
                found.append(int(stat.parent.name))
        return found

    def wait_until(self, condition):
        """Wait for something to be so while the command runs."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < end, "nothing happened"
            time.sleep(0.01)

    def finish(self):
        """Wait for the command and all that it started; return code, output and errors."""
        try:
            out, err = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still there: {self.members()}, first process {self.process.pid}")
        return self.process.returncode, out, err


@pytest.fixture
def start():
    """Return a function that starts a Python command; whatever is left of it is ended."""
    started = []

    def begin(*arguments):
        started.append(Started([sys.executable, *map(str, arguments)]))
        return started[-1]

    yield begin
    for command in started:
        for number in (signal.SIGTERM, signal.SIGKILL):  # torchrun ends its own processes
            if command.members():
                os.killpg(command.process.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    command.process.communicate(timeout=10)
        command.process.stdout.close()
        command.process.stderr.close()


@pytest.fixture(scope="session")
def by_two(images, tmp_path_factory):
    """The folder of the run of `train_arguments`, trained from Python and never interrupted."""
    folder = tmp_path_factory.mktemp("by-two") / "run"
    recipe = SMALL.replace(
        heaviest_epochs=12,
        paths_epochs=12,
        batch_size=16,
        learning_rate=0.1,
        paths_learning_rate=0.1,
        flip=False,
    )
    train_supernet(TrainingJob(SPACE, str(images), recipe, folder), processes=2)
    return folder


@pytest.fixture(scope="session")
def train_arguments(images, tmp_path_factory):
    """What to give to Python for a training of 72 steps by two processes, but for the folder."""
    space = tmp_path_factory.mktemp("space") / "tiny.toml"
    space.write_text(SPACE_TOML)
    length = "--heaviest-epochs 12 --paths-epochs 12 --batch-size 16 --save-seconds 0.2"
    options = "--learning-rate 0.1 --no-flip --processes 2"
    command = ["-m", "hardcorenas", "train", space, "--data", images]
    return [*command, *length.split(), *options.split()]


@pytest.fixture(scope="session")
def met():
    """What two processes have found out together."""
    return processes.run_together(2, meet)
