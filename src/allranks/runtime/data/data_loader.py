"""A data loader whose batches arrive on the rank's device, and which resumes within an epoch."""

import os
import random
import signal
import sys
import threading
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils import data
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.data import get_worker_info

from allranks.errors import InputError, Problem
from allranks.hardware import shared_memory
from allranks.runtime.checkpoints import random_states
from allranks.runtime.data.sampler import GlobalBatches


class DataLoader:
    """The batches of a data set, on this rank's device.

        sampler = runtime.ResumableSampler(len(dataset), ranks, batch_size=256)
        loader = runtime.DataLoader(dataset, sampler, num_workers=8)
        checkpoints = runtime.Checkpoints(folder, ranks, {"training": training, "loader": loader}, every_steps=500)
        checkpoints.load()
        for epoch in range(loader.epoch, epochs):
            for images, labels in loader:
                loss = cross_entropy(training.model(images), labels) * loader.weight

    dataset:         a map-style data set, such as a TensorDataset or one of Hugging Face's, or a ShardedDataset
    sampler:         a ResumableSampler, or a ShardSampler for a ShardedDataset
    num_workers:     number of processes per rank that load batches; 0 loads them in the training's own process
    prefetch_factor: batches that each worker loads in advance
    collate_fn:      returns a batch for a list of samples; by default, torch's default_collate. It runs in the worker.

    torch's DataLoader loads the batches. On a GPU they come through pinned memory, and the next one is copied while a
    step is computed. Workers continue from one epoch to the next.

    One iteration is the rest of an epoch. The state for a checkpoint is the sampler's position after the last batch
    that the loop received, so a training resumes with any number of ranks and workers. The global random number
    generators of Python, numpy and torch are seeded by the sampler's seed, the epoch and the index of the sample. A
    data set therefore draws the same numbers with any number of ranks and workers, also after a resume. (A data set
    with a method __getitems__ is seeded once per batch.)

    Workers ignore the SIGTERM of an eviction until the training has saved. Raise InputError if the sampler does not fit
    the data set, or, at the first batch, if /dev/shm is too small for the batches that the workers load in advance.
    Raise RuntimeError, with the rank and the cause, if a worker dies.
    """

    def __init__(
        self,
        dataset: data.Dataset[Any],
        sampler: GlobalBatches,
        *,
        num_workers: int = 0,
        prefetch_factor: int = 2,
        collate_fn: Callable[[list[Any]], Any] | None = None,
    ) -> None:
        _check(dataset, sampler, num_workers, prefetch_factor)
        self.sampler = sampler
        self._ranks = sampler.ranks
        self._in_advance = num_workers * prefetch_factor
        self._checked = num_workers == 0
        sampler.num_workers = max(1, num_workers)
        self._loader: data.DataLoader[Any] = data.DataLoader(
            _SeededDataset(dataset, sampler.seed),
            batch_sampler=_Indices(sampler),
            num_workers=num_workers,
            prefetch_factor=prefetch_factor if num_workers else None,
            persistent_workers=num_workers > 0,
            pin_memory=self._ranks.device.type == "cuda",
            collate_fn=_Collate(collate_fn),
            worker_init_fn=_start_worker,
            # The default of Python 3.14, a fork server, imports torch in each worker and needs picklable data sets.
            multiprocessing_context="fork" if num_workers else None,
            # Otherwise an epoch would draw a number from the training's generator.
            generator=torch.Generator(),
        )

    @property
    def epoch(self) -> int:
        """The current epoch, from 0."""
        return self.sampler.epoch

    @property
    def weight(self) -> float:
        """Factor for the mean loss of the last batch; see ResumableSampler."""
        return self.sampler.weight

    def __len__(self) -> int:
        """Return the number of batches per epoch, the same on every rank."""
        return len(self.sampler)

    def __iter__(self) -> Iterator[Any]:
        """Yield the remaining batches of the epoch. After the last one, the next epoch begins."""
        return self.sampler.epoch_batches(on_device(self._batches(), self._ranks.device))

    def state_dict(self) -> dict[str, Any]:
        """Return the position after the last batch that the loop received."""
        return self.sampler.state_dict()

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Restore a position, with any number of ranks and workers. Raise InputError as the sampler does."""
        self.sampler.load_state_dict(state)

    def _batches(self) -> Iterator[Any]:
        iterator = iter(self._loader)
        while True:
            try:
                batch = self._next(iterator)
            except RuntimeError as error:
                raise self._clear(error) from None
            if batch is _END:
                return
            if isinstance(batch, _Refused):
                raise InputError(*batch.problems)
            if not self._checked:
                self._checked = True
                self._check_shared_memory(batch)
            yield batch

    def _next(self, iterator: Iterator[Any]) -> Any:
        try:
            return next(iterator, _END)
        except (EOFError, ConnectionError, FileNotFoundError) as error:
            # A worker has died while its batch was fetched. torch detects this when the next batch is fetched.
            if not self._in_advance or str(error).startswith("Caught "):
                raise
            next(iterator, _END)
            raise

    def _check_shared_memory(self, batch: Any) -> None:
        total = shared_memory.found()
        each = sum(leaf.nbytes for leaf in tree_leaves(batch) if isinstance(leaf, torch.Tensor))
        needed = each * self._in_advance * self._ranks.local_world_size
        if 0 < total < needed:
            raise InputError(self._too_small(f"{shared_memory.mib(needed)} for batches of {shared_memory.mib(each)}"))

    def _too_small(self, needed: str) -> Problem:
        total = shared_memory.mib(shared_memory.found())
        found = f"/dev/shm has {total} for {self._ranks.local_world_size} ranks with {self._in_advance} batches each"
        expected = f"at least {needed} (num_workers x prefetch_factor on each rank)"
        fix = "set a larger resources.shm_size (Azure ML's default is 2g), or fewer dataloader_num_workers"
        return Problem("resources.shm_size", found, expected, fix, code="preflight")

    def _clear(self, error: RuntimeError) -> Exception:
        """Convert an error of torch's DataLoader to a clear one."""
        text = str(error).strip()
        if not text.startswith("DataLoader worker"):
            return error
        first = text.splitlines()[0]
        if "Bus error" in text:
            problem = self._too_small("the batches that the workers load in advance")
        else:
            problem = Problem(
                where="data loader",
                found=first,
                expected="workers that live as long as the training",
                fix="see its own error in the log above. A worker that was killed may have run out of memory: use "
                "fewer dataloader_num_workers, or instances with more memory",
            )
        rank = f"rank {self._ranks.rank} (instance {self._ranks.instance_rank})"
        return RuntimeError(f"a data loader worker of {rank} died: {problem}")


def _check(dataset: data.Dataset[Any], sampler: GlobalBatches, num_workers: int, prefetch_factor: int) -> None:
    for name, value, minimum in (("num_workers", num_workers, 0), ("prefetch_factor", prefetch_factor, 1)):
        if value < minimum:
            raise InputError(Problem(name, str(value), f"at least {minimum}"))
    if isinstance(dataset, data.IterableDataset):
        expected = "a data set whose position can be divided again between another number of ranks"
        fix = "use a ShardedDataset with a ShardSampler for data that is read from front to back"
        raise InputError(Problem("data set", f"{type(dataset).__qualname__}, an IterableDataset", expected, fix))
    length = len(dataset) if hasattr(dataset, "__len__") else sampler.length
    if length != sampler.length:
        found = f"{sampler.length} samples, and {length} in the data set"
        raise InputError(Problem("sampler", found, "the same number", "create the sampler with len(dataset)"))


_END = object()


def on_device(batches: Iterator[Any], device: torch.device) -> Iterator[Any]:
    """Yield the batches with their tensors on a device.

    On a CUDA device, each batch is copied on another stream, while the step of the batch before it is computed.
    The source must be in pinned memory for that. Other objects are moved by their method `to` if they have one.
    """
    if device.type != "cuda":
        for batch in batches:
            yield _moved(batch, device)
        return
    stream = _stream(device)
    following = _copied(batches, device, stream)
    while following is not None:
        torch.cuda.current_stream(device).wait_stream(stream)
        (batch,) = following
        following = _copied(batches, device, stream)
        yield batch
        del batch  # its memory is free for the copy after the next


@cache
def _stream(device: torch.device) -> Any:
    """Return the stream of all copies to a device. Streams do not share the memory of tensors."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def _copied(batches: Iterator[Any], device: torch.device, stream: Any) -> tuple[Any] | None:
    """Start copying the next batch, and return it; None after the last one."""
    for batch in batches:
        # The copy may reuse the memory of an earlier batch, which the steps so far may still read.
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            return (_moved(batch, device),)
    return None


def _moved(batch: Any, device: torch.device) -> Any:
    def move(value: Any) -> Any:
        if isinstance(value, Tensor) or callable(getattr(value, "to", None)):
            return value.to(device, non_blocking=True)
        return value

    return tree_map(move, batch)


class _Indices(data.Sampler[list[int]]):
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

    @staticmethod
    def samples_of(batch: list[int]) -> list[int]:
        """Return the indices of a batch in the data set. `allranks rehearse` records them."""
        return batch[1:]


@dataclass(frozen=True)
class _Refused:
    """An InputError that a data set raised in a worker."""

    problems: tuple[Problem, ...]


class _SeededDataset(data.Dataset[Any]):
    """A data set whose random numbers depend only on the seed, the epoch and the sample.

    A sample is therefore augmented in the same way on every rank and worker, also after a resume.
    """

    def __init__(self, dataset: data.Dataset[Any], seed: int) -> None:
        self._dataset, self._seed = dataset, seed

    def __getitems__(self, epoch_and_indices: Sequence[int]) -> list[Any] | _Refused:
        """Return the samples of a batch from `_Indices`."""
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
                return _Refused(error.problems)

    def _set_seed(self, epoch: int, index: int) -> None:
        seed = zlib.crc32(f"{self._seed} {epoch} {index}".encode())
        random.seed(seed)
        # Not torch.manual_seed, which also seeds the GPUs.
        torch.default_generator.manual_seed(seed)
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed(seed)


class _Collate:
    """Combine samples into a batch, or pass on the error of the data set. function: by default, torch's."""

    def __init__(self, function: Callable[[list[Any]], Any] | None) -> None:
        self._function = function or data.default_collate

    def __call__(self, samples: list[Any] | _Refused) -> Any:
        """Return a batch, or the refusal."""
        return samples if isinstance(samples, _Refused) else self._function(samples)


def _start_worker(_number: int) -> None:
    """Let only the training end this worker. A platform that evicts an instance may send SIGTERM to every process, but
    the training needs batches until it saves."""
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
    device = torch.device("cpu")
    states = random_states.capture(device)
    try:
        yield
    finally:
        random_states.restore(states, device)
