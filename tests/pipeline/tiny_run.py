"""A whole run at a size of seconds: what to ask for, who watches, its tables and certificates."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import hardcorenas as hc
from hardcorenas.artifacts import Certificate, Entry, Provenance, worst
from hardcorenas.deploy.certificate import certificate_inputs
from hardcorenas.files import digest_of
from hardcorenas.pipeline.run import run
from hardcorenas.pipeline.watcher import Watcher
from hardcorenas.resources import AdditiveTable
from hardcorenas.resources.calibration import Calibration
from hardcorenas.resources.targets import make_target
from pipeline.tiny_search import one_thread
from timings import timing
from train.tiny_task import SPACE, SPACE_TOML, write_images

BUDGETS = "budgets=macs=60%,params=90%"
STEPS = ("supernet", "search", "fine-tuning", "export", "certificate", "comparison")
PATIENCE = 120  # seconds, on a busy machine

_QUICK = (
    "processes=1",
    "training.heaviest_epochs=3",
    "training.paths_epochs=3",
    "training.batch_size=16",
    "training.learning_rate=0.1",
    "training.ema_decay=0.9",
    "training.flip=false",
    "finetune.epochs=2",
    "certify.seconds=0.2",
    "compare.random=1",
)


@dataclass(frozen=True)
class Place:
    """Where the declaration of a space and images are.

    Attributes:
        space: The declaration.
        images: A folder of images by class.
    """

    space: Path
    images: Path

    def texts(self, folder, *changes):
        """Return a quick run as texts ``key=value``; later ones win."""
        where = (f"data={self.images}", f"space={self.space}", f"folder={folder}")
        return [*where, BUDGETS, *_QUICK, *changes]

    def config(self, folder, *changes):
        """Return the configuration of a quick run."""
        return hc.read_config(None, self.texts(folder, *changes))


class Recorder(Watcher):
    """Remembers what it was told."""

    def __init__(self):
        self.begun, self.skipped, self.remarks, self.limits = [], [], [], []

    def begin(self, step, note):
        self.begun.append(step)

    def skip(self, step, note):
        self.skipped.append(step)

    def say(self, note):
        self.remarks.append(note)

    def budgets(self, problem):
        self.limits.append([budget.limit for budget in problem.budgets])


class TooLateError(Exception):
    """Something takes hours that should not have begun."""


class BeforeHours(Recorder):
    """Requires that a mistake is told before the supernet is trained."""

    def begin(self, step, note):
        super().begin(step, note)
        if step == "supernet":
            raise TooLateError


@functools.cache
def tiny_place(root):
    """Make the place of all quick runs below a folder, once in a session."""
    space = root / "tiny-place" / "tiny.toml"
    space.parent.mkdir()
    space.write_text(SPACE_TOML)
    return Place(space, write_images(space.parent / "sides"))


@functools.cache
def finished_run(root):
    """Do a quick run from start to end, once in a session; return its folder, only to be copied."""
    folder = root / "tiny-run"
    with one_thread():
        run(tiny_place(root).config(folder))
    return folder


def copy_of(finished, folder, *, networks=False):
    """Copy a run's folder: what was trained, and if asked for the networks that were found."""
    left = [] if networks else ["networks"]
    return Path(shutil.copytree(finished, folder, ignore=shutil.ignore_patterns(*left)))


def contents(folder):
    """All files below a folder with their bytes and times of change; locks aside."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".lock")
    }


def latency_table(
    *,
    device=None,
    runtime="onnxruntime",
    threads=1,
    batch_size=1,
    times=10,
    cold=False,
    space=SPACE,
):
    """A table of the tiny space: so many nanoseconds for every MAC.

    Its yardstick is so fast that whatever this machine measures is within half of the range.

    Args:
        device: Another than this.
        runtime: What ran the networks.
        threads: Its threads.
        batch_size: Images at once.
        times: Nanoseconds a MAC.
        cold: Whether runs followed upon other work.
        space: Another than the tiny one.
    """
    known = make_target(runtime, threads=threads, cold=cold).identity.to_dict()
    counted = hc.count(space, "macs")
    return AdditiveTable(
        space,
        "latency",
        "ns",
        times * counted.base,
        tuple(tuple(tuple(times * cost for cost in row) for row in rows) for rows in counted.costs),
        Provenance(
            "measured",
            space.resolution,
            batch_size=batch_size,
            **(known | ({} if device is None else {"device": device})),
        ),
        Calibration(
            ((200_000, 200_000), (300_000, 300_000)),
            *(8, 1.0, 0.99, 7000 * times, 0.9, 0.0),
            untimed=0 if cold else 4,
        ),
    )


def certificate_of(subject, budgets, verdict, miss=0):
    """A certificate of a file beside its architecture, or of an architecture.

    Args:
        subject: The file or the architecture.
        budgets: Counted ones are kept.
        verdict: Of latencies.
        miss: How far every latency is measured to be beyond its limit.
    """
    network, described = subject, None
    if isinstance(subject, Path):
        network = hc.Architecture.load(subject.with_name("architecture.json"))
        digest = hashlib.sha256(subject.read_bytes()).hexdigest()
        described = {"file": subject.name, "sha256": digest}
    entries = []
    for budget in budgets:
        cost = budget.table.cost(network)
        table = budget.table
        taken = timing(budget.limit + miss, percentile=table.percentile)
        measured = None if table.calibration is None else taken
        found = verdict if measured else "PASS"
        known = (budget.name, budget.table.unit, budget.limit, cost, cost)
        entries.append(Entry(*known, measured, found))
    space = {"name": network.space.name, "fingerprint": network.space.fingerprint}
    return Certificate(
        inputs=digest_of(certificate_inputs(subject, budgets)),
        verdict=worst([entry.verdict for entry in entries]),
        entries=tuple(entries),
        architecture=str(network),
        space=space,
        model=described,
        target=None,
        foreign=None,
        stopwatch=None,
        date="2000-01-01",
        seconds=1.0,
    )


class Judge:
    """Stands in for `certify`: gives one verdict after the other, the last for ever.

    Attributes:
        asked: For each call, the limits.
        options: Of the last call.

    Args:
        *answers: Verdicts, each alone or with how far latencies are beyond their limits.
    """

    def __init__(self, *answers):
        self.answers = [answer if isinstance(answer, tuple) else (answer, 0) for answer in answers]
        self.asked = []
        self.options = {}

    def __call__(self, subject, budgets, **options):
        self.options = options
        verdict, miss = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append([budget.limit for budget in budgets])
        return certificate_of(subject, budgets, verdict, miss)


class Command:
    """A command of hardcorenas in a process group of its own, on one core.

    Attributes:
        process: Its first process.

    Args:
        logs: A folder for what it prints.
        *arguments: Behind ``hardcorenas``.
        core: The number of its core; of the first, if there are several.
        cores: How many.
    """

    def __init__(self, logs, *arguments, core=0, cores=1):
        self._logs = Path(tempfile.mkdtemp(dir=logs))
        with (self._logs / "out").open("wb") as out, (self._logs / "errors").open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "hardcorenas", *map(str, arguments)],
                stdout=out,
                stderr=errors,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                start_new_session=True,
            )
        if hasattr(os, "sched_setaffinity"):
            allowed = sorted(os.sched_getaffinity(0))
            mine = {allowed[(core + number) % len(allowed)] for number in range(cores)}
            os.sched_setaffinity(self.process.pid, mine)

    @property
    def said(self):
        """What it has printed so far, line by line."""
        return (self._logs / "out").read_text().splitlines()

    @property
    def errors(self):
        """The same on its error stream."""
        return (self._logs / "errors").read_text().splitlines()

    def wait_until(self, condition):
        """Wait for something to be so while the command runs."""
        end = time.monotonic() + PATIENCE
        while not condition():
            if self.process.poll() is not None or time.monotonic() > end:
                self.end()
                pytest.fail(f"did not happen: {self.process.returncode} {self.said} {self.errors}")
            time.sleep(0.002)

    def wait_for(self, step):
        """Wait until a step is announced."""
        self.wait_until(lambda: any(line.startswith(f"{step}: ") for line in self.said))

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

    def finish(self, number=None):
        """Send a signal to the whole group, if any, as a terminal does; return the exit code.

        Fails if anything that the command started is left.
        """
        if number is not None:
            os.killpg(self.process.pid, number)
        try:
            code = self.process.wait(timeout=PATIENCE)
            end = time.monotonic() + PATIENCE
            while self.members() and time.monotonic() < end:
                time.sleep(0.01)
            assert self.members() == []
        finally:
            self.end()
        return code

    def end(self):
        """End whatever is left of it."""
        for left in self.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)
        self.process.wait()
