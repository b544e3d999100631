"""The training loop: one for every phase and every kind of model; and what a step minimises."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from hardcorenas.jobs.signals import Interrupted, StopSignals
from hardcorenas.torchvision_import import prepare_torchvision
from hardcorenas.train.data import BatchPlan, ImageData, num_batches, training_batches
from hardcorenas.train.data.chance import Use, draws
from hardcorenas.train.state import TrainingState

if TYPE_CHECKING:
    from hardcorenas.files import Json
    from hardcorenas.jobs.processes import Processes
    from hardcorenas.supernet.paths import Paths
    from hardcorenas.train.recipe import Recipe

PathSampler = Callable[[int, np.random.Generator], "Paths | tuple[Paths, ...]"]

STEPS_PER_MOMENT = 10


@dataclass(frozen=True)
class Supervised:
    """Cross-entropy with smoothed labels and mixed images; follows a teacher where there is one.

    Attributes:
        num_classes: Number of classes.
        label_smoothing: Share of the target spread over all classes.
        mixup: Parameter of the Beta distribution of mixing weights; 0 for none.
        sample_paths: Draws each image's path; None runs the model as it is.
        teacher: A network to imitate, in evaluation mode; None for labels alone.
        distillation: Share of the loss that is the teacher's.
        side: At which the model sees images, the teacher as they are; None for both alike.
    """

    num_classes: int
    label_smoothing: float = 0.0
    mixup: float = 0.0
    sample_paths: PathSampler | None = None
    teacher: nn.Module | None = None
    distillation: float = 0.0
    side: int | None = None

    def loss(
        self, model: nn.Module, images: Tensor, labels: Tensor, rng: np.random.Generator
    ) -> Tensor:
        """Return the mean loss over the images, ready to differentiate.

        Args:
            model: What is trained; called once.
            images: N×C×H×W, normalised.
            labels: Class numbers.
            rng: For what is drawn anew in every step; torch's own generator is seeded too.
        """
        targets = labels
        if self.mixup:
            prepare_torchvision()
            from torchvision.transforms import v2

            mix = v2.MixUp(alpha=self.mixup, num_classes=self.num_classes)
            images, targets = mix(images, labels)
            images = images.contiguous(memory_format=torch.channels_last)
        paths = () if self.sample_paths is None else (self.sample_paths(len(images), rng),)
        logits = model(images if self.side is None else shrunk(images, self.side), *paths)
        loss = functional.cross_entropy(logits, targets, label_smoothing=self.label_smoothing)
        if self.teacher is None:
            return loss
        with torch.no_grad():
            taught = self.teacher(images)
        imitation = functional.kl_div(
            functional.log_softmax(logits.float(), 1),
            functional.log_softmax(taught.float(), 1),
            log_target=True,
            reduction="batchmean",
        )
        return (1 - self.distillation) * loss + self.distillation * imitation


@dataclass(frozen=True)
class Phase:
    """What is trained for how long.

    Attributes:
        name: What to call it.
        number: Tells its random numbers from those of other phases.
        task: Gives the loss.
        epochs: How many times all training images are seen.
        learning_rate: At its peak.
        first_step: Steps of earlier phases, for messages.
        one_path: Whether all pieces of a batch, in all processes, draw the same random numbers.
        all_used: Whether every weight takes part in every step.
        resolutions: Sides of images, of which each step draws one; empty leaves them as they are.
    """

    name: str
    number: int
    task: Supervised
    epochs: int
    learning_rate: float
    first_step: int = 0
    one_path: bool = False
    all_used: bool = False
    resolutions: tuple[int, ...] = ()

    def order_key(self, seed: int) -> tuple[int, ...]:
        """Return what decides orders and augmentations of a seed; no other phase or seed has it."""
        # The supernet's two phases interleave; that leaves no number for further ones.
        return (2 * seed + self.number,) if self.number < 2 else (seed, self.number)

    def task_of(self, seed: int, step: int) -> Supervised:
        """Return the task of a step, at a resolution drawn for it; the same in all processes."""
        if not self.resolutions:
            return self.task
        bits = int(draws(Use.RESOLUTION, seed, self.number, indices=np.array([step]))[0])
        return replace(self.task, side=self.resolutions[bits % len(self.resolutions)])


@dataclass
class Callbacks:
    """What the loop tells others, in every process alike.

    Attributes:
        save: Takes the state to go on from; called in the first process only.
        progress: Takes the step; by name the mean ``loss`` of the last steps, their
            ``learning_rate`` and ``images_per_second``.
        epoch_done: Takes the averaged model after an epoch, and the steps done.
        save_seconds: How much work a sudden end may cost.
    """

    save: Callable[[Json], None]
    progress: Callable[..., None]
    epoch_done: Callable[[nn.Module, int], None]
    save_seconds: float = 60.0


def train(
    model: nn.Module,
    phase: Phase,
    data: ImageData,
    recipe: Recipe,
    *,
    seed: int,
    processes: Processes,
    callbacks: Callbacks,
    signals: StopSignals,
    resumed: Json | None = None,
) -> nn.Module:
    """Train a model in place; return the moving average of its weights.

    Every random number is a function of the seed, the phase, the step and the process. So a run
    that goes on from a saved state ends with the same weights, to the bit, as one that was never
    interrupted.

    Args:
        model: What to train.
        phase: The task, and for how long.
        data: Training images.
        recipe: All other numbers.
        seed: Decides everything that is random.
        processes: Who shares the work.
        callbacks: Saving and telling.
        signals: When they have come, training saves and ends after the step.
        resumed: A state that was handed to ``callbacks.save``.
    """
    steps_per_epoch = num_batches(len(data.train), recipe.batch_size)
    plan = BatchPlan(recipe.batch_size, phase.order_key(seed), recipe.augmentation, recipe.flip)
    state = TrainingState(
        model,
        recipe,
        learning_rate=phase.learning_rate,
        num_steps=phase.epochs * steps_per_epoch,
        warmup_steps=round(recipe.warmup_epochs * steps_per_epoch),
        num_classes=len(data.classes),
        device=processes.device,
    )
    if resumed is not None:
        state.load_state_dict(resumed)
    shared = processes.share_gradients(model.train(), all_used=phase.all_used)
    statistics = [buffer for buffer in model.buffers() if buffer.is_floating_point()]
    device, count, first_step = processes.device, recipe.accumulate, phase.first_step
    losses: list[float] = []
    last_save = last_moment = time.monotonic()

    if state.step and state.step % steps_per_epoch == 0:  # saved before it was looked at
        callbacks.epoch_done(state.averaged.module, state.step)
    for epoch in range(state.step // steps_per_epoch, phase.epochs):
        first = state.step - epoch * steps_per_epoch
        batches = training_batches(data, data.train, plan, epoch, processes, first_batch=first)
        for images, labels in batches:
            rate, task = state.learning_rate, phase.task_of(seed, state.step)

            # Gradients: of the pieces of a batch one after the other, met in the last.
            state.optimizer.zero_grad()
            loss = 0.0
            pieces = (whole.to(device).tensor_split(count) for whole in (images, labels))
            for number, (some, their_labels) in enumerate(zip(*pieces, strict=True)):
                rng = _seed_piece(seed, phase, state.step, processes.rank * count + number)
                with _meeting_if(shared, number == count - 1), state.autocast:
                    part = task.loss(shared, some, their_labels, rng)
                part = part * (len(some) / len(images))
                state.scaler.scale(part).backward()  # type: ignore[no-untyped-call]
                loss += float(part.detach())
            total, asked = processes.sum(loss, signals.received > 0)
            loss = total / processes.count
            state.divergence.update(loss, first_step + state.step, phase.learning_rate)

            # The step itself, and all that follows weights.
            state.update_weights(recipe.clip_norm)
            processes.average_(statistics)
            state.averaged.update_parameters(model)
            state.step += 1

            # Telling, saving, stopping.
            losses.append(loss)
            now = time.monotonic()
            if len(losses) == STEPS_PER_MOMENT:
                mean = sum(losses) / len(losses)
                speed = recipe.batch_size * len(losses) / (now - last_moment)
                facts = {"loss": mean, "learning_rate": rate, "images_per_second": speed}
                callbacks.progress(state.step, **facts)
                losses, last_moment = [], now
            if processes.is_first and (asked or now - last_save > callbacks.save_seconds):
                callbacks.save(state.state_dict())
                last_save = time.monotonic()
            if asked:
                raise Interrupted(signals.received or signal.SIGTERM, first_step + state.step)
        before = time.monotonic()
        _finish_epoch(state, callbacks, processes)
        last_moment += time.monotonic() - before  # judging is not training
    averaged: nn.Module = state.averaged.module
    return averaged


def shrunk(images: Tensor, side: int) -> Tensor:
    """Return images at a smaller size, as `data.loading.resized` shows them."""
    if images.shape[-1] == side:
        return images
    smaller = functional.interpolate(images, (side, side), mode="bilinear", antialias=True)
    return smaller.contiguous(memory_format=torch.channels_last)


def _finish_epoch(state: TrainingState, callbacks: Callbacks, processes: Processes) -> None:
    """Show the averaged model; if that is the moment to stop, save first."""
    try:
        callbacks.epoch_done(state.averaged.module, state.step)
    except Interrupted:
        if processes.is_first:
            callbacks.save(state.state_dict())
        raise


def _seed_piece(seed: int, phase: Phase, step: int, piece: int) -> np.random.Generator:
    """Seed all randomness of a piece of a batch, torch's too; return a generator for its paths."""
    key = (seed, phase.number, 0 if phase.one_path else piece)
    bits = int(draws(Use.STEP, *key, indices=np.array([step]))[0])
    torch.manual_seed(bits & (2**63 - 1))
    return np.random.default_rng(bits)


def _meeting_if(model: nn.Module, is_last: bool) -> AbstractContextManager[None]:
    """Let processes exchange gradients only in the last piece of a batch."""
    if isinstance(model, DistributedDataParallel) and not is_last:
        return model.no_sync()
    return nullcontext()
