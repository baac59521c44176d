"""Build a model without its values, and compute them later, one tensor after another.

A model is built on the meta device, whose tensors have a shape and no values, and the operations on its tensors are
recorded. Repeating them gives the values that the model would have. A tensor is in memory only from the operation that
first sets its value to the last one that changes it, so that the memory needed is that of a few tensors, whatever the
size of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

from allranks.errors import InputError, Problem

_OVERWRITING = {"bernoulli_", "cauchy_", "copy_", "exponential_", "fill_", "geometric_", "log_normal_", "normal_"}
_OVERWRITING |= {"random_", "uniform_", "zero_"}
"""In-place operations of ATen that do not read the tensor that they change."""


@dataclass(frozen=True)
class _Reference:
    """A tensor of the meta device: a view of a storage, which is known by its number."""

    storage: int
    bytes: int
    dtype: torch.dtype
    size: torch.Size
    stride: tuple[int, ...]
    offset: int

    @property
    def is_whole(self) -> bool:
        """Whether it has every element of its storage."""
        return self.size.numel() * self.dtype.itemsize == self.bytes


@dataclass(frozen=True)
class _Operation:
    """A recorded operation. overwrites: the storage that it sets without reading it, or None."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    touches: frozenset[int]
    overwrites: int | None


@dataclass
class Recording:
    """The operations of a function on tensors of the meta device."""

    random_state: Tensor = field(default_factory=torch.get_rng_state)
    operations: list[_Operation] = field(default_factory=list)
    tensors: dict[str, _Reference | Tensor] = field(default_factory=dict)
    _storages: dict[int, torch.UntypedStorage] = field(default_factory=dict)  # alive, so that a number stays unique

    def reference(self, tensor: Tensor) -> _Reference:
        """Return the reference to a tensor of the meta device."""
        storage = tensor.untyped_storage()
        number = storage._cdata
        self._storages[number] = storage
        return _Reference(
            number, storage.nbytes(), tensor.dtype, tensor.size(), tensor.stride(), int(tensor.storage_offset())
        )

    def knows(self, tensor: Tensor) -> bool:
        """Whether the storage of a tensor has been referred to."""
        return tensor.untyped_storage()._cdata in self._storages

    def add(self, function: Any, args: Any, kwargs: Any, result: Any, overwrites: bool) -> None:
        """Add an operation. overwrites: whether it sets its first argument without reading it."""

        def described(tree: Any) -> Any:
            return tree_map_only(Tensor, lambda each: self.reference(each) if _is_meta(each) else each.detach(), tree)

        args, kwargs, result = described(args), described(kwargs), described(result)
        flat = tree_flatten((args, kwargs, result))[0]
        touches = frozenset(each.storage for each in flat if isinstance(each, _Reference))
        whole = overwrites and isinstance(args[0], _Reference) and args[0].is_whole
        self.operations.append(_Operation(function, args, kwargs, result, touches, args[0].storage if whole else None))

    def values(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the name and the value of each parameter and buffer of the model, on the CPU.

        A value must not be kept: the next one may need the memory. The random numbers are those that the function
        would have drawn. Afterwards torch's generator for the CPU is in the state that it then would have.
        """
        names: dict[int, list[str]] = {}
        for name, tensor in self.tensors.items():
            if isinstance(tensor, _Reference):
                names.setdefault(tensor.storage, []).append(name)
            else:
                yield name, tensor
        unneeded, complete = self._lifetimes(set(names))
        torch.set_rng_state(self.random_state)
        storages: dict[int, torch.UntypedStorage] = {}
        for index, operation in enumerate(self.operations):
            with torch.no_grad():
                _repeat(operation, storages)
            for storage in complete.get(index, ()):
                for name in names[storage]:
                    reference = self.tensors[name]
                    assert isinstance(reference, _Reference)
                    state = torch.get_rng_state()
                    yield name, _view(reference, storages)
                    torch.set_rng_state(state)
            for storage in unneeded.get(index, ()):
                storages.pop(storage, None)

    def _lifetimes(self, wanted: set[int]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """Return the storages that are not needed after an operation, and those whose value is then complete."""
        touched: dict[int, int] = {}
        unneeded: dict[int, list[int]] = {}
        complete: dict[int, list[int]] = {}
        for index, operation in enumerate(self.operations):
            if operation.overwrites in touched:
                unneeded.setdefault(touched[operation.overwrites], []).append(operation.overwrites)
            touched |= dict.fromkeys(operation.touches, index)
        for storage, index in touched.items():
            unneeded.setdefault(index, []).append(storage)
            if storage in wanted:
                complete.setdefault(index, []).append(storage)
        return unneeded, complete


_recordings: WeakKeyDictionary[nn.Module, Recording] = WeakKeyDictionary()


def record(build: Callable[[], nn.Module]) -> nn.Module:
    """Return the model that `build` returns, on the meta device. `take` returns the recording of its values.

    torch's generator for the CPU is afterwards in the state that building an ordinary model leaves. Raise InputError
    if `build` reads a value of a tensor.
    """
    recording = Recording()
    try:
        replacement = _recorded_trunc_normal(recording, nn.init._no_grad_trunc_normal_)
        with mock.patch.object(nn.init, "_no_grad_trunc_normal_", replacement), _OnMeta(), _Recorder(recording):
            model = build()
    except (NotImplementedError, RuntimeError) as error:
        if "meta" not in str(error):
            raise
        found = f"the function reads values of a tensor: {error}"
        expected = "a function that only creates and initializes tensors: they are on the meta device"
        fix = 'compute values that the code depends on with device="cpu", or call the function itself'
        raise InputError(Problem("strategy.create", found, expected, fix)) from error
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        recording.tensors[name] = recording.reference(tensor) if tensor.is_meta else tensor.detach()
    for _ in recording.values():  # only to advance the generator
        pass
    _recordings[model] = recording
    return model


def take(model: nn.Module) -> Recording | None:
    """Return the recording of a model that `record` has returned; None for an ordinary model.

    Raise InputError for a model of the meta device without a recording, whose values are unknown.
    """
    recording = _recordings.pop(model, None)
    if recording is None and any(parameter.is_meta for parameter in model.parameters()):
        found = "on the meta device: it has no values"
        expected = "a model with values, or one that strategy.create has built"
        raise InputError(Problem("model", found, expected, "use model = ranks.strategy.create(lambda: Model(...))"))
    return recording


def fill(model: nn.Module, recording: Recording, each: Callable[[nn.Parameter], None] = lambda _: None) -> None:
    """Give the parameters and buffers of a model on the meta device their values, on the CPU.

    Parameters stay the same objects, which an optimizer may have. each: called for each parameter when it has its value
    """
    parameters = dict(model.named_parameters())
    for name, value in recording.values():
        if name in parameters:
            parameter = parameters[name]
            value = nn.Parameter(value, requires_grad=parameter.requires_grad)
            torch.utils.swap_tensors(parameter, value)  # type: ignore[no-untyped-call]
            each(parameter)
        else:
            module, _, last = name.rpartition(".")
            setattr(model.get_submodule(module), last, value)


class _OnMeta(TorchFunctionMode):
    """Creates tensors on the meta device, for code that must not know it: torch.nn.init and Transformers leave out the
    initialization of a model if they find that device."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func == Tensor.is_meta.__get__:  # type: ignore[attr-defined]
            return False
        has_data = func in (torch.tensor, torch.as_tensor) and not isinstance(args[0], Tensor)
        if has_data and kwargs.get("device") is None:
            # On the meta device its data would be lost, and no operation be recorded.
            tensor = func(*args, **kwargs | {"device": "cpu"})
            return tensor.to("meta") if tensor.numel() else tensor
        with torch.device("meta"):
            return func(*args, **kwargs)


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the operations that create or change tensors of the meta device."""

    def __init__(self, recording: Recording) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._recording = recording

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        recording = self._recording
        given = _meta_tensors((args, kwargs))
        if not all(recording.knows(each) for each in given):
            raise RuntimeError(f"{func} reads a meta tensor that was not made in the function")
        result = func(*args, **kwargs)
        made = _meta_tensors(result)
        changes = bool(given) and func._schema.is_mutable
        if changes or not all(recording.knows(each) for each in made):
            recording.add(func, args, kwargs, result, func._schema.name.removeprefix("aten::") in _OVERWRITING)
        return result


def _recorded_trunc_normal(recording: Recording, trunc_normal: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a replacement for torch.nn.init's function, which repeats drawing until all values are in the range: how
    often depends on the values."""

    def replacement(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if tensor.device.type != "meta":
            return trunc_normal(tensor, *args, **kwargs)
        recording.add(trunc_normal, (tensor, *args), kwargs, tensor, overwrites=True)
        return tensor

    return replacement


def _is_meta(tensor: Tensor) -> bool:
    return tensor.device.type == "meta"  # is_meta is False while a function is recorded


def _meta_tensors(tree: Any) -> list[Tensor]:
    return [each for each in tree_flatten(tree)[0] if isinstance(each, Tensor) and _is_meta(each)]


def _repeat(operation: _Operation, storages: dict[int, torch.UntypedStorage]) -> None:
    """Carry out an operation on the CPU."""
    if operation.overwrites is not None:
        target = operation.args[0]
        storages.setdefault(target.storage, torch.UntypedStorage(target.bytes))  # type: ignore[no-untyped-call]

    def real(tree: Any) -> Any:
        return tree_map_only(_Reference, lambda each: _view(each, storages), tree)

    kwargs = real(operation.kwargs)
    if "device" in kwargs:
        kwargs["device"] = torch.device("cpu")
    result = operation.function(*real(operation.args), **kwargs)
    for reference, tensor in zip(tree_flatten(operation.result)[0], tree_flatten(result)[0], strict=True):
        if isinstance(reference, _Reference):
            storages.setdefault(reference.storage, tensor.untyped_storage())


def _view(reference: _Reference, storages: dict[int, torch.UntypedStorage]) -> Tensor:
    empty = torch.empty(0, dtype=reference.dtype)
    return empty.set_(storages[reference.storage], reference.offset, reference.size, reference.stride)
