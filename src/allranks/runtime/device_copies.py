"""Copy batches to a device while it computes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map


def on_device(batches: Iterator[Any], device: torch.device) -> Iterator[Any]:
    """Yield the batches with their tensors on a device.

    On a CUDA device, each batch is copied on another stream, while the step of the batch before it is computed.
    The source must be in pinned memory for that. Objects that are no tensors are moved by their own method `to` if they
    have one, and are left as they are otherwise.
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
    """Return the stream of all copies to a device. The memory of a stream's tensors is not used for another's."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def _copied(batches: Iterator[Any], device: torch.device, stream: Any) -> tuple[Any] | None:
    """Start the copy of the next batch; None after the last one."""
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
