"""A rank of benchmarks/training.py: runs a recipe's training, and other loops in turn with it, in one process group.

    torchrun ... recipe_steps.py RECIPE TURNS LOOP,... ARGUMENT ...

The first loop takes every turn, the others every fifth. The arguments are those of the recipe's train.py. Rank 0 prints
a line of JSON: for each loop the seconds per step of the recipe and of the loop, for each turn that the loop took.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn, optim
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from allranks import runtime

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench.recipes import RECIPES, Recipe

WARM_UP_TURNS = 2
BLOCK = 10
"""Steps of a block: as many as there are from one logged step to the next."""
EVERY = 5
"""Turns after which the loops that are for information take one too."""


class Measured(BaseException):
    """All turns have been measured: the recipe's training, which would go on, ends here."""


class RecordingStrategy:
    """A strategy that keeps the training that it prepares, and a copy of what it has prepared."""

    training: runtime.Training

    def __init__(self, strategy: runtime.Strategy) -> None:
        self.create = strategy.create
        self._strategy = strategy

    def prepare(
        self, model: nn.Module, optimizer: optim.Optimizer, settings: runtime.TrainingSettings, schedule: Any
    ) -> runtime.Training:
        """Prepare as the strategy does."""
        self._original = copy.deepcopy((model, optimizer.param_groups))
        self._optimizer, self._schedule, self.max_grad_norm = type(optimizer), schedule, settings.max_grad_norm
        self.training = self._strategy.prepare(model, optimizer, settings, schedule)
        return self.training

    def another(self) -> tuple[nn.Module, optim.Optimizer, Any]:
        """Return a copy of the model before it was prepared, with an optimizer and a schedule of its own."""
        model, groups = copy.deepcopy(self._original)
        optimizer: Any = self._optimizer(groups)
        return model, optimizer, self._schedule(optimizer)


class TurningLoader(runtime.DataLoader):
    """A loader that lets other loops take their turns between the blocks of batches that it yields."""

    turns: Turns

    def __init__(self, dataset: Any, sampler: Any, **options: Any) -> None:
        super().__init__(dataset, sampler, **options)
        self.dataset, self.collate_fn = dataset, options.get("collate_fn")
        self.batch_size = sampler.batch_size // sampler.ranks.world_size

    def __iter__(self) -> Iterator[Any]:
        for batch in super().__iter__():
            self.turns.next_step(self)
            yield batch


class Turns:
    """Lets the other loops take their turns between the blocks of the recipe's steps, and takes the time of each."""

    def __init__(
        self, names: Sequence[str], turns: int, loop_of: Callable[[str, TurningLoader], Iterator[None]]
    ) -> None:
        self.times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        self._names, self._turns, self._loop_of = names, turns + WARM_UP_TURNS, loop_of
        self._loops: dict[str, Iterator[None]] = {}
        self._others: dict[str, float] = {}
        self._steps, self._turn, self._started = 0, 0, 0.0
        self._shuffle = random.Random(0).shuffle

    def next_step(self, loader: TurningLoader) -> None:
        """Count a step of the recipe that is about to begin. Raise Measured after the last turn."""
        if not self._loops:
            self._loops = {name: self._loop_of(name, loader) for name in self._names}
        # The recipe logs after multiples of its steps: in the middle of a block, so that all of it belongs to one.
        if self._steps % BLOCK == BLOCK // 2:
            if self._others:
                self._end_turn((time.perf_counter() - self._started) / BLOCK)
            names = list(self._names if self._turn % EVERY == 0 else self._names[:1])
            self._shuffle(names)  # the same on every rank
            self._others = {name: self._block(name) for name in names}
            self._started = time.perf_counter()
        self._steps += 1

    def _end_turn(self, ours: float) -> None:
        if self._turn >= WARM_UP_TURNS:
            for name, seconds in self._others.items():
                self.times[name].append((ours, seconds))
        self._turn += 1
        if self._turn == self._turns:
            raise Measured

    def _block(self, name: str) -> float:
        started = time.perf_counter()
        for _ in range(BLOCK):
            next(self._loops[name])
        return (time.perf_counter() - started) / BLOCK


class Wrapped(NamedTuple):
    """What a library has distributed, and what takes the place of `loss.backward()` and of clipping."""

    model: Any
    optimizer: Any
    schedule: Any
    batches: Iterable[Any]
    clip: Callable[[], object] | None
    backward: Callable[[Tensor], None] = torch.autograd.backward


def loop(wrapped: Wrapped, recipe: Recipe) -> Iterator[None]:
    """The loop that a user writes by hand."""
    for batch in chain.from_iterable(repeat(wrapped.batches)):
        wrapped.backward(recipe.loss(wrapped.model, batch))
        if wrapped.clip:
            wrapped.clip()
        wrapped.optimizer.step()
        wrapped.schedule.step()
        wrapped.optimizer.zero_grad()
        yield


def by_hand(ranks: runtime.Ranks, strategy: RecordingStrategy, loader: TurningLoader) -> Wrapped:
    """The recipe's model and optimizer, and a loader like the recipe's."""
    size = loader.batch_size * ranks.world_size
    sampler = runtime.ResumableSampler(loader.sampler.length, ranks, batch_size=size, seed=1, drop_last=True)
    batches = RUNTIMES_LOADER(loader.dataset, sampler, collate_fn=loader.collate_fn)
    training = strategy.training
    clip = _clip(training.model, strategy.max_grad_norm)
    return Wrapped(training.model, training.optimizer, training.schedule, batches, clip)


def torchs(ranks: runtime.Ranks, strategy: RecordingStrategy, loader: TurningLoader) -> Wrapped:
    """torch's DistributedDataParallel and DataLoader."""
    model, optimizer, schedule = strategy.another()
    sampler: Any = DistributedSampler(loader.dataset, ranks.world_size, ranks.rank, drop_last=True)
    batches = DataLoader(
        loader.dataset, loader.batch_size, sampler=sampler, drop_last=True, collate_fn=loader.collate_fn
    )
    distributed = DistributedDataParallel(model)
    return Wrapped(distributed, optimizer, schedule, batches, _clip(distributed, strategy.max_grad_norm))


def accelerate(_ranks: runtime.Ranks, strategy: RecordingStrategy, loader: TurningLoader) -> Wrapped:
    """Hugging Face Accelerate, which uses DistributedDataParallel here."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model, optimizer, schedule = strategy.another()
    model, optimizer, batches = accelerator.prepare(model, optimizer, _plain(loader))
    norm = strategy.max_grad_norm
    clip = (lambda: accelerator.clip_grad_norm_(model.parameters(), norm)) if norm else None
    return Wrapped(model, optimizer, schedule, batches, clip, accelerator.backward)


def fabric(ranks: runtime.Ranks, strategy: RecordingStrategy, loader: TurningLoader) -> Wrapped:
    """Lightning Fabric, which uses DistributedDataParallel here."""
    from lightning.fabric import Fabric

    lightning = Fabric(accelerator="cpu", devices=ranks.local_world_size, num_nodes=1, strategy="ddp")
    lightning.launch()
    model, optimizer, schedule = strategy.another()
    distributed, optimizer = lightning.setup(model, optimizer)
    norm = strategy.max_grad_norm
    clip = (lambda: lightning.clip_gradients(distributed, optimizer, max_norm=norm)) if norm else None
    batches = lightning.setup_dataloaders(_plain(loader))
    return Wrapped(distributed, optimizer, schedule, batches, clip, lightning.backward)


def _plain(loader: TurningLoader) -> DataLoader[Any]:
    """Return torch's loader of the same batches, for a library to divide between the ranks."""
    return DataLoader(loader.dataset, loader.batch_size, shuffle=True, drop_last=True, collate_fn=loader.collate_fn)


def _clip(model: nn.Module, max_norm: float | None) -> Callable[[], object] | None:
    return (lambda: nn.utils.clip_grad_norm_(model.parameters(), max_norm)) if max_norm else None


LOOPS = {"by hand": by_hand, "torch": torchs, "accelerate": accelerate, "fabric": fabric}
"""Loops by name, with what prepares a model as their users do by hand."""

RUNTIMES_LOADER = runtime.DataLoader


def measure(ranks: runtime.Ranks) -> None:
    recipe, count, names = RECIPES[sys.argv[1]], int(sys.argv[2]), sys.argv[3].split(",")
    strategy = RecordingStrategy(ranks.strategy)
    turns = Turns(names, count, lambda name, loader: loop(LOOPS[name](ranks, strategy, loader), recipe))
    TurningLoader.turns = turns
    runtime.DataLoader = TurningLoader  # type: ignore[misc]
    sys.path[:0] = recipe.import_path()
    spec = ["--spec", str(Path(sys.path[0], "component.yaml"))]
    # No validation, no checkpoint, and no end before all turns are measured.
    never = [f"--{name}={10**8}" for name in ("max_steps", "save_steps", *recipe.never)]
    sys.argv[1:] = [*spec, *sys.argv[4:], *never]
    from train import train

    try:
        train(dataclasses.replace(ranks, strategy=strategy))
    except Measured:
        if ranks.is_main:
            print(json.dumps({"times": turns.times}), flush=True)
        ranks.barrier()


if __name__ == "__main__":
    runtime.main(measure)
