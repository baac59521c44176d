"""Snapshots of logged values, which are read later, so that the training does not wait for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsFloat

if TYPE_CHECKING:
    import torch


def snapshot(value: SupportsFloat) -> SupportsFloat:
    """Return an object whose float() is the value as it is now. It can be read in another thread.

    A tensor on a CUDA device is copied to the CPU when the device gets there. Any other number is read now, except one
    that has a method `snapshot` itself. Raise as float() does if a tensor has more than one element.
    """
    if type(value) is float:
        return value
    own = getattr(value, "snapshot", None)
    if own is not None:
        snapshot: SupportsFloat = own()
        return snapshot
    # float() of a tensor that requires a gradient, as a loss does, warns on every rank.
    detach = getattr(value, "detach", None)
    if detach is None:
        return float(value)
    tensor = detach()
    return CudaCopy(tensor) if getattr(tensor, "is_cuda", False) else float(tensor)


class CudaCopy:
    """A copy on the CPU of a CUDA tensor of one element, made asynchronously in the order of the current stream."""

    def __init__(self, tensor: torch.Tensor) -> None:
        import torch

        self._copy = torch.empty((), dtype=tensor.dtype, pin_memory=True)
        self._copy.copy_(tensor.reshape(()), non_blocking=True)
        self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._copied.record(torch.cuda.current_stream(tensor.device))

    def __float__(self) -> float:
        self._copied.synchronize()
        return float(self._copy)
