"""Host memory into which a save copies its tensors, so that the training continues while a thread writes them."""

from __future__ import annotations

import contextlib
import mmap
import threading
from collections.abc import Callable, Mapping
from typing import Any

import torch

from allranks.runtime.checkpoints.tensor_file import Layout, Piece

_PAGE = 1 << 21


class StagingMemory:
    """Reusable memory for the bytes of one file. It is pinned if the device is a GPU.

    Forked processes, such as the workers of a DataLoader, do not inherit it. Otherwise every page would be copied when
    it is written after a fork.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._memory: mmap.mmap | None = None
        self._bytes = torch.empty(0, dtype=torch.uint8)
        self._pinned = False
        self._touching: threading.Thread | None = None

    def reserve(self, size: int) -> None:
        """Reserve memory for a file of this size in bytes. A thread touches it: the first access to memory is slow."""
        self._allocate(size)
        self._touching = threading.Thread(target=self._touch, name="allranks-staging", daemon=True)
        self._touching.start()

    def fill(self, layout: Layout, pieces: Mapping[str, Piece]) -> tuple[memoryview, Callable[[], None]]:
        """Copy a file's bytes, and return them with a function that waits until they are complete.

        On a GPU, the copies are ordered with the training's operations, and the training does not wait for them.
        """
        if self._touching is not None:
            self._touching.join()
            self._touching = None
        if len(self._bytes) < layout.size:
            self._allocate(layout.size)
            self._pin()
        self._bytes[: len(layout.header)] = torch.frombuffer(bytearray(layout.header), dtype=torch.uint8)
        for name, (_, values) in pieces.items():
            if values.numel():
                start = layout.starts[name]
                target = self._bytes[start : start + values.nbytes].view(values.dtype).view(values.shape)
                target.copy_(values, non_blocking=self._pinned)
        assert self._memory is not None
        return memoryview(self._memory)[: layout.size], self._copied()

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


def _cuda() -> Any:
    return torch.cuda.cudart()  # type: ignore[no-untyped-call]
