"""Checkpoints from which a training goes on where it was, also after an eviction."""

from __future__ import annotations

import os
import re
import time
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import distributed

from allranks.errors import InputError, Problem
from allranks.runtime import random_states
from allranks.runtime.eviction import Evicted, Eviction
from allranks.runtime.notes import note
from allranks.runtime.ranks import Ranks

_NAME = re.compile(r"step_(\d+)\.pt")


class Stateful(Protocol):
    """What a checkpoint can keep: a training, a scheduler, a sampler, a model without a strategy."""

    def state_dict(self) -> Any:
        """Return its state, as tensors and plain values. Called on every rank; what rank 0 gives is kept."""

    def load_state_dict(self, state: Any, /) -> Any:
        """Take a state on."""


class Checkpoints:
    """The checkpoints of a training in one folder, `step_000000100.pt` and so on.

    Rank 0 writes the whole state, also of a sharded model: to a temporary file, which becomes the checkpoint when it is
    wholly on the disk. A process that is killed while it writes leaves the checkpoint before. The random states of
    every rank are kept with the parts, so that a resumed training takes the steps that an uninterrupted one takes: to
    the last bit on one or two ranks under DistributedDataParallel, to rounding elsewhere, since that lays its gradients
    out anew after its first step, and with them the order in which gloo adds them up. Any number of ranks goes on.

    folder:        where they are; shared by all instances (an output of the job)
    parts:         what is kept, by name: what `strategy.prepare` gave, the sampler
    every_steps:   save when so many steps were made since the last time
    every_minutes: save when so much time went by
    keep:          how many are left; older ones are removed

    From when it is made, the first SIGTERM no longer ends the process: the next `save_if_due` saves, and ends the
    training on every rank. A second SIGTERM ends it at once. Make it on the main thread.
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
                raise InputError(Problem(name, str(value), "more than 0", "leave it out, or give a positive number"))
        self._folder = Path(folder)
        self._ranks = ranks
        self._parts = dict(parts)
        self._every_steps = every_steps
        self._every_seconds = None if every_minutes is None else 60 * every_minutes
        self._keep = keep
        self._saved_step = 0
        self._saved_at = time.monotonic()
        self._eviction = Eviction()

    def load(self, start_from: str | Path | None = None) -> int:
        """Load the newest whole checkpoint into the parts and return its step; 0 where there is none. A collective.

        start_from: a folder of checkpoints to begin with where the training's own has none yet

        A torn file is passed over with a note. Raise InputError if a checkpoint holds other parts, or parts of
        another shape.
        """
        found: list[Path | None] = [None]
        if self._ranks.is_main:
            for leftover in self._folder.glob("*.tmp"):
                leftover.unlink()
            found = [_newest(self._folder) or (_newest(Path(start_from)) if start_from is not None else None)]
        distributed.broadcast_object_list(found, src=0)
        path = found[0]
        if path is None:
            return 0
        if not path.exists():
            raise InputError(
                Problem(
                    where=f"rank {self._ranks.rank} (instance {self._ranks.instance_rank})",
                    found=f"no {path}, which rank 0 sees",
                    expected="a folder that all instances share",
                    fix="keep checkpoints in an output of the job, which every instance mounts",
                )
            )
        # Mapped: of a whole sharded model each rank reads what it keeps.
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        self._take(path, content["parts"])
        if content["world_size"] == self._ranks.world_size:
            random_states.restore(content["random_states"][self._ranks.rank], self._ranks.device)
        elif self._ranks.is_main:
            note(f"{path.name} was saved by {content['world_size']} ranks: random numbers go on otherwise")
        if self._ranks.is_main:
            note(f"going on from step {content['step']} ({path})")
        self._saved_step = int(content["step"])
        self._saved_at = time.monotonic()
        return self._saved_step

    def save_if_due(self, step: int) -> None:
        """Save where it is time. A collective: call it on every rank after each step.

        Raise Evicted, after saving and on every rank at the same step, when SIGTERM has reached any of them.
        """
        wanted = self._eviction.requested or self._time_is_up()
        if self._ranks.any(wanted):
            evicted = self._ranks.any(self._eviction.requested)
            self.save(step)
            if evicted:
                if self._ranks.is_main:
                    note(f"asked to end (SIGTERM): saved at step {step}, from which the next start goes on")
                raise Evicted
        elif self._every_steps is not None and step - self._saved_step >= self._every_steps:
            self.save(step)

    def save(self, step: int) -> None:
        """Save now; nothing where this step is saved already. A collective: ranks return when the file is there."""
        if step == self._saved_step:
            return
        mine = random_states.capture(self._ranks.device)
        gathered: list[Any] | None = [None] * self._ranks.world_size if self._ranks.is_main else None
        distributed.gather_object(mine, gathered, dst=0)
        parts = {name: part.state_dict() for name, part in self._parts.items()}  # a sharded one needs every rank
        if self._ranks.is_main:
            content = {
                "step": step,
                "world_size": self._ranks.world_size,
                "parts": parts,
                "random_states": gathered,
            }
            self._folder.mkdir(parents=True, exist_ok=True)
            _write(self._folder / f"step_{step:09d}.pt", content)
            for _, old in _all(self._folder)[self._keep :]:
                old.unlink()
        self._ranks.barrier()
        self._saved_step = step
        self._saved_at = time.monotonic()

    def _time_is_up(self) -> bool:
        # Clocks differ: rank 0's counts.
        if self._every_seconds is None or not self._ranks.is_main:
            return False
        return time.monotonic() - self._saved_at >= self._every_seconds

    def _take(self, path: Path, states: Mapping[str, Any]) -> None:
        if set(states) != set(self._parts):
            raise InputError(
                Problem(
                    where=f"checkpoint {path}",
                    found=f"the parts {', '.join(sorted(states))}",
                    expected=f"the parts {', '.join(sorted(self._parts))}",
                    fix="give a folder without checkpoints of another training",
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
                        fix="train the model that was saved, or give a folder without its checkpoints",
                    )
                ) from error


def _all(folder: Path) -> list[tuple[int, Path]]:
    """Return the checkpoints of a folder by their steps, the newest first."""
    if not folder.is_dir():
        return []
    named = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted(((int(match[1]), path) for match, path in named if match), reverse=True)


def _newest(folder: Path) -> Path | None:
    for _, path in _all(folder):
        if _is_whole(path):
            return path
        note(f"{path} is torn: passed over")
    return None


def _is_whole(path: Path) -> bool:
    # torch writes a zip archive: its directory stands at the end, and each member has a checksum.
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
        os.fsync(descriptor)  # the new name, too, is on the disk before older checkpoints go
    finally:
        os.close(descriptor)
