"""Training by several processes: who am I, how many are we, and agreeing with the others.

Under ``torchrun`` the processes are its own. On a processor without it, one process a core is
started here: many small groups of images starve on the hand-offs between threads, while processes
meet once a step. Everything between processes goes through ``torch.distributed``.
"""

from __future__ import annotations

import os
import platform
import signal
import time
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import Store, TCPStore  # type: ignore[attr-defined]
from torch.multiprocessing.spawn import ProcessContext, start_processes
from torch.nn.parallel import DistributedDataParallel

from hardcorenas.errors import HardcorenasError, InvalidArgumentError, shown
from hardcorenas.machine import keep_freed_memory, num_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

R = TypeVar("R")

FEWEST_IMAGES = 32  # a process: fewer would be groups of one or two
_MOST_A_CORE = 8  # each takes the memory of a whole model
# A process that has ended is noticed at once; one that reads a large folder is waited for.
_PATIENCE = timedelta(hours=12)
_PATIENCE_TO_MEET = timedelta(seconds=30)  # until the first process, which is there, is found
_STARTED, _ERROR = "started", "error"
_OTHER_ENDED = (
    "another process of this training has ended, perhaps for want of memory; "
    "give the same command again (train: with --resume), or with --processes 1"
)


@dataclass(frozen=True)
class Processes:
    """This process among those that train together.

    Attributes:
        rank: Number of this process; number 0 writes files and speaks.
        count: How many there are.
        device: Where this one computes.
    """

    rank: int
    count: int
    device: torch.device

    @classmethod
    def alone(cls) -> Processes:
        """Return a process that shares its work with no other."""
        return cls(0, 1, _device(0))

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes and speaks."""
        return self.rank == 0

    def sum(self, *values: float) -> list[float]:
        """Return sums over all processes, the same in each."""
        if self.count == 1:
            return list(values)
        place = self.device if dist.get_backend() == "nccl" else "cpu"
        tensor = torch.tensor(values, dtype=torch.float64, device=place)
        dist.all_reduce(tensor)
        return [float(value) for value in tensor]

    def mean(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean of a vector over all processes, the same in each."""
        return np.array(self.sum(*vector.tolist())) / self.count

    def average_(self, tensors: list[Tensor]) -> None:
        """Overwrite tensors of floats by their means over all processes."""
        if self.count == 1 or not tensors:
            return
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        dist.all_reduce(flat)
        flat /= self.count
        sizes = [tensor.numel() for tensor in tensors]
        for tensor, mean in zip(tensors, torch.split(flat, sizes), strict=True):
            tensor.copy_(mean.view_as(tensor))

    def share_gradients(self, model: nn.Module, *, all_used: bool = False) -> nn.Module:
        """Return a model whose gradients are averaged over all processes in the backward pass.

        Args:
            model: What is trained.
            all_used: Whether every weight takes part in every step.
        """
        if self.count == 1:
            return model
        # Gradients of one pixel come in either layout; it is the same memory.
        warnings.filterwarnings("ignore", message="Grad strides do not match bucket view strides")
        # What no image of the batch has chosen gets no gradient; statistics are averaged by us.
        return DistributedDataParallel(
            model, find_unused_parameters=not all_used, forward_sync_buffers=False
        )

    def first_does(self, work: Callable[[], R]) -> R | None:
        """Do something in the first process while all wait; its error is raised in all of them."""
        result, error = None, None
        if self.is_first:
            try:
                result = work()
            except HardcorenasError as mistake:
                error = mistake
        if self.count > 1:
            message = [str(error) if error is not None else ""]
            dist.broadcast_object_list(message, src=0)
            if message[0] and error is None:
                raise HardcorenasError(message[0])
        if error is not None:
            raise error
        return result

    def wait(self) -> None:
        """Wait for all others to come here."""
        if self.count > 1:
            dist.barrier()


def count_of_torchrun() -> int:
    """Return how many processes ``torchrun`` has started, or 0 if it has not."""
    return int(os.environ.get("WORLD_SIZE", "0")) if "RANK" in os.environ else 0


def is_first_process() -> bool:
    """Return whether this process writes and speaks, before it has met the others."""
    return not count_of_torchrun() or os.environ["RANK"] == "0"


def suitable_count(batch_size: int) -> int:
    """Return how many processes to start here: one a core, of at least 32 images each.

    It divides the batch. With a GPU it is 1: several GPUs are ``torchrun``'s business.
    """
    if torch.cuda.is_available():
        return 1
    count = max(1, min(num_cores(), batch_size // FEWEST_IMAGES))
    while batch_size % count:
        count -= 1
    return count


def require_processes(count: int, batch_size: int | None = None, pieces: int = 0) -> None:
    """Refuse a number of processes that cannot be, or cannot share a batch equally.

    Args:
        count: How many; under ``torchrun`` its own number counts.
        batch_size: Images that all of them share.
        pieces: In how many pieces each runs its share, of two images at least.
    """
    count = count_of_torchrun() or count
    if count < 1 or (batch_size is not None and batch_size % count):
        expected = "at least 1" if batch_size is None else f"that divides the batch of {batch_size}"
        raise InvalidArgumentError(f"processes: expected a number {expected}, got {shown(count)}")
    most = _MOST_A_CORE * num_cores()
    if count > most and not count_of_torchrun():  # which has them already, on machines of its own
        raise InvalidArgumentError(
            f"processes: expected at most {most}, {_MOST_A_CORE} for each core, got {shown(count)}"
        )
    if batch_size is not None and batch_size < 2 * count * pieces:
        raise InvalidArgumentError(
            f"batch_size: {batch_size} images are fewer than two for each of {pieces} pieces in "
            f"{count} processes"
        )


def run_together(
    count: int, work: Callable[..., Any], *arguments: Any, first_only: dict[str, Any] | None = None
) -> Any:
    """Call ``work(processes, *arguments)`` in several processes; return what the first returns.

    This process is the first. Under ``torchrun`` nothing is started and ``count`` is not used.

    Args:
        count: How many processes.
        work: A function of a module, so that other processes find it.
        *arguments: Handed to each.
        first_only: Handed by name to the first alone.
    """
    options = first_only or {}
    if count_of_torchrun():
        _use_processor(threads=None)
        with _group(int(os.environ["RANK"]), count_of_torchrun(), None) as processes:
            return work(processes, *arguments, **(options if processes.is_first else {}))
    before = torch.get_num_threads()
    _use_processor(threads=max(1, num_cores() // count))
    try:
        if count == 1:
            return work(Processes.alone(), *arguments, **options)
        return _run_with_others(count, work, arguments, options)
    finally:
        torch.set_num_threads(before)


def _run_with_others(
    count: int, work: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    store = TCPStore("127.0.0.1", 0, count, is_master=True, wait_for_workers=False)
    with _ctrl_c_waits():  # also in the others, until they are there to take it without a word
        others: ProcessContext = start_processes(  # type: ignore[no-untyped-call]
            _one_of_the_others,
            args=(count, store.port, work, arguments),
            nprocs=count - 1,
            join=False,
            start_method="spawn",
        )
    try:
        _wait_until_started(others, store)
        with _group(0, count, store) as processes:
            return work(processes, *arguments, **options)
    except RuntimeError as error:
        if "Connection" not in str(error) and "gloo" not in str(error).lower():
            raise
        for other in others.processes:  # which say why before they end
            other.join(timeout=5)
        said = store.get(_ERROR).decode() if store.check([_ERROR]) else ""
        told = f"another process of this training has ended: {said}" if said else _OTHER_ENDED
        raise HardcorenasError(told) from error
    except KeyboardInterrupt:
        for other in others.processes:  # which may only just be importing torch
            other.terminate()
        raise
    finally:
        for other in others.processes:
            other.join(timeout=10)
            if other.is_alive():
                other.terminate()


def _one_of_the_others(
    index: int, count: int, port: int, work: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    first = parent_process()
    if first is not None and not first.is_alive():  # there is nobody left to work with
        os._exit(1)
    _use_processor(threads=max(1, num_cores() // count))
    store = None
    try:
        if hasattr(signal, "pthread_sigmask"):  # Ctrl-C counts from now on, one that waited at once
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        store = TCPStore("127.0.0.1", port, count, is_master=False, timeout=_PATIENCE_TO_MEET)
        store.set_timeout(_PATIENCE)
        store.add(_STARTED, 1)
        with _group(index + 1, count, store) as processes:
            work(processes, *arguments)
    except BaseException as error:
        # The first process is the one that speaks. It meets the same error, or is told of it, or
        # has ended.
        with suppress(RuntimeError):
            if store is not None and not isinstance(error, KeyboardInterrupt):
                store.set(_ERROR, f"{type(error).__name__}: {error}")
        os._exit(1)


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Let Ctrl-C wait, here for a moment; processes started meanwhile go on letting it wait."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait_until_started(others: ProcessContext, store: TCPStore) -> None:
    """Wait for the others, but not for one that has ended while starting."""
    while store.add(_STARTED, 0) < len(others.processes):
        if any(other.exitcode is not None for other in others.processes):
            raise HardcorenasError(_OTHER_ENDED)
        time.sleep(0.05)


@contextmanager
def _group(rank: int, count: int, store: Store | None) -> Iterator[Processes]:
    """Join the others for a while; without a store, as ``torchrun`` says in the environment."""
    device = _device(int(os.environ.get("LOCAL_RANK", rank)))
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if store is not None and platform.system() == "Linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all are on this computer
    dist.init_process_group(
        "nccl" if device.type == "cuda" else "gloo",
        rank=rank,
        world_size=count,
        store=store,
        timeout=_PATIENCE,
    )
    try:
        yield Processes(rank, count, device)
    finally:
        dist.destroy_process_group()


def _device(index: int) -> torch.device:
    return torch.device("cuda", index) if torch.cuda.is_available() else torch.device("cpu")


def _use_processor(threads: int | None) -> None:
    """Set up this process for training on a processor; ``torchrun`` decides on threads itself."""
    # Convolutions are prepared for each size of a group of images; there are thousands of sizes.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16384")
    keep_freed_memory()
    if threads is not None:
        torch.set_num_threads(threads)
