"""Linear algebra on one thread, and on all of them again afterwards."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg  # noqa: F401 - brings a library of its own
from threadpoolctl import threadpool_info, threadpool_limits

from hardcorenas.machine import one_blas_thread


def blas_threads():
    np.linalg.inv(np.eye(2))
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


@pytest.mark.parametrize("fails", [False, True])
def test_only_while_the_function_runs(fails):
    seen = []

    @one_blas_thread()
    def work(text, *, fails):
        """Say something."""
        seen.append(blas_threads())
        if fails:
            raise RuntimeError(text)
        return text

    assert work.__name__ == "work"
    with threadpool_limits(2, user_api="blas"):
        if fails:
            with pytest.raises(RuntimeError, match="said"):
                work("said", fails=True)
        else:
            assert work("said", fails=False) == "said"
        assert seen == [{1}]
        assert blas_threads() == {2}
