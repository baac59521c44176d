"""The data loader in one process, and on ranks that are evicted with their workers."""

import multiprocessing
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError, Problem
from allranks.hardware import shared_memory
from allranks.runtime.clean_exit import EVICTED
from allranks.runtime.data.data_loader import DataLoader, on_device
from allranks.runtime.data.sampler import ResumableSampler
from allranks.runtime.ranks.ranks import Ranks
from bounded import until

Place: TypeAlias = Callable[[int, int], Ranks]


class Noisy(Dataset[Any]):
    """Samples with random numbers of every generator."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> tuple[int, float, float, float]:
        return index, random.random(), float(numpy.random.rand()), float(torch.rand(()))


class Stream(IterableDataset[int]):
    """Samples without positions."""

    def __iter__(self) -> Iterator[int]:
        yield 0


class Ending(Dataset[Any]):
    """A data set with a sample that ends its worker, or refuses to be read."""

    def __init__(self, end: Callable[[], object]) -> None:
        self._end = end

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        if index == 6:
            self._end()
        return index


def loader(place: Place, dataset: Dataset[Any], *, rank: int = 0, world_size: int = 1, **options: Any) -> DataLoader:
    sampler = ResumableSampler(
        len(dataset),  # type: ignore[arg-type]
        place(rank, world_size),
        batch_size=4,
        shuffle=options.pop("shuffle", False),
    )
    return DataLoader(dataset, sampler, **options)


def rows(batches: Iterator[Any] | DataLoader) -> list[tuple[float, ...]]:
    return [tuple(float(column[row]) for column in batch) for batch in batches for row in range(len(batch[0]))]


def test_augmentation_depends_on_epoch_and_sample_alone(place: Place) -> None:
    """Not on the number of ranks and workers, and not on a resume."""
    alone = loader(place, Noisy(), shuffle=True)
    epochs = [sorted(rows(alone)) for _ in range(2)]
    assert len({row[1:] for epoch in epochs for row in epoch}) == 24
    with_workers = loader(place, Noisy(), shuffle=True, num_workers=2)
    first = next(iter(with_workers))
    resumed = loader(place, Noisy(), shuffle=True, num_workers=1)
    resumed.load_state_dict(with_workers.state_dict())
    assert sorted(rows(iter([first])) + rows(resumed)) == epochs[0]
    shares = [rows(loader(place, Noisy(), rank=rank, world_size=2, shuffle=True)) for rank in range(2)]
    assert sorted(shares[0] + shares[1]) == epochs[0]


def test_the_training_keeps_its_random_numbers(place: Place) -> None:
    def draw() -> tuple[float, float, float]:
        return random.random(), float(numpy.random.rand()), float(torch.rand(()))

    for workers in (0, 1):
        random.seed(1)
        numpy.random.seed(1)
        torch.manual_seed(1)
        expected = draw()
        random.seed(1)
        numpy.random.seed(1)
        torch.manual_seed(1)
        next(iter(loader(place, Noisy(), num_workers=workers)))
        assert draw() == expected


def test_batches_that_were_loaded_in_advance_are_not_counted(place: Place) -> None:
    dataset = TensorDataset(torch.arange(40))
    before = loader(place, dataset, num_workers=2)
    for number, _ in enumerate(before, start=1):
        if number == 3:
            state = before.state_dict()
            break
    assert len(before) == 10
    after = loader(place, dataset)
    after.load_state_dict(state)
    assert next(iter(after))[0].tolist() == [12, 13, 14, 15]
    # The loop that ended early goes on after its last batch, with the same workers.
    assert [len(batch[0]) for batch in before] == [4] * 7
    assert before.epoch == 1


@pytest.mark.parametrize("end", [lambda: os._exit(3), lambda: os.kill(os.getpid(), signal.SIGKILL)])
def test_a_dead_worker(place: Place, end: Callable[[], object]) -> None:
    with pytest.raises(RuntimeError, match=r"a data loader worker of rank 1 \(instance 0\) died") as error:
        list(loader(place, Ending(end), rank=1, world_size=2, num_workers=1))
    assert error.value.__cause__ is None
    assert "fewer dataloader_num_workers" in str(error.value)


def test_a_worker_that_dies_before_its_batch_is_fetched(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch lies in a file, whose descriptor the worker hands over when it is asked for it."""
    monkeypatch.setattr("torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL", 0.1)
    is_sent = multiprocessing.Event()
    dataset = Ending(lambda: is_sent.wait(60) and os._exit(3))
    own = loader(place, dataset, num_workers=1)
    batches: Any = iter(own._loader)
    handler = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # torch's interrupts whatever this process does
    try:
        until(lambda: not batches._worker_result_queue.empty())
        is_sent.set()
        until(lambda: not batches._workers[0].is_alive())
        with pytest.raises(RuntimeError, match=r"DataLoader worker .* exited unexpectedly"):
            own._next(batches)
    finally:
        signal.signal(signal.SIGCHLD, handler)


def test_a_worker_without_shared_memory(place: Place) -> None:
    """As torch reports a bus error."""
    error = RuntimeError("DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that ...")
    clear = loader(place, Noisy(), num_workers=2)._clear(error)
    assert "resources.shm_size: /dev/shm has" in str(clear)
    assert "4 batches each" in str(clear)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_data_set_that_refuses(place: Place, workers: int) -> None:
    def refuse() -> None:
        raise InputError(Problem("input data", "no picture", "a JPEG file"))

    with pytest.raises(InputError) as error:
        list(loader(place, Ending(refuse), num_workers=workers))
    assert error.value.problems == (Problem("input data", "no picture", "a JPEG file"),)


def test_shared_memory_that_is_too_small(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_memory, "found", lambda: 150)
    dataset = TensorDataset(torch.zeros(40, dtype=torch.int64))
    assert len(list(loader(place, dataset, num_workers=2))) == 10
    with pytest.raises(InputError, match=r"/dev/shm has .* for 3 ranks with 4 batches each"):
        next(iter(loader(place, dataset, rank=2, world_size=3, num_workers=2)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_workers": -1}, "num_workers: -1"),
        ({"prefetch_factor": 0}, "prefetch_factor: 0"),
        ({"dataset": TensorDataset(torch.zeros(3))}, "12 samples, and 3 in the data set"),
        ({"dataset": Stream()}, "ShardedDataset"),
    ],
)
def test_wrong_arguments(place: Place, change: dict[str, Any], message: str) -> None:
    sampler = ResumableSampler(12, place(0, 1), batch_size=4)
    with pytest.raises(InputError, match=message):
        DataLoader(**{"dataset": Noisy(), "sampler": sampler} | change)


def test_what_is_moved_to_the_device() -> None:
    class Movable:
        def to(self, device: torch.device, non_blocking: bool) -> str:
            return f"moved to {device}"

    batch = {"text": "left", "pair": (torch.zeros(2), Movable())}
    (moved,) = on_device(iter([batch]), torch.device("meta"))
    assert (moved["text"], moved["pair"][0].device.type, moved["pair"][1]) == ("left", "meta", "moved to meta")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_batches_on_a_gpu_are_those_of_the_cpu(place: Place) -> None:
    device = torch.device("cuda", 0)
    batches = [torch.full((1 << 20,), float(number)).pin_memory() for number in range(20)]
    weights = torch.ones(2048, 2048, device=device)
    sums = []
    for batch in on_device(iter(batches), device):
        weights @ weights  # the device is behind when the next batch is copied
        sums.append(batch.sum())
        del batch
    assert [float(total) for total in sums] == [float(number) * (1 << 20) for number in range(20)]


@pytest.mark.slow
def test_evicted_with_its_workers_and_resumed_on_other_ranks(start: Callable) -> None:
    before = start("load_batches.py", 2, 1, distribution=PyTorch(2)).wait()
    assert [rank.code for rank in before] == [EVICTED] * 2, before
    after = start("load_batches.py", 1, distribution=PyTorch(3)).wait()
    assert [rank.code for rank in after] == [0] * 3, after
    used = [line.split()[1:] for rank in (*before, *after) for line in rank.stdout.splitlines() if "used" in line]
    counts = Counter(int(sample) for batch in used for sample in batch)
    assert counts == dict.fromkeys(range(60), 2), "every sample once in each of two epochs"
    assert {line for rank in after for line in rank.stdout.splitlines() if "steps" in line} == {"steps 18"}
