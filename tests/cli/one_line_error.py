"""What every mistake of a user's ends in: exit code 2 and one line that says what to do."""

from __future__ import annotations


def require_one_line_error(code, said, words):
    """Require an error of one line with some words, and nothing else.

    Args:
        code: The exit code.
        said: What was printed, as ``capsys.readouterr()`` returns it.
        words: What the line has to contain.
    """
    assert code == 2
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    for word in words:
        assert word in said.err
