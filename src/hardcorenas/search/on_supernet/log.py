"""A search in TensorBoard while it goes on: numbers of each step, probabilities as images.

search/loss                    of the batch of a step, at the point it started from
search/gap                     Frank-Wolfe gap there, for methods that have one
search/step size               how far the step went, from 0 to 1
search/cost of budget/LABEL    expected cost there as share of the limit: above 1 would be too much
search/best loss               of the networks scored so far, over steps and networks
choices/…, depths/…            probabilities at the start, at some steps, and at the end
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.search.on_supernet.network_folder import remove
from hardcorenas.train.training_run import FLUSH_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from hardcorenas.search.on_supernet.searching import SearchMoment
    from hardcorenas.search.point import Floats, RelaxedPoint
    from hardcorenas.search.problem import Problem
    from hardcorenas.search.result import SearchResult

# TensorBoard shows ten images of a name, by chance; so start and end have names of their own.
START, DURING, END = "1 at the start", "2 on the way", "3 at the end"
_SUFFIX = ".hardcorenas-search"  # tells our files from others that may be in the folder
CELL = 20  # pixels, of which the last is a gap
GAP = 255  # grey level between cells, and where there is no choice
# Five colours of viridis, evenly spaced: as bright as high, in print and to the colour-blind too.
_ANCHORS = np.array(
    [(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)], float
)


class SearchLog:
    """Writes one search; what another search wrote to the folder is taken away first.

    A search that goes on says all its steps again, those that the journal answers in no time.
    """

    def __init__(self, folder: Path, problem: Problem) -> None:
        from torch.utils.tensorboard import SummaryWriter

        for old in folder.glob(f"events.out.tfevents.*{_SUFFIX}"):
            remove(old)
        self._problem = problem
        stages = problem.space.stages
        self._num_choices = [len(stages[s].choices) for s, _ in problem.positions]
        self._num_depths = [len(stage.depths) for stage in stages]
        # A TensorBoard that has the removed files in memory forgets them by the purge.
        self._writer = SummaryWriter(
            str(folder), purge_step=0, flush_secs=FLUSH_SECONDS, filename_suffix=_SUFFIX
        )

    def write(self, moment: SearchMoment, *, with_point: bool) -> None:
        """Write where the search is; draw the point that its step started from if told to."""
        step = moment.step
        if step is None:
            self._writer.add_scalar("search/best loss", moment.loss, moment.done)
            return
        numbers = {"loss": step.value, "gap": step.gap, "step size": step.step_size}
        labels, budgets = self._problem.additive_labels, self._problem.additive
        for label, budget, cost in zip(labels, budgets, step.costs, strict=True):
            numbers[f"cost of budget/{label}"] = cost / budget.limit
        for name, value in numbers.items():
            if value is not None:
                self._writer.add_scalar(f"search/{name}", value, step.index)
        if moment.point is not None and step.index == 0:
            self._draw(moment.point, START, step.index)
        if moment.point is not None and with_point:
            self._draw(moment.point, DURING, step.index)

    def write_end(self, result: SearchResult) -> None:
        """Draw the point that was projected, for methods that have one."""
        if result.point is not None:
            self._draw(result.point, END, len(result.trace))

    def close(self) -> None:
        """Write what is left in memory."""
        self._writer.close()

    def _draw(self, point: RelaxedPoint, when: str, step: int) -> None:
        choices = heat_map(point.alpha_shares, self._num_choices)
        depths = heat_map(point.beta_shares, self._num_depths)
        for name, image in (("choices", choices), ("depths", depths)):
            self._writer.add_image(f"{name}/{when}", image, step, dataformats="HWC")


def heat_map(shares: Floats, lengths: Sequence[int]) -> NDArray[np.uint8]:
    """Return an image of rows of probabilities, height × width × RGB: dark for 0, light for 1.

    Args:
        shares: Probabilities from 0 to 1, a row for each block or stage.
        lengths: How many entries of each row there are; those behind them only fill the rectangle.
    """
    at = np.clip(shares, 0.0, 1.0) * (len(_ANCHORS) - 1)
    ticks = np.arange(len(_ANCHORS))
    colours = np.stack([np.interp(at, ticks, channel) for channel in _ANCHORS.T], axis=-1)
    colours[np.arange(shares.shape[1]) >= np.array(lengths)[:, None]] = GAP
    image = colours.round().astype(np.uint8).repeat(CELL, axis=0).repeat(CELL, axis=1)
    image[CELL - 1 :: CELL] = GAP
    image[:, CELL - 1 :: CELL] = GAP
    return image
