"""Checkpoints from which a training resumes, also after an eviction."""

from __future__ import annotations

import itertools
import os
import re
import time
import weakref
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import distributed
from torch.distributed import PrefixStore  # type: ignore[attr-defined]

from allranks.errors import InputError, Problem
from allranks.runtime import random_states
from allranks.runtime.agreement import Agreement
from allranks.runtime.eviction import Evicted, Eviction
from allranks.runtime.notes import note
from allranks.runtime.ranks import Ranks

_numbers = itertools.count()
_NAME = re.compile(r"step_(\d+)\.pt")


class Stateful(Protocol):
    """An object that a checkpoint can save: a training, a scheduler, a sampler, a model without a strategy."""

    def state_dict(self) -> Any:
        """Return the state as tensors and plain values. Called on every rank; rank 0's state is saved."""

    def load_state_dict(self, state: Any, /) -> Any:
        """Load a state. Called on every rank."""


class Checkpoints:
    """The checkpoints of a training in one folder, `step_000000100.pt` and so on.

    Rank 0 writes the full state, also of a sharded model, to a temporary file, and renames the file when it is complete
    on disk. If the process is killed while it writes, the previous checkpoint remains. A checkpoint also contains the
    random states of every rank, so that a resumed training computes the same steps as an uninterrupted one: bit by bit
    on one or two ranks under DistributedDataParallel, and up to rounding otherwise, because DistributedDataParallel
    changes its gradient buckets after the first step, and with them the order in which gloo adds gradients. A training
    can resume with any number of ranks.

    folder:        folder of the checkpoints; all instances must share it (an output of the job)
    parts:         the objects to save, by name: the result of `strategy.prepare`, the sampler
    every_steps:   number of steps between checkpoints
    every_minutes: minutes between checkpoints
    keep:          number of checkpoints to keep; older ones are removed

    Must be constructed on the main thread, and on every rank. From then on, the first SIGTERM does not end the process:
    `save_if_due` saves and ends the training, on every rank at the same step. A second SIGTERM ends the process
    immediately.
    """

    def __init__(
        self,
        folder: str | Path,
        ranks: Ranks,
        parts: Mapping[str, Stateful],
        *,
        every_steps: int | None = None,
        every_minutes: float | None = None,
        keep: int = 2,
    ) -> None:
        for name, value in (("every_steps", every_steps), ("every_minutes", every_minutes), ("keep", keep)):
            if value is not None and value <= 0:
                raise InputError(Problem(name, str(value), "more than 0", "leave it out, or use a positive number"))
        self._folder = Path(folder)
        self._ranks = ranks
        self._parts = dict(parts)
        self._every_steps = every_steps
        self._every_seconds = None if every_minutes is None else 60 * every_minutes
        self._keep = keep
        self._saved_step = 0
        self._saved_at = time.monotonic()
        self._eviction = Eviction()
        store = PrefixStore(f"checkpoints/{next(_numbers)}", ranks.store)
        self._agreement = Agreement(store, ranks.rank, ranks.world_size)
        weakref.finalize(self, self._agreement.close).atexit = False

    def load(self, start_from: str | Path | None = None) -> int:
        """Load the newest complete checkpoint into the parts, and return its step; 0 if there is none. A collective.

        start_from: a folder with checkpoints to load if this training's folder has none yet

        Incomplete files are skipped with a note. Raise InputError if the checkpoint has other parts, or parts of
        another shape."""
        newest: list[Path | None] = [None]
        if self._ranks.is_main:
            for leftover in self._folder.glob("*.tmp"):
                leftover.unlink()
            newest = [_newest(self._folder) or (_newest(Path(start_from)) if start_from is not None else None)]
        distributed.broadcast_object_list(newest, src=0)
        path = newest[0]
        if path is None:
            return 0
        if not path.exists():
            raise InputError(
                Problem(
                    where=f"rank {self._ranks.rank} (instance {self._ranks.instance_rank})",
                    found=f"no {path}, which rank 0 sees",
                    expected="a folder that all instances share",
                    fix="save checkpoints to an output of the job, which every instance mounts",
                    code="checkpoints",
                )
            )
        # Memory-mapped, so that each rank reads only its shard of a sharded model.
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        self._load_parts(path, content["parts"])
        if content["world_size"] == self._ranks.world_size:
            random_states.restore(content["random_states"][self._ranks.rank], self._ranks.device)
        elif self._ranks.is_main:
            note(f"{path.name} was saved by {content['world_size']} ranks: random numbers will differ")
        if self._ranks.is_main:
            note(f"resuming from step {content['step']} ({path})")
        self._saved_step = int(content["step"])
        self._saved_at = time.monotonic()
        return self._saved_step

    def save_if_due(self, step: int) -> None:
        """Save if a checkpoint is due. Call it on every rank after each step. It is a collective only if one is due.

        If any rank has received SIGTERM, the ranks agree on one of the next steps, save at it and raise Evicted. A
        training that ends before that step ends as usual. Minutes are counted by rank 0, and a checkpoint that they
        make due is saved about a second later.
        """
        if self._eviction.requested:
            self._agreement.request(stop=True)
        elif self._every_seconds is not None and self._time_is_up():
            self._agreement.request(stop=False)
        decision = self._agreement.reach(step)
        if decision is not None:
            self.save(step)
            if decision.stop:
                if self._ranks.is_main:
                    note(f"received SIGTERM: saved a checkpoint at step {step}, from which the next start resumes")
                raise Evicted
        elif self._every_steps is not None and step - self._saved_step >= self._every_steps:
            self.save(step)

    def save(self, step: int) -> None:
        """Save now, unless this step is already saved. A collective: it returns when the file is complete."""
        if step == self._saved_step:
            return
        own_states = random_states.capture(self._ranks.device)
        gathered: list[Any] | None = [None] * self._ranks.world_size if self._ranks.is_main else None
        distributed.gather_object(own_states, gathered, dst=0)
        parts = {name: part.state_dict() for name, part in self._parts.items()}  # gathering needs every rank
        if self._ranks.is_main:
            content = {
                "step": step,
                "world_size": self._ranks.world_size,
                "parts": parts,
                "random_states": gathered,
            }
            self._folder.mkdir(parents=True, exist_ok=True)
            _write(self._folder / f"step_{step:09d}.pt", content)
            for _, old in _checkpoints(self._folder)[self._keep :]:
                old.unlink()
        self._ranks.barrier()
        self._saved_step = step
        self._saved_at = time.monotonic()

    def _time_is_up(self) -> bool:
        # Clocks differ between instances, so rank 0 decides.
        assert self._every_seconds is not None
        return self._ranks.is_main and time.monotonic() - self._saved_at >= self._every_seconds

    def _load_parts(self, path: Path, states: Mapping[str, Any]) -> None:
        if set(states) != set(self._parts):
            raise InputError(
                Problem(
                    where=f"checkpoint {path}",
                    found=f"the parts {', '.join(sorted(states))}",
                    expected=f"the parts {', '.join(sorted(self._parts))}",
                    fix="use a folder without checkpoints of another training",
                    code="checkpoints",
                )
            )
        for name, part in self._parts.items():
            try:
                part.load_state_dict(states[name])
            except (RuntimeError, ValueError, KeyError) as error:
                raise InputError(
                    Problem(
                        where=f"checkpoint {path}, part {name}",
                        found=str(error),
                        expected="the state of the same model and optimizer",
                        fix="train the model that was saved, or use a folder without its checkpoints",
                        code="checkpoints",
                    )
                ) from error


def _checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """Return the checkpoints of a folder by their steps, the newest first."""
    if not folder.is_dir():
        return []
    matches = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted(((int(match[1]), path) for match, path in matches if match), reverse=True)


def _newest(folder: Path) -> Path | None:
    for _, path in _checkpoints(folder):
        if _is_complete(path):
            return path
        note(f"{path} is incomplete: skipped")
    return None


def _is_complete(path: Path) -> bool:
    # torch writes a zip archive, whose directory is at the end. Each member has a checksum.
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, zlib.error, EOFError):
        return False


def _write(path: Path, content: Mapping[str, Any]) -> None:
    temporary = path.with_suffix(".tmp")
    try:
        with temporary.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        if unsafe := torch.serialization.get_unsafe_globals_in_checkpoint(temporary):
            raise TypeError(f"a part's state holds {', '.join(sorted(unsafe))}, not only tensors and plain values")
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # the new name must be on disk before older checkpoints are removed
    finally:
        os.close(descriptor)
