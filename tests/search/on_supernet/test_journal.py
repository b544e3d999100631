"""A search that was interrupted anywhere and goes on ends as one that never was."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardcorenas as hc
from hardcorenas.errors import ArtifactError
from hardcorenas.resources import Budget
from hardcorenas.search.bcsfw import balanced_point, lightest_point
from hardcorenas.search.on_supernet.journal import Journal
from hardcorenas.search.on_supernet.objective import Evaluators
from hardcorenas.search.on_supernet.searching import search
from hardcorenas.search.on_supernet.settings import Effort, SearchSettings
from hardcorenas.search.problem import Problem
from hardcorenas.search.result import Evaluation
from synthetic import AdditiveUtility

SPACE = hc.SearchSpace(
    "small",
    8,
    1,
    2,
    hc.Stem(8),
    (
        hc.Stage(8, 1, "relu", (1, 2), (2, 3), (3, 5), (False, True)),
        hc.Stage(8, 2, "relu", (1, 2, 3), (2, 4), (3,), (False,)),
    ),
    hc.Head(8),
)
PROBLEM = Problem(SPACE, [Budget(hc.count(SPACE, "macs"), "60%")])
IDENTITY = {"supernet": "1f", "settings": {"epochs": 2.0, "batch_size": None, "seeds": [0, 1]}}
STEPS, NETWORKS = 9, 12
DEEP = b'{"value": ' + b"[" * 5000 + b"]" * 5000 + b"}\n"
METHODS = ("combined", "bcsfw", "estimate", "random", "evolution", "penalty")


class StopError(Exception):
    """Stands for a sudden end."""


class Numbered:
    """An objective whose noise depends on the number of the call, as batches do, and a score.

    Attributes:
        calls: Answers given since it was made.

    Args:
        first_call: Number of the first call with gradients.
        stop_after: Ends after so many answers.
    """

    def __init__(self, first_call=0, stop_after=None):
        self.utility = AdditiveUtility(SPACE, seed=1)
        self.number = first_call
        self.left = stop_after
        self.calls = 0

    def objective(self, point):
        self._count()
        rng = np.random.default_rng((3, self.number))
        self.number += 1
        answer = self.utility(point)
        return Evaluation(
            answer.value + rng.normal() / 7,
            *(
                [row + rng.normal(size=row.shape) / 3 for row in rows]
                for rows in (answer.alpha, answer.beta)
            ),
        )

    def score(self, network):
        self._count()
        return math.exp(self.utility.loss(network) / 3)

    def _count(self):
        if self.calls == self.left:
            raise StopError
        self.calls += 1


def run(path, method, stop_after=None, identity=IDENTITY):
    """Search with a journal; return what was found, told and asked."""
    journal = Journal(path, identity)
    answers = Numbered(journal.num_gradients, stop_after)
    asked = Evaluators(journal.objective(answers.objective), journal.score(answers.score))
    effort = {
        "combined": Effort(8, STEPS, NETWORKS, 20),
        "bcsfw": Effort(8, STEPS, NETWORKS, 20),
        "penalty": Effort(8, STEPS, 0, 20),
    }.get(method, Effort(8, 0, NETWORKS, 20))
    moments = []

    def watch(moment):
        moments.append((moment.done, moment.of, moment.loss, moment.step))

    settings = SearchSettings(method=method)
    result = search(PROBLEM, asked, settings, effort, callback=watch)
    return {
        "result": replace(result, point=None),
        "point": result.point and (result.point.alpha.tolist(), result.point.beta.tolist()),
        "moments": moments,
    }, answers.calls


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """For each method what it finds, its journal, and how many answers it asks for."""
    found = {}
    for method in METHODS:
        path = tmp_path_factory.mktemp("whole") / "journal.jsonl"
        outcome, calls = run(path, method)
        found[method] = (outcome, path.read_bytes(), calls)
    return found


@pytest.mark.parametrize("method", METHODS)
def test_a_known_search_is_asked_nothing(tmp_path, uninterrupted, method):
    outcome, content, calls = uninterrupted[method]
    assert calls >= STEPS
    path = tmp_path / "journal.jsonl"
    path.write_bytes(content)
    again, asked = run(path, method, stop_after=0)
    assert asked == 0
    assert again == outcome
    assert path.read_bytes() == content


@pytest.mark.parametrize("method", METHODS)
def test_interrupted_at_every_answer(tmp_path, uninterrupted, method):
    outcome, content, calls = uninterrupted[method]
    for number in range(calls):
        path = tmp_path / f"{number}.jsonl"
        with pytest.raises(StopError):
            run(path, method, stop_after=number)
        assert content.startswith(path.read_bytes())
        again, asked = run(path, method)
        assert asked == calls - number
        assert again == outcome
        assert path.read_bytes() == content


def test_interrupted_again_and_again(tmp_path, uninterrupted):
    outcome, content, calls = uninterrupted["bcsfw"]
    path = tmp_path / "journal.jsonl"
    for _ in range(calls - 1):
        with pytest.raises(StopError):
            run(path, "bcsfw", stop_after=1)
    again, asked = run(path, "bcsfw", stop_after=1)
    assert (again, asked) == (outcome, 1)
    assert path.read_bytes() == content


@pytest.mark.parametrize("method", METHODS)
def test_torn_anywhere(tmp_path, uninterrupted, method):
    """What was being written when the power went; of its last line nothing is believed."""
    outcome, content, calls = uninterrupted[method]
    ends = [n + 1 for n, byte in enumerate(content) if byte == ord("\n")]
    rng = np.random.default_rng(0)
    cuts = {0, 1, *(end + shift for end in ends for shift in (-2, -1, 0))}
    cuts |= set(rng.integers(len(content), size=10).tolist())
    for cut in sorted(cuts)[:: 1 if method == "random" else 5]:
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(content[:cut])
        again, asked = run(path, method)
        whole = max(0, sum(end <= cut for end in ends) - 1)  # less the line of the identity
        assert asked == calls - whole
        assert again == outcome
        assert path.read_bytes() == content


@pytest.mark.parametrize(
    "rest", [b"\0" * 40, b'{"value": 1.0', b"[1, 2]\n", b"null\n", b"\n", DEEP]
)
def test_rubbish_behind_the_last_line_is_dropped(tmp_path, uninterrupted, rest):
    outcome, content, calls = uninterrupted["bcsfw"]
    kept = b"".join(content.splitlines(keepends=True)[:6])
    path = tmp_path / "journal.jsonl"
    path.write_bytes(kept + rest)
    again, asked = run(path, "bcsfw")
    assert (again, asked) == (outcome, calls - 5)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "other",
    [
        {},
        IDENTITY | {"supernet": "20"},
        IDENTITY | {"more": 1},
        IDENTITY | {"settings": {"epochs": 2.5, "batch_size": None, "seeds": [0, 1]}},
        IDENTITY | {"settings": {"epochs": 2.0, "batch_size": None, "seeds": [1, 0]}},
    ],
    ids=str,
)
def test_the_journal_of_something_else_is_begun_anew(tmp_path, uninterrupted, other):
    outcome, content, calls = uninterrupted["bcsfw"]
    path = tmp_path / "journal.jsonl"
    path.write_bytes(content)
    again, asked = run(path, "bcsfw", identity=other)
    assert (again, asked) == (outcome, calls)
    first = json.loads(path.read_text().splitlines()[0])
    assert first == {"format": "hardcorenas.journal"} | other
    assert path.read_bytes().splitlines()[1:] == content.splitlines()[1:]


def test_one_that_went_another_way_is_refused(tmp_path, uninterrupted):
    path = tmp_path / "journal.jsonl"
    for content, method in (
        (uninterrupted["bcsfw"][1], "random"),  # a network is asked for, gradients are known
        (uninterrupted["random"][1], "penalty"),  # the other way round
        (uninterrupted["random"][1].replace(b"e2k3", b"e4k3", 1), "random"),  # another network
    ):
        path.write_bytes(content)
        with pytest.raises(ArtifactError, match=r"went another way.*remove it") as caught:
            run(path, method)
        assert str(path) in str(caught.value)
        assert path.read_bytes() == content


def test_answers_at_other_points_are_refused(tmp_path):
    """A new release may walk another way: what is known of other points says nothing of these."""
    path = tmp_path / "journal.jsonl"
    journal = Journal(path, IDENTITY)
    journal.objective(Numbered().objective)(balanced_point(PROBLEM))
    again = Journal(path, IDENTITY)
    with pytest.raises(ArtifactError, match="went another way"):
        again.objective(Numbered().objective)(lightest_point(PROBLEM))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"value": "1.0", "network": "e2k3"}\n', r"value: expected a number, got a text"),
        (b'{"value": 1.0, "network": 7}\n', r"network: expected a text, got a whole number"),
        (
            b'{"value": 1.0, "alpha": [[null]]}\n',
            r"alpha\[0\]\[0\]: expected a number, got nothing",
        ),
        (b'{"network": "e2k3"}\n', r"value: is missing"),
        (b'{"value": 1.0, "more": 1}\n', r"more: is no field"),
        (b"\xff\xfe\n", r"is not a text file"),
    ],
)
def test_lines_of_another_kind_are_told_in_one_line(tmp_path, uninterrupted, line, message):
    path = tmp_path / "journal.jsonl"
    first = uninterrupted["random"][1].splitlines(keepends=True)[0]
    path.write_bytes(first + line)
    with pytest.raises(ArtifactError, match=rf"journal.jsonl: .*{message}.*remove it") as caught:
        run(path, "random")
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == first + line


@pytest.mark.parametrize("rows", ["[]", "[[0.0], [0.0]]", "[[1, 2, 3, 4, 5, 6, 7, 8, 9]]"])
def test_gradients_of_another_shape_are_refused(tmp_path, uninterrupted, rows):
    path = tmp_path / "journal.jsonl"
    first, answer, *_ = uninterrupted["bcsfw"][1].splitlines(keepends=True)
    answer = json.loads(answer) | {"alpha": json.loads(rows)}
    path.write_bytes(first + json.dumps(answer).encode() + b"\n")
    with pytest.raises(ArtifactError, match="went another way"):
        run(path, "bcsfw")


def test_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match=r"journal.jsonl: cannot be written"):
        Journal(tmp_path / "file" / "journal.jsonl", IDENTITY)
    with pytest.raises(ArtifactError, match="cannot be read"):
        Journal(tmp_path, IDENTITY)
    path = tmp_path / "journal.jsonl"
    journal = Journal(path, IDENTITY)
    path.unlink()
    path.mkdir()  # stands for a disk that is full
    with pytest.raises(ArtifactError, match=r"journal.jsonl: cannot be written \(Is a directory"):
        journal.score(Numbered().score)(SPACE.lightest)


def test_of_several_processes_only_one_writes(tmp_path):
    path = tmp_path / "run" / "journal.jsonl"
    other = Journal(path, IDENTITY, writes=False)
    other.score(Numbered().score)(SPACE.lightest)
    assert not path.parent.exists()
    path.parent.mkdir()
    ask = Journal(path, IDENTITY).objective(Numbered().objective)
    for _ in range(STEPS):
        ask(balanced_point(PROBLEM))
    path.write_bytes(path.read_bytes() + b"torn")
    before = path.read_bytes()
    other = Journal(path, IDENTITY, writes=False)
    assert other.num_gradients == STEPS
    answers = Numbered(first_call=STEPS)
    for _ in range(STEPS):
        other.objective(answers.objective)(balanced_point(PROBLEM))
    assert answers.calls == 0
    other.objective(answers.objective)(balanced_point(PROBLEM))
    assert answers.calls == 1
    assert path.read_bytes() == before


numbers = st.floats(allow_nan=False, allow_infinity=False)


def rows(count, longest):
    row = st.lists(numbers, min_size=1, max_size=longest)
    return st.lists(row, min_size=count, max_size=count)


@settings(max_examples=50, deadline=None)
@given(value=numbers, alpha=rows(5, 8), beta=rows(2, 3), score=numbers)
def test_numbers_come_back_to_the_bit(tmp_path_factory, value, alpha, beta, score):
    path = tmp_path_factory.mktemp("bits") / "journal.jsonl"
    given_rows = [[np.array(row) for row in some] for some in (alpha, beta)]
    for number in range(2):
        journal = Journal(path, IDENTITY)
        assert journal.num_gradients == number
        told = journal.objective(lambda point: Evaluation(value, *given_rows))(
            balanced_point(PROBLEM)
        )
        assert np.float64(told.value).tobytes() == np.float64(value).tobytes()
        for found, expected in zip((told.alpha, told.beta), given_rows, strict=True):
            assert [row.tobytes() for row in found] == [row.tobytes() for row in expected]
        back = journal.score(lambda network: score)(SPACE.heaviest)
        assert np.float64(back).tobytes() == np.float64(score).tobytes()
