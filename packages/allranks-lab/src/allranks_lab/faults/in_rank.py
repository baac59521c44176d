"""The code that a forked rank executes before its program, without the packages of this environment.

It records each training step of any script that uses torch, through torch's optimizer hooks: the results, the samples
and the state. Each optimizer step is one line of JSON, appended with one write.

A rank that reaches a training step at which a fault is due waits until the fault has happened, between two steps. The
steps are in a file beside the rank's report. A further file marks each step that is over.
"""

import glob
import hashlib
import json
import os
import random
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from allranks.contract import report

RECORDER = "ALLRANKS_STEP_RECORDER"
"""Each rank with this variable records its training steps in files whose paths begin with its value."""

MAY_HANG = "ALLRANKS_MAY_HANG"

HANG_SIGNAL = signal.SIGRTMIN + 9
"""The signal that makes the main thread of a rank with MAY_HANG wait indefinitely."""

PATIENCE = 30.0
"""Seconds that a rank waits for the engine, which may have been killed."""

HANG = "hang"
"""Content of the file of a step after which the rank makes no progress."""

_due: list[int] | None = None

_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


def lines(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yield the lines of a rank: one for each start, with the initial state, and one for each training step. An
    incomplete line of a killed rank is left out."""
    with open(path, encoding="utf-8") as file:
        for text in file:
            if text.startswith("{") and text.endswith("}\n"):
                yield json.loads(text)


def hang(*_: object) -> None:
    """Wait indefinitely. Handles HANG_SIGNAL."""
    while True:
        time.sleep(1.0)


def report_step(step: int) -> None:
    """Report a training step at which a fault is due, and wait until it has been injected. Called after each step; a
    later step than the one that is due counts too."""
    global _due
    if _due is None:
        file = Path(f"{os.environ.get(report.VARIABLE, '')}.steps")
        _due = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    while _due and step >= _due[0]:
        due = _due.pop(0)
        report.append(report.Reached(due))
        over, end = Path(f"{os.environ[report.VARIABLE]}.{due}"), time.monotonic() + PATIENCE
        while not over.exists() and time.monotonic() < end:
            time.sleep(0.002)
        while over.exists() and over.read_text(encoding="utf-8") == HANG:
            time.sleep(1.0)


def install(path: str) -> None:
    """Record the steps of this process, and hold it at steps at which a fault is due.

    path: the beginning of the paths of this attempt's files
    """
    _after("torch", lambda _: _Recorder(path))
    _after(
        "allranks.runtime.metrics.metrics",
        lambda module: _wrap(module.Metrics, "log", _log),
    )
    _after(
        "allranks.runtime.checkpoints.checkpoints",
        lambda module: _wrap(module.Checkpoints, "save_if_due", _save),
    )


def _log(original: Callable[..., Any], *arguments: Any, step: int, **named: Any) -> None:
    report_step(step)
    original(*arguments, step=step, **named)


def _save(original: Callable[..., Any], checkpoints: Any, step: int, **named: Any) -> None:
    report_step(step)
    original(checkpoints, step, **named)


def _after(name: str, action: Callable[[Any], object]) -> None:
    """Call a function with a module as soon as this process has imported it."""
    if name in sys.modules:
        action(sys.modules[name])
    else:
        sys.meta_path.insert(0, _AfterImport(name, action))


class _AfterImport:
    """Calls a function with a module once it has been imported."""

    def __init__(self, name: str, action: Callable[[Any], object]) -> None:
        self._name = name
        self._action = action

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def executed(module: Any) -> None:
                execute(module)
                self._action(module)

            spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec


def _wrap(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    original = getattr(owner, name)

    def wrapped(*arguments: Any, **named: Any) -> Any:
        return wrapper(original, *arguments, **named)

    setattr(owner, name, wrapped)


class _Recorder:
    """The recorder of one process. It follows the first optimizer that makes a step."""

    def __init__(self, path: str) -> None:
        from torch import autograd
        from torch.optim import optimizer
        from torch.utils.data import dataloader

        self._path = path
        self._owner = os.getpid()
        self._optimizer: Any = None
        self._step: int | None = None
        self._loss: float | None = None
        self._has_gradients = self._is_begun = False
        self._before: dict[str, Any] = {}
        self._samples: list[Any] = []
        self._epoch = 0
        self._read_ahead: list[Any] = []
        self._before_data: dict[str, str] = {}
        optimizer.register_optimizer_step_pre_hook(self._begin)
        optimizer.register_optimizer_step_post_hook(self._end)
        _wrap(autograd, "backward", self._backward)
        _wrap(dataloader._BaseDataLoaderIter, "__init__", self._read)
        _wrap(dataloader._BaseDataLoaderIter, "_next_index", self._drawn)
        _wrap(dataloader._BaseDataLoaderIter, "__next__", self._receive)

    def _backward(self, original: Callable[..., Any], tensors: Any, *arguments: Any, **named: Any) -> Any:
        if hasattr(tensors, "numel") and tensors.numel() == 1:
            self._loss = (self._loss or 0.0) + float(tensors.detach())
        self._has_gradients = True
        return original(tensors, *arguments, **named)

    def _read(self, original: Callable[..., Any], *arguments: Any, **named: Any) -> None:
        """Save the random state before the first data loader draws from it."""
        self._before_data = self._before_data or _random_states()
        original(*arguments, **named)

    def _drawn(self, original: Callable[..., Any], iterator: Any) -> Any:
        """Save the indices that the iterator draws, which workers do in advance."""
        import torch

        indices = original(iterator)
        drawn = iterator.__dict__.get("_allranks_drawn")
        if drawn is None or drawn[0] is not iterator._sampler_iter:
            drawn = iterator._allranks_drawn = (iterator._sampler_iter, deque())
            self._epoch += torch.is_grad_enabled()
        drawn[1].append(indices)
        return indices

    def _receive(self, original: Callable[..., Any], iterator: Any) -> Any:
        """Add the samples that the loop receives. Samples of an evaluation, without gradients, belong to no step."""
        import torch

        # Accelerate reads one batch ahead of the loop, and so does this project's loader on a GPU.
        caller = sys._getframe(2).f_globals.get("__name__")
        ahead = caller == "accelerate.data_loader"
        ahead = ahead or (caller == "allranks.runtime.data.data_loader" and _uses_cuda())
        try:
            batch = original(iterator)
        except StopIteration:
            self._samples += self._read_ahead
            self._read_ahead = []
            raise
        _, drawn = iterator.__dict__.get("_allranks_drawn", (None, ()))
        indices = drawn.popleft() if drawn else None
        if torch.is_grad_enabled() and self._owner == os.getpid():
            self._samples += self._read_ahead
            samples = _samples(iterator, indices, batch)
            self._samples += () if ahead else samples
            self._read_ahead = samples if ahead else []
        return batch

    def _begin(self, optimizer: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        # Without gradients it is not a training step: DeepSpeed calls its optimizer once for each group of weights, of
        # which the first is recorded, and torch.distributed.checkpoint lets a new optimizer make its state. Lightning
        # computes them in a closure.
        may_step = self._has_gradients or named.get("closure") is not None or any(map(callable, arguments[1:]))
        self._is_begun = may_step and self._owner == os.getpid() and self._optimizer in (None, optimizer)
        if not self._is_begun:
            return
        if self._optimizer is None:
            self._optimizer = optimizer
            self._start()
        self._before = {
            "rates": [float(group.get("lr", 0.0)) for group in optimizer.param_groups],
            "random": _random_states(),
        }

    def _start(self) -> None:
        weights, state = _weights(self._optimizer), _state(self._optimizer)
        rank = next((os.environ[name] for name in _RANKS if name in os.environ), "0")
        self._rank = int(rank) if rank.isdecimal() else 0
        folder = os.path.dirname(self._path)
        files = glob.glob(f"{folder}/*_steps_{self._rank}.jsonl")
        known = {line["weights"]: line["step"] for path in sorted(files, key=os.path.getmtime) for line in lines(path)}
        counted = [int(entry["step"]) for entry in self._optimizer.state.values() if "step" in entry]
        self._step = known.get(weights, max(counted, default=0) if files else 0)
        self._path = f"{self._path}_steps_{self._rank}.jsonl"
        world = os.environ.get("WORLD_SIZE") or os.environ.get("OMPI_COMM_WORLD_SIZE") or "1"
        found = {
            "weights": weights,
            "optimizer": state,
            "known": weights in known,
            "world": world,
            "random": self._before_data,
        }
        self._write({"start": True, "step": self._step, **found, "time": time.time()})

    def _end(self, optimizer: Any, *_: Any) -> None:
        if optimizer is not self._optimizer or self._step is None or not (self._is_begun and self._has_gradients):
            return
        self._is_begun = self._has_gradients = False
        self._step += 1
        line = {
            "step": self._step,
            "time": time.time(),
            "loss": self._loss,
            "samples": self._samples,
            "epoch": self._epoch,
        }
        state = {"weights": _weights(optimizer), "optimizer": _state(optimizer), "random_after": _random_states()}
        self._write({**line, **self._before, **state})
        self._samples, self._loss = [], None
        report_step(self._step)

    def _write(self, line: dict[str, Any]) -> None:
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _samples(iterator: Any, indices: Any, batch: Any) -> list[Any]:
    """Return the indices of a batch in its data set, or a digest of the batch if the data set has no indices."""
    if indices is None or iterator._dataset_kind != 0:
        return [_digest(_tensors(batch))]
    of_batch = getattr(iterator._index_sampler, "samples_of", None)
    found = of_batch(indices) if of_batch else indices if isinstance(indices, (list, tuple)) else [indices]
    return [index if isinstance(index, (int, str)) else str(index) for index in found]


def _weights(optimizer: Any) -> str:
    return _digest(weight for group in optimizer.param_groups for weight in group["params"])


def _state(optimizer: Any) -> str:
    """Return a digest of the optimizer's state, such as its moments; "" if it is empty."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    entries = [optimizer.state[weight] for weight in weights if weight in optimizer.state]
    tensors = [value for entry in entries for name, value in sorted(entry.items()) if name != "step"]
    return _digest(tensors) if any(value is not None for value in tensors) else ""


def _tensors(batch: Any) -> Iterator[Any]:
    if hasattr(batch, "detach"):
        yield batch
    elif isinstance(batch, dict):
        yield from (found for value in batch.values() for found in _tensors(value))
    elif isinstance(batch, (list, tuple)):
        yield from (found for value in batch for found in _tensors(value))


def _digest(tensors: Iterable[Any]) -> str:
    import torch

    digest = hashlib.blake2b(digest_size=8)
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor):
            local = getattr(tensor, "_local_tensor", tensor).detach()  # a rank's shard of a DTensor
            digest.update(local.cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _uses_cuda() -> bool:
    import torch

    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def _random_states() -> dict[str, str]:
    """Return a digest of the state of each random number generator."""
    import torch

    states = {"Python": repr(random.getstate()).encode(), "torch": torch.get_rng_state().numpy().tobytes()}
    if numpy := sys.modules.get("numpy"):
        name, keys, *rest = numpy.random.get_state()
        states["numpy"] = keys.tobytes() + repr((name, rest)).encode()
    if _uses_cuda():
        states["CUDA"] = torch.cuda.get_rng_state().numpy().tobytes()
    return {name: hashlib.blake2b(state, digest_size=8).hexdigest() for name, state in states.items()}


if __name__ == report.IN_RANK:
    if MAY_HANG in os.environ:
        signal.signal(HANG_SIGNAL, hang)
    if RECORDER in os.environ:
        install(os.environ[RECORDER])
