"""Find the largest batch size for which a device has enough memory."""

from __future__ import annotations

import gc
from collections.abc import Callable

import torch

from allranks.errors import InputError, Problem
from allranks.runtime.notes import note
from allranks.runtime.ranks.ranks import Ranks
from allranks.runtime.training import random_states

_NO_MEMORY = (
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
)
"""Parts of messages by which libraries report in a RuntimeError that memory is exhausted."""


# Over 60 lines: half of them document it.
def find_batch_size(
    try_step: Callable[[int], object],
    ranks: Ranks,
    *,
    largest: int,
    smallest: int = 1,
    multiple_of: int = 1,
    reserved_bytes: int = 0,
) -> int:
    """Return the largest batch size per device for which a step fits into the memory of every rank's device. A
    collective.

        def try_step(batch_size):
            loss = model(torch.randint(vocabulary, (batch_size, length), device=ranks.device)).square().mean()
            loss.backward()


        batch_size = runtime.find_batch_size(try_step, ranks, largest=512)
        training = ranks.strategy.prepare(model, optimizer)

    try_step:       makes a step with a batch of this size. It must not communicate, since another rank may have run out
                    of memory in the middle of its step and would not answer: use the plain module, on the rank's
                    device, before `strategy.prepare`. It should allocate what a step of the training does.
    largest:        the largest size to try
    smallest:       the smallest size to try
    multiple_of:    the result is a multiple of this, or `smallest`
    reserved_bytes: memory of a GPU that the trial leaves free for what the training adds: the optimizer's state,
                    and gradient buckets, which DistributedDataParallel has as many bytes of as gradients

    The size is doubled until a step on any rank runs out of memory, and then bisected. After each trial its memory is
    freed and gradients of the tensors that it used remain: `try_step` should set them to None at its start. Random
    states are restored at the end. A process on the CPU that needs too much memory is often killed instead. Raise
    InputError if the smallest size does not fit. An error of `try_step` that is not about memory is raised.
    """
    for name, value in (("smallest", smallest), ("multiple_of", multiple_of)):
        if value < 1:
            raise InputError(Problem(f"find_batch_size, {name}", str(value), "at least 1"))
    if largest < smallest:
        raise InputError(Problem("find_batch_size, largest", str(largest), f"at least smallest, {smallest}"))
    states = random_states.capture(ranks.device)

    def fits(size: int) -> bool:
        return not ranks.any_rank(not _fits(try_step, size, ranks.device, reserved_bytes))

    if not fits(smallest):
        found = f"a step with {smallest} does not fit into the memory of a device"
        expected = "a model of which a step with the smallest batch fits"
        fix = "use activation_checkpointing, a strategy that shards the model, or a smaller model"
        raise InputError(Problem("per_device_train_batch_size", found, expected, fix))
    best, limit = _bisect(fits, smallest, largest, multiple_of)
    random_states.restore(states, ranks.device)
    best = max(smallest, best // multiple_of * multiple_of)
    if ranks.is_main:
        note(f"largest batch size per device: {best}{'' if limit <= largest else ', the largest one allowed'}")
    return best


def _bisect(fits: Callable[[int], bool], smallest: int, largest: int, multiple_of: int) -> tuple[int, int]:
    """Return the largest size that fits, and the smallest size that does not fit or is not allowed."""
    best, limit = smallest, largest + 1
    while best * 2 < limit:
        size = best * 2
        if fits(size):
            best = size
        else:
            limit = size
    while middle := _middle(best, limit, multiple_of):
        if fits(middle):
            best = middle
        else:
            limit = middle
    return best, limit


def _middle(fitting: int, limit: int, multiple_of: int) -> int | None:
    """Return the multiple to try between a size that fits and one that does not; None if there is none."""
    low, high = fitting // multiple_of + 1, (limit - 1) // multiple_of
    return (low + high + 1) // 2 * multiple_of if low <= high else None


def _fits(try_step: Callable[[int], object], size: int, device: torch.device, reserved_bytes: int) -> bool:
    """Make a step, and return whether there was enough memory. Free what it used."""
    reserved = None
    fits = False
    try:
        if device.type == "cuda":
            reserved = torch.empty(reserved_bytes, dtype=torch.uint8, device=device)
        try_step(size)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        fits = True
    except (MemoryError, RuntimeError) as error:
        if not _is_about_memory(error):
            raise
    finally:
        del reserved
    if not fits:
        gc.collect()  # an error may leave cycles that hold its frames, and with them the tensors of the step
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return fits


def _is_about_memory(error: Exception) -> bool:
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or any(text in str(error) for text in _NO_MEMORY)
