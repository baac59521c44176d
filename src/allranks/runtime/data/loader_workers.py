"""What runs in the workers of a data loader: seeds, signals, and errors that the training reports."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import Dataset, Sampler, default_collate, get_worker_info

from allranks.errors import InputError, Problem
from allranks.runtime.data.global_batches import GlobalBatches


class Indices(Sampler[list[int]]):
    """The batches of a sampler, each after the number of its epoch, which workers need for their seeds."""

    def __init__(self, sampler: GlobalBatches) -> None:
        self._sampler = sampler

    def __iter__(self) -> Iterator[list[int]]:
        """Yield [epoch, index, ...] for each batch."""
        for indices in self._sampler:
            yield [self._sampler.epoch, *indices]

    def __len__(self) -> int:
        """Return the number of batches per epoch."""
        return len(self._sampler)


@dataclass(frozen=True)
class Refused:
    """An InputError that a data set raised in a worker."""

    problems: tuple[Problem, ...]


class SeededDataset(Dataset[Any]):
    """A data set whose random numbers depend on the seed, the epoch and the sample only.

    A sample is therefore augmented in the same way whichever rank or worker reads it, and also after a resume.
    """

    def __init__(self, dataset: Dataset[Any], seed: int) -> None:
        self._dataset, self._seed = dataset, seed

    def __getitems__(self, epoch_and_indices: Sequence[int]) -> list[Any] | Refused:
        """Return the samples of a batch from `Indices`."""
        epoch, *indices = epoch_and_indices
        fetch_batch: Callable[[list[int]], list[Any]] | None = getattr(self._dataset, "__getitems__", None)
        with _own_random_state():
            try:
                if fetch_batch is not None:
                    self._set_seed(epoch, indices[0])
                    return fetch_batch(indices)
                samples = []
                for index in indices:
                    self._set_seed(epoch, index)
                    samples.append(self._dataset[index])
                return samples
            except InputError as error:
                return Refused(error.problems)

    def _set_seed(self, epoch: int, index: int) -> None:
        seed = zlib.crc32(f"{self._seed} {epoch} {index}".encode())
        random.seed(seed)
        # Not torch.manual_seed, which also seeds the GPUs.
        torch.default_generator.manual_seed(seed)
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed(seed)


class Collate:
    """Collate samples, unless the data set refused them. function: by default, torch's."""

    def __init__(self, function: Callable[[list[Any]], Any] | None) -> None:
        self._function = function or default_collate

    def __call__(self, samples: list[Any] | Refused) -> Any:
        """Return a batch, or the refusal."""
        return samples if isinstance(samples, Refused) else self._function(samples)


def start_worker(_number: int) -> None:
    """Prepare a worker, so that only the training ends it. A platform that evicts an instance may send SIGTERM to every
    process, and the training still needs batches until the step at which it saves."""
    # torch's own handler in workers distinguishes the senders too, and ends a worker at any other process's signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), name="allranks-worker", daemon=True).start()


def _end_with_parent(parent: int) -> None:
    while signal.sigwaitinfo({signal.SIGTERM}).si_pid != parent:
        pass
    os._exit(0)


@contextmanager
def _own_random_state() -> Generator[None]:
    """Context manager that restores the random state of the training's own process, if no worker loads the data."""
    if get_worker_info() is not None:
        yield
        return
    state, torch_state = random.getstate(), torch.get_rng_state()
    numpy = sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy else None
    try:
        yield
    finally:
        random.setstate(state)
        torch.set_rng_state(torch_state)
        if numpy and numpy_state is not None:
            numpy.random.set_state(numpy_state)
