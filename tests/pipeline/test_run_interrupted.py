"""A run that was killed or stopped in any step, and started again, ends like one that never was.

The commands of several such stories run side by side, each on a core of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hardcorenas.pipeline.config import read_config
from hardcorenas.pipeline.run import run
from pipeline.tiny_run import Command, Place, latency_table
from pipeline.tiny_search import one_thread
from train.tiny_task import CLASSES, SPACE_TOML, some_pixels

pytestmark = pytest.mark.slow

NAME = "latency-86.716us-params-2.99K"
GO_ON = "give the same command again to go on"
ON_LINUX = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks into /proc")
MEASURED = (
    "device.minutes=0.15",
    "certify.attempts=1",
    "compare.random=0",
    "export.formats=onnx",
)
LONGER = ("save_seconds=0", "finetune.epochs=6", "certify.seconds=1")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Images so large that reading them takes a moment, and a table, so that all is the same."""
    root = tmp_path_factory.mktemp("large")
    (root / "tiny.toml").write_text(SPACE_TOML)
    latency_table(times=3).save(root / "here.json")  # near what machines of today take
    for number, (pixels, label) in enumerate(zip(*some_pixels(), strict=True)):
        path = root / "sides" / CLASSES[label] / f"{number:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.repeat(400, 0).repeat(400, 1)).save(path, compress_level=1)
    return Place(root / "tiny.toml", root / "sides")


@pytest.fixture(scope="module")
def start(place, tmp_path_factory):
    """Return a function that starts the run in a folder."""
    logs = tmp_path_factory.mktemp("logs")

    def begin(folder, *changes, **options):
        return Command(logs, "run", *texts(place, folder, *changes), **options)

    return begin


def texts(place, folder, *changes):
    """What is asked for."""
    table = f"device.table={place.space.parent}/here.json"
    return place.texts(folder, table, "budgets=latency=60%,params=90%", *LONGER, *changes)


def moments(folder):
    """For each step, what is there when it has ended, and whether a command is at work on it."""
    network = folder / "networks" / NAME
    return {
        "data": ("decoded/images*", lambda _: any(folder.glob("decoded/.images*"))),
        "supernet": (
            "supernet.safetensors",
            lambda _: num_lines(folder / "training.jsonl") > 0,
        ),
        "search": (
            f"networks/{NAME}/search.json",
            lambda _: num_lines(network / "journal.jsonl") > 3,
        ),
        "fine-tuning": (
            f"networks/{NAME}/finetune/finetuned.json",
            lambda _: (network / "finetune" / "checkpoint.pt").exists(),
        ),
        "export": (
            f"networks/{NAME}/export.json",
            lambda command: announced(command, "export") and waited(0.3),
        ),
        "certificate": (
            f"networks/{NAME}/certificate.json",
            lambda command: announced(command, "certificate") and waited(1.2),
        ),
        "comparison": (
            f"networks/{NAME}/summary.json",
            lambda _: (network / "compare" / "lightest" / "checkpoint.pt").exists(),
        ),
    }


def num_lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def is_importing(command):
    """Whether another process of a command has begun to import torch."""
    for other in command.members():
        with contextlib.suppress(OSError):  # it has ended
            about = Path(f"/proc/{other}")
            if b"spawn_main" in (about / "cmdline").read_bytes():
                return "libtorch" in (about / "maps").read_text()
    return False


def waited(seconds):
    """Let a step get under way that leaves nothing to see."""
    time.sleep(seconds)
    return True


def announced(command, step):
    return any(line.startswith(f"{step}: ") for line in command.said)


def interrupt_everywhere(start, folder, core, number):
    """Interrupt a run once in each step; return how each time ended, and let it end at last."""
    ends = {}
    for step, (made, is_at_work) in moments(folder).items():
        command = start(folder, core=core)
        command.wait_until(lambda command=command, ask=is_at_work: ask(command))
        ends[step] = (command.finish(number), command.errors)
        assert not list(folder.glob(made)), f"{step} had ended"
    return ends, to_the_end(start, folder, core)


def interrupt_at_random(start, folder, core):
    """Kill a run at three moments, each a while after it has read its images."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        command = start(folder, core=core)
        command.wait_for("data")
        time.sleep(rng.uniform(0, 3))
        command.finish(signal.SIGKILL)
    return to_the_end(start, folder, core)


def interrupt_measuring(start, folder, core):
    """Kill a run that measures, stop it when it has gone on with it, and let it end."""
    readings = folder / "table.json.readings"
    kept, commands = b"", []
    for number in (signal.SIGKILL, signal.SIGINT):
        command = start(folder, core=core)
        enough = kept.count(b"\n") + 1
        command.wait_until(lambda enough=enough: num_lines(readings) > enough)
        commands.append((command.finish(number), command.said, command.errors))
        now = readings.read_bytes()
        assert now.startswith(kept)  # what was measured before is gone on from
        kept = now[: now.rindex(b"\n") + 1]
    return [*commands, to_the_end(start, folder, core)]


def to_the_end(start, folder, core):
    command = start(folder, core=core)
    return command.finish(), command.said, command.errors


@pytest.fixture(scope="module")
def stories(place, start, tmp_path_factory):
    """Folders and outcomes of what goes on side by side."""
    names = ("killed", "asked", "measuring", "random")
    folders = {name: tmp_path_factory.mktemp(name) / "run" for name in names}
    larger = place.space.with_name("larger.toml")  # with enough networks to measure
    larger.write_text(SPACE_TOML.replace("[2, 3]", "[2, 3, 4]"))
    measured = (f"space={larger}", "device.table=none", "budgets=latency=100%", *MEASURED)

    def measure(folder, **options):
        return start(folder, *measured, **options)

    tasks = {
        "killed": (interrupt_everywhere, start, folders["killed"], 0, signal.SIGKILL),
        "asked": (interrupt_everywhere, start, folders["asked"], 1, signal.SIGINT),
        "measuring": (interrupt_measuring, measure, folders["measuring"], 0),
        "random": (interrupt_at_random, start, folders["random"], 1),
    }
    with ThreadPoolExecutor(2) as pool:
        yield {name: (folders[name], pool.submit(*task)) for name, task in tasks.items()}


@pytest.fixture(scope="module")
def uninterrupted(place, tmp_path_factory, stories):
    """The folder of a run from Python that nobody disturbs, while the others are at work."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    with one_thread():
        assert run(read_config(None, texts(place, folder))).verdict == "PASS"
    return folder


def essence(folder):
    """All that a run has made, but for times and the name of its folder."""
    network = folder / "networks" / NAME
    summary = json.loads((network / "summary.json").read_text())
    summary["config"].pop("folder")
    summary.pop("digest")
    search = json.loads((network / "search.json").read_text())
    search.pop("seconds")
    search.pop("digest")
    files = [*folder.glob("*.safetensors"), *network.rglob("*.safetensors")]
    files += [network / name for name in ("architecture.json", "point.json", "trace.jsonl")]
    files.append(network / "network.onnx")
    kept = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    return {"summary": summary, "search": search, **kept}


def assert_ended_alike(folder, end, whole):
    code, said, errors = end
    assert code == 0, errors
    assert f"all of it: {folder / 'networks' / NAME}" in said
    assert essence(folder) == essence(whole)


def test_killed_in_every_step(stories, uninterrupted):
    folder, story = stories["killed"]
    ends, last = story.result()
    assert {step: code for step, (code, _) in ends.items()} == dict.fromkeys(ends, -signal.SIGKILL)
    assert_ended_alike(folder, last, uninterrupted)


def test_stopped_by_the_user_in_every_step(stories, uninterrupted):
    folder, story = stories["asked"]
    ends, last = story.result()
    assert len(ends) == 7
    for step, (code, errors) in ends.items():
        assert code == 130, (step, errors)
        assert not [line for line in errors if "Traceback" in line or "Error" in line], step
        said = [line for line in errors if line]
        assert GO_ON in said[-1], step
    for step in ("supernet", "search", "fine-tuning", "comparison"):
        assert "stopped by SIGINT after step" in [line for line in ends[step][1] if line][-1]
    assert_ended_alike(folder, last, uninterrupted)


def test_killed_at_random_moments(stories, uninterrupted):
    folder, story = stories["random"]
    assert_ended_alike(folder, story.result(), uninterrupted)


def test_measuring_goes_on(stories):
    """By the clock, so only that it ends, with some verdict, and that no reading is lost."""
    folder, story = stories["measuring"]
    killed, stopped, last = story.result()
    assert killed[0] == -signal.SIGKILL
    code, said, errors = stopped
    assert code == 130
    assert said[-1].startswith("table: timing")
    assert GO_ON in [line for line in errors if line][-1]
    assert not [line for line in errors if "Traceback" in line]
    code, said, errors = last
    assert code in (0, 1, 3), errors
    assert (folder / "table.json").exists()
    assert not (folder / "table.json.readings").exists()
    (certificate,) = folder.rglob("certificate.json")
    verdict = json.loads(certificate.read_text())["verdict"]
    assert {"PASS": 0, "FAIL": 1, "UNCLEAR": 3}[verdict] == code
    assert any(line.startswith(verdict) for line in said)


@ON_LINUX
def test_of_several_processes_none_is_left(start, tmp_path):
    """Not even when the first is killed while another starts."""
    command = start(tmp_path / "run", "processes=2", cores=2)
    command.wait_until(lambda: len(command.members()) > 2)
    os.kill(command.process.pid, signal.SIGKILL)
    assert command.finish() == -signal.SIGKILL


@ON_LINUX
def test_of_several_processes_only_the_first_speaks(start, tmp_path):
    """Ctrl-C reaches all of them, also one that is still starting."""
    command = start(tmp_path / "run", "processes=2", cores=2)
    command.wait_until(lambda: is_importing(command))
    assert command.finish(signal.SIGINT) == 130
    assert not [line for line in command.errors if "Traceback" in line]
