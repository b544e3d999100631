"""A tiny trained supernet to search on, and processes that meet or are killed at it."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np
import pytest
import torch

import hardcorenas as hc
from hardcorenas.artifacts import SearchFile
from hardcorenas.jobs import processes as processes_module
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.jobs.signals import Interrupted
from hardcorenas.resources import AdditiveTable, Budget, Provenance
from hardcorenas.search.bcsfw import balanced_point
from hardcorenas.search.on_supernet.job import SearchJob, _search, search_run, search_step
from hardcorenas.search.on_supernet.network_folder import NetworkFolder
from hardcorenas.search.on_supernet.objective import SupernetObjective, images_per_network
from hardcorenas.search.on_supernet.settings import Effort, SearchSettings
from hardcorenas.search.problem import Problem
from hardcorenas.train.finetune import FinetuneJob, _finetune_all, finetune
from hardcorenas.train.recipe import FinetuneSettings
from hardcorenas.train.supernet_training import TrainingJob, train_supernet
from hardcorenas.train.trained import TrainedSupernet
from supernet.supernet_tools import shaken, some_images
from train.tiny_task import CLASSES, RECIPE, SIDE, write_images

PATIENCE = 120  # seconds, on a busy machine
EPOCHS = 4  # of fine-tuning

SPACE = hc.SearchSpace(
    name="tiny-pair",
    resolution=SIDE,
    input_channels=1,
    num_classes=len(CLASSES),
    stem=hc.Stem(width=8, stride=1),
    stages=(
        hc.Stage(8, 2, "relu", (1, 2), (2, 3), (3, 5)),
        hc.Stage(8, 2, "hard_swish", (1, 2, 3), (2, 3), (3,), se=(False,)),
    ),
    head=hc.Head(width=16),
)
TABLES = {name: hc.count(SPACE, name) for name in ("macs", "params", "memory")}


def latency_table(space=SPACE, times=1000):
    """So many nanoseconds a MAC."""
    macs = hc.count(space, "macs")
    costs = tuple(tuple(tuple(times * c for c in row) for row in rows) for rows in macs.costs)
    provenance = Provenance("counted", space.resolution)
    return AdditiveTable(space, "latency", "ns", times * macs.base, costs, provenance)


@contextlib.contextmanager
def one_thread():
    """Run tiny networks on one thread: two of them mostly wait for each other."""
    before = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes_module, "num_cores", lambda: 1)
        torch.set_num_threads(1)
        yield
    torch.set_num_threads(before)


def _room():
    """Make a folder that is there until all tests are done, whichever folder they are in."""
    path = Path(tempfile.mkdtemp(prefix="tiny-search-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@functools.cache
def trained():
    """Train the tiny supernet, once in a session; return its folder, which stays as it is.

    Of 120 images, in the folder next to it, 24 are held out.
    """
    root = _room()
    images = write_images(root / "sides", each=40)
    recipe = RECIPE.replace(heaviest_epochs=3, paths_epochs=3)
    with one_thread():
        train_supernet(TrainingJob(SPACE, str(images), recipe, root / "run"))
    return root / "run"


def search_job(run, folder, *, macs="60%", params=None, source=None, seed=0, **settings):
    """A search of a dozen steps and half a dozen networks, or of two dozen steps."""
    budgets = [Budget(TABLES["macs"], macs)]
    if params is not None:
        budgets.append(Budget(TABLES["params"], params))
    usual = {"method": "bcsfw", "epochs": 4, "batch_size": 8, "local_networks": 6}
    if settings.get("method") == "penalty":  # which takes fifteen steps for each network
        usual["local_networks"] = 1
    settings = SearchSettings(**usual | settings)
    return SearchJob(run, folder, tuple(budgets), settings, source, seed)


def finetune_job(run, folder, **changes):
    """A fine-tuning of some dozens of steps that saves after every step."""
    settings = {"epochs": EPOCHS}
    for name in ("epochs", "learning_rate", "distillation", "start"):
        if name in changes:
            settings[name] = changes.pop(name)
    usual = {"architecture": SPACE.lightest, "save_seconds": 1e-9}
    usual["settings"] = FinetuneSettings(**settings)
    return FinetuneJob(**{"run": run, "folder": folder, **usual, **changes})


def kept(folder):
    """What a search leaves behind, less how long it took."""
    found = json.loads((folder / "search.json").read_text())
    assert found.pop("seconds") >= 0
    assert found.pop("digest")
    names = ("architecture.json", "architecture.timm", "point.json", "trace.jsonl", "journal.jsonl")
    files = {name: folder / name for name in names}
    return found, {name: path.read_bytes() for name, path in files.items() if path.exists()}


def num_answers(folder):
    """How many answers the journal of a search holds, whole ones."""
    path = NetworkFolder(folder).journal
    return max(0, path.read_bytes().count(b"\n") - 1) if path.exists() else 0


# Killed at once, at moments of chance.


@functools.cache
def killed():
    """Kill searches by every method and a fine-tuning, several times each; return their folder.

    Whoever asks goes on with them. It all happens in one process, whose children are killed.
    """
    root = _room()
    call = f"be_killed({str(trained())!r}, {str(root)!r})"
    done = subprocess.run(
        [sys.executable, "-c", f"from pipeline.tiny_search import be_killed; {call}"],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return root


def be_killed(run, root):
    """Begin again and again what is killed again and again."""
    torch.set_num_threads(1)
    processes_module.num_cores = lambda: 1
    run, root = Path(run), Path(root)
    rng = np.random.default_rng(0)
    data = TrainedSupernet.open(run).data()
    for method in ("combined", "bcsfw", "estimate", "random", "evolution", "penalty"):
        job = search_job(run, root / method, method=method)
        effort = Effort.of(job.settings, len(data.heldout), images_per_network(data))
        answers = effort.steps + effort.networks
        for moment in np.sort(rng.integers(1, answers - 2, size=3)):
            _kill(
                # Slow enough to be caught before its end on any machine.
                lambda job=job: search_run(job, callback=lambda _moment: time.sleep(0.02)),
                lambda job=job, moment=moment: num_answers(job.folder) >= moment,
            )
        assert not (root / method / "search.json").exists()
    job = finetune_job(run, root / "finetune")
    for _ in range(3):
        saved = RunFolder(job.folder).checkpoint
        before = saved.stat().st_mtime_ns if saved.exists() else 0
        _kill(
            lambda: finetune([job]),
            lambda saved=saved, before=before: (
                saved.exists() and saved.stat().st_mtime_ns != before
            ),
            rng.uniform(0, 0.02),
        )
    assert not (job.folder / "finetuned.json").exists()


def _kill(work, is_time, seconds=0.0):
    """Do something in a child and kill it when it is time, or so many seconds later."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
        os._exit(3)  # it should not have come here
    end = time.monotonic() + PATIENCE / 4
    while not is_time():
        assert time.monotonic() < end, "nothing happened"
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "it ended by itself"
        time.sleep(0.0005)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "it ended by itself"


# Two processes.


@functools.cache
def met():
    """Do everything once by two processes; return where it is kept, and what the first has seen."""
    root = _room()
    with one_thread():
        return root, processes_module.run_together(2, meet, trained(), root)


def meet(processes, run, root):
    """Do one process's share of everything."""
    return {
        "evaluations": [_evaluate(processes) for _ in range(2)],
        "searches": _searches(processes, run, root),
        "steps": _finetunings(processes, run, root),
    }


def shared_batch(count=24):
    """Images and labels, of which each of two processes takes its half."""
    return some_images(SPACE, count), torch.arange(count) % len(CLASSES)


def _evaluate(processes):
    images, labels = shared_batch()
    half = slice(processes.rank * 12, processes.rank * 12 + 12)
    objective = SupernetObjective(
        shaken(SPACE),
        iter([(images[half], labels[half])] * 2),
        seed=5,
        rank=processes.rank,
        mean=processes.mean,
    )
    point = balanced_point(Problem(SPACE, [Budget(TABLES["macs"], "60%")]))
    return [(e.value, list(e.alpha), list(e.beta)) for e in (objective(point), objective(point))]


def _searches(processes, run, root):
    """Search, search on from the middle, and search while the first process is slow to write."""
    long = {"epochs": 6, "batch_size": 7}
    _search(processes, search_job(run, root / "whole", **long))
    resumed = root / "resumed"
    if processes.is_first:
        lines = NetworkFolder(root / "whole").journal.read_bytes().splitlines(keepends=True)
        resumed.mkdir()
        NetworkFolder(resumed).journal.write_bytes(b"".join([*lines[:20], lines[20][:30]]))
    processes.wait()
    _search(processes, search_job(run, resumed, **long))
    late = search_job(run, root / "late")
    real = SearchFile.save
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SearchFile, "save", lambda *a: (time.sleep(0.5), real(*a))[1])
        _search(processes, late)
    return processes.sum(search_step(late).done() is not None)[0]


def _finetunings(processes, run, root):
    """Train a network to its end, and again with an interruption; return after how many steps."""
    _finetune_all(processes, [finetune_job(run, root / "tuned")])
    job, steps = finetune_job(run, root / "tuned-on"), []

    def stop(_job, moment):
        steps.append(moment.step)
        os.kill(os.getpid(), signal.SIGTERM)

    try:
        _finetune_all(processes, [job], **({"report": stop} if processes.is_first else {}))
    except Interrupted as interrupted:
        steps.append(str(interrupted))
    processes.wait()
    shutil.copytree(job.folder, root / f"interrupted-{processes.rank}")
    processes.wait()
    _finetune_all(processes, [job])
    return steps
