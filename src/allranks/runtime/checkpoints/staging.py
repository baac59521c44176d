"""Host memory into which a save copies its tensors, so that the training continues while a thread writes them.

torch's DefaultStager is not used. After a fork, such as that of DataLoader workers, each write copies a page of its
memory, and a save stopped the training five times as long. On GPUs, its copies either stop the training, or are not
ordered with the training's operations.
"""

import contextlib
import mmap
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from allranks.runtime.tensors import StatePath, TensorShard

Shards = Mapping[StatePath, TensorShard]

_PAGE = 1 << 21
_ALIGNMENT = 64


class StagingMemory:
    """Reusable memory for the tensors of one rank. It is pinned if the device is a GPU.

    Forked processes, such as the workers of a DataLoader, do not inherit it. Otherwise every page would be copied when
    it is written after a fork.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._memory = mmap.mmap(-1, _PAGE)
        self._bytes = torch.frombuffer(self._memory, dtype=torch.uint8)
        self._pinned = False
        self._touching: threading.Thread | None = None

    def reserve(self, shards: Shards) -> None:
        """Reserve memory for tensors. A thread touches it: the first access to memory is slow."""
        self._allocate(_size(shards))
        self._touching = threading.Thread(target=self._touch, name="allranks-staging", daemon=True)
        self._touching.start()

    def fill(self, shards: Shards) -> tuple[dict[StatePath, TensorShard], Callable[[], None]]:
        """Copy tensors, and return the copies with a function that waits until they are complete.

        On a GPU, the copies are ordered with the training's operations, and the training does not wait for them.
        """
        if self._touching is not None:
            self._touching.join()
            self._touching = None
        if len(self._bytes) < (size := _size(shards)):
            self._allocate(size)
            self._pin()
        position = 0
        copies = {}
        for name, shard in shards.items():
            pieces = []
            for offsets, values in shard.pieces:
                copy = self._empty_like(values, position)
                copy.copy_(values, non_blocking=self._pinned)
                pieces.append((offsets, copy))
                position += _aligned(values.nbytes)
            copies[name] = replace(shard, pieces=tuple(pieces))
        return copies, self._copied()

    def _empty_like(self, values: Tensor, position: int) -> Tensor:
        """Return a tensor at a position of the memory. Its storage has only its own bytes, because torch.save writes
        all."""
        if not values.numel():
            return torch.empty(values.shape, dtype=values.dtype)
        flat = torch.frombuffer(self._memory, dtype=values.dtype, count=values.numel(), offset=position)
        return flat.view(values.shape)

    def _allocate(self, size: int) -> None:
        self._unpin()
        length = -(-max(size, 1) // _PAGE) * _PAGE
        self._memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for advice in ("MADV_HUGEPAGE", "MADV_DONTFORK"):
            with contextlib.suppress(AttributeError, OSError):  # not on every system
                self._memory.madvise(getattr(mmap, advice))
        self._bytes = torch.frombuffer(self._memory, dtype=torch.uint8)

    def _touch(self) -> None:
        self._bytes.zero_()
        self._pin()

    def _pin(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)  # this thread may be a new one
            self._pinned = int(_cuda().cudaHostRegister(self._bytes.data_ptr(), len(self._bytes), 0)) == 0

    def _unpin(self) -> None:
        if self._pinned:
            _cuda().cudaHostUnregister(self._bytes.data_ptr())
            self._pinned = False

    def _copied(self) -> Callable[[], None]:
        if not self._pinned:
            return lambda: None
        event: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self._device))
        wait: Callable[[], None] = event.synchronize
        return wait

    def __del__(self) -> None:
        self._unpin()


def _size(shards: Shards) -> int:
    return sum(_aligned(values.nbytes) for shard in shards.values() for _, values in shard.pieces)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _cuda() -> Any:
    return torch.cuda.cudart()  # type: ignore[no-untyped-call]
