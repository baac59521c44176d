"""Checkpoints from which a training resumes, also after an eviction."""

import itertools
import math
import pickle
import time
import weakref
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import distributed
from torch.distributed import PrefixStore  # type: ignore[attr-defined]
from torch.distributed.checkpoint import state_dict_saver

from allranks.errors import InputError, Problem
from allranks.runtime import tensors
from allranks.runtime.checkpoints import manifest, random_states, reading, state, writing
from allranks.runtime.checkpoints.manifest import Entry, Manifest
from allranks.runtime.checkpoints.staging import StagingMemory
from allranks.runtime.checkpoints.writing import WRITE_SECONDS, BackgroundSave, not_written
from allranks.runtime.clean_exit import Evicted, Eviction
from allranks.runtime.notes import note
from allranks.runtime.ranks.agreement import Agreement
from allranks.runtime.ranks.ranks import Ranks

_LONG_SECONDS = 1.0
"""Time that a step may wait for the previous checkpoint without a note."""

_numbers = itertools.count()


class Stateful(Protocol):
    """An object that a checkpoint can save: a training, a scheduler, a sampler, a model without a strategy."""

    def state_dict(self) -> Any:
        """Return the state as tensors and plain values. Called on every rank.

        Every rank's part of DTensors and TensorShards is saved, and rank 0's value of everything else."""

    def load_state_dict(self, state: Any, /) -> Any:
        """Load a state. Called on every rank. A part with `reads_saved_tensors = True` gets each tensor as a
        SavedTensor, of which it can read regions. Any other part gets whole tensors."""


class Checkpoints:
    """The checkpoints of a training in one folder, `step_000000100` and so on.

    Each rank writes its part of the state: its shards of a sharded model, and a share of replicated tensors. A save
    copies the state to host memory, while the training waits, and a thread writes it. When the files of all ranks are
    on disk, rank 0 writes a manifest with their checksums, which makes the checkpoint valid. If a process is killed
    before, the previous checkpoint remains.

    A checkpoint also contains the random states of every rank, so that a resumed training computes the same steps as an
    uninterrupted one, bit by bit on CPUs. With find_unused_parameters on more than two ranks it does
    so up to rounding, because DistributedDataParallel changes its gradient buckets after the first step, and with them
    the order in which gloo adds gradients. A training can resume with any number of ranks.

    The files are those of torch.distributed.checkpoint, which reads them without this package. No code in them is
    executed here.

    folder:        folder of the checkpoints; all instances must share it (an output of the job)
    parts:         the objects to save, by name: the result of `strategy.prepare`, the sampler
    every_steps:   number of steps between checkpoints
    every_minutes: minutes between checkpoints
    keep:          number of newest checkpoints to keep, besides the one with the best metric; others are removed
    mode:          whether the best metric is the lowest ("min") or the highest ("max")
    asynchronous:  whether the training continues while a checkpoint is written

    metric: the metric of the checkpoint that was saved or loaded last; None if it has none

    Must be constructed on the main thread, and on every rank. From then on, the first SIGTERM does not end the process:
    `save_if_due` saves and ends the training, on every rank at the same step. A SIGTERM more than 5 seconds after the
    first ends the process immediately.
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
        mode: str = "min",
        asynchronous: bool = True,
    ) -> None:
        for name, value in (("every_steps", every_steps), ("every_minutes", every_minutes), ("keep", keep)):
            if value is not None and value <= 0:
                raise InputError(Problem(name, str(value), "more than 0", "omit it, or use a positive number"))
        if mode not in manifest.MODES:
            raise InputError(Problem("mode", repr(mode), "min or max", "use one of these"))
        self._folder = Path(folder)
        self._ranks = ranks
        self._parts = dict(parts)
        self._every_steps = every_steps
        self._every_seconds = math.inf if every_minutes is None else 60 * every_minutes
        self._keep = keep
        self._mode = mode
        self._asynchronous = asynchronous
        self.metric: float | None = None
        self._saved_step: int | None = None
        self._due_from = 0
        self._polls = 0
        self._is_due = self._must_stop = False  # as the ranks have agreed
        self._due_at = time.monotonic() + self._every_seconds
        self._eviction = Eviction()
        self._key = f"allranks/checkpoints/{next(_numbers)}"
        self._agreement = Agreement(PrefixStore(self._key, ranks.store), ranks.rank, ranks.world_size)
        weakref.finalize(self, self._agreement.close).atexit = False
        # A separate group, because the threads of the saves communicate during the training.
        self._group = distributed.new_group(backend="gloo", timeout=timedelta(seconds=WRITE_SECONDS))
        self._staging: StagingMemory | None = None
        self._pending: BackgroundSave | None = None
        self._noted = False

    def load(
        self, start_from: str | Path | None = None, *, best: bool = False, start_from_name: str = "start_from"
    ) -> int:
        """Load the newest complete checkpoint into the parts, and return its step; 0 if there is none. A collective.

        start_from: a folder with checkpoints to load if this training's folder has none yet
        best:       load the checkpoint with the best metric instead, if one has a metric
        start_from_name: the name of the input that gave `start_from`, for messages

        Skip incomplete and damaged checkpoints with a note. Raise InputError if `start_from` is needed and has no
        complete checkpoint, or if the checkpoint has other parts, or parts of another shape."""
        self._finish_pending()
        if self._ranks.is_main:
            manifest.remove_incomplete(self._folder)
        sources = [self._folder] if start_from is None else [self._folder, Path(start_from)]
        for source in sources:
            for entry in self._candidates(source, best):
                if self._is_intact(entry):
                    return self._load(entry, is_own=source == self._folder)
                if self._ranks.is_main:
                    note(f"{entry.path} is incomplete or damaged: skipped")
        if start_from is not None:
            found = f"no complete checkpoint in {start_from}"
            expected = "a folder of checkpoints, such as step_000000100"
            fix = f"use the checkpoints of an earlier training, or omit {start_from_name}"
            raise InputError(Problem(start_from_name, found, expected, fix, code="checkpoints"))
        return 0

    def save_if_due(self, step: int, *, metric: float | None = None) -> None:
        """Save if a checkpoint is due. Call it on every rank after each step. The ranks communicate only if one is due.

        metric: a figure of this step's model, such as the validation loss, for the checkpoint that is due. Rank 0's is
                used. To save whenever there is a figure, call `save`.

        If any rank has received SIGTERM, the ranks agree on one of the next steps, save at it and raise Evicted. A
        training that ends before that step ends as usual. Within long work between two steps, such as a validation,
        call `interrupted`. Rank 0 counts the minutes, and the ranks save about a second after they have passed.

        Raise InputError if an earlier checkpoint could not be written, on every rank at the same step.
        """
        if self._staging is None and (self._every_steps or self._every_seconds < math.inf):
            # At the first step, when the optimizers have their state.
            self._staging = StagingMemory(self._ranks.device)
            self._staging.reserve(self._state().shards)
        self._poll()
        agreed, self._is_due = self._is_due, False
        if self._must_stop:
            self.save(step, metric=metric)
            if self._ranks.is_main:
                note(f"received SIGTERM: saved a checkpoint at step {step}, from which the next start resumes")
            raise Evicted
        if agreed or (self._every_steps is not None and step - self._due_from >= self._every_steps):
            self._start(step, metric)
            if not self._asynchronous:
                self.save(step)

    def interrupted(self) -> bool:
        """Return whether to stop long work between two steps, because a rank has received SIGTERM, or a checkpoint
        could not be written. The next `save_if_due` then saves and ends the training.

            for batch in validation_loader:
                if checkpoints.interrupted():
                    return None
                ...

        Call it on every rank equally often. All get the same answer from the same call, usually without communication.
        """
        self._poll()
        return self._must_stop

    def save(self, step: int, *, metric: float | None = None, wait: bool = True) -> None:
        """Save now. A collective.

        wait: return when the checkpoint is complete; False: it is written in the background

        If this step is already saved, only a metric that its checkpoint does not have is added.

        Raise InputError if it, or an earlier one, could not be written."""
        self._start(step, metric)
        if wait and self._pending is not None:
            self._finish_pending()
            self._ranks.barrier()

    def close(self) -> None:
        """Wait until the last checkpoint is complete. `main` and `started` do so at the end of a training.

        Raise InputError if it could not be written."""
        self._finish_pending()
        self._agreement.close()

    def _poll(self) -> None:
        """Let the ranks agree on a call at which all of them save. They count the calls, not the steps."""
        if self._must_stop:
            return
        if self._eviction.requested or (self._pending is not None and self._pending.has_failed):
            self._agreement.request(stop=True)
        elif time.monotonic() >= self._due_at and self._ranks.is_main and not self._is_due:
            # By the clock of one rank, because the clocks of instances differ.
            self._agreement.request(stop=False)
        self._polls += 1
        decision = self._agreement.reach(self._polls)
        if decision is not None:
            self._is_due, self._must_stop = True, decision.stop

    def _start(self, step: int, metric: float | None) -> None:
        """Begin to save, unless this step is already saved."""
        metric = None if metric is None else float(metric)
        if step == self._saved_step:
            if metric is not None and self.metric is None:
                self._finish_pending()
                self._add_metric(step, metric)
            return
        own = self._state()
        started = time.monotonic()
        self._finish_pending()
        waited = time.monotonic() - started
        if waited > _LONG_SECONDS and self._ranks.is_main and not self._noted:
            self._noted = True
            note(
                f"step {step} waited {waited:.0f} s for the previous checkpoint: save less often, or to faster storage"
            )
        if self._staging is None:
            self._staging = StagingMemory(self._ranks.device)
        copies, ready = self._staging.fill(own.shards)
        path, description = manifest.checkpoint_path(self._folder, step), Manifest(step, self._ranks.world_size, metric)
        remove_old = partial(manifest.remove_old, self._folder, step, self._keep, self._mode)
        save = partial(
            state_dict_saver.save,
            writing.nested(copies, own.others),
            storage_writer=writing.Writer(path, description, own.aliases, remove_old),
            planner=writing.Planner(self._key, ready),
            process_group=self._group,
        )
        self._pending = BackgroundSave(path, save)
        self._saved_step = step
        self.metric = metric
        self._due_from = step
        self._due_at = time.monotonic() + self._every_seconds

    def _add_metric(self, step: int, metric: float) -> None:
        self.metric = metric
        path = manifest.checkpoint_path(self._folder, step)
        description = manifest.read(path) if self._ranks.is_main else None
        if description is not None:
            try:
                manifest.write(path, replace(description, metric=metric))
            except OSError as error:
                raise not_written(path, f"rank 0: {error}") from error

    def _state(self) -> state.OwnState:
        states = {name: part.state_dict() for name, part in self._parts.items()}
        return state.own_state(states, self._ranks.rank, random_states.capture(self._ranks.device))

    def _finish_pending(self) -> None:
        if self._pending is not None:
            self._pending.close()

    def _candidates(self, source: Path, best: bool) -> list[Entry]:
        """Return the checkpoints that rank 0 sees, in the order in which to try them. A collective."""
        found = manifest.entries(source) if self._ranks.is_main else []
        if best and (best_one := manifest.best(found, self._mode)):
            found.insert(0, best_one)
        return self._ranks.broadcast(found)

    def _is_intact(self, entry: Entry) -> bool:
        """Return whether a checkpoint is intact, of which each rank checks a share. A collective."""
        if not entry.path.exists():
            raise InputError(
                Problem(
                    where=f"rank {self._ranks.rank} (instance {self._ranks.instance_rank})",
                    found=f"no {entry.path}, which rank 0 sees",
                    expected="a folder that all instances share",
                    fix="save checkpoints to an output of the job, which every instance mounts",
                    code="checkpoints",
                )
            )
        return not self._ranks.any_rank(not manifest.is_intact(entry, self._ranks.rank, self._ranks.world_size))

    def _load(self, entry: Entry, *, is_own: bool) -> int:
        assert entry.manifest is not None
        step, world_size = entry.step, entry.manifest.world_size
        try:
            reader = reading.Reader(entry.path)
        except pickle.UnpicklingError as error:  # the file is intact
            expected = f"one that torch {torch.__version__} can read"
            fix = "resume with the version of torch that saved it"
            found = f"{manifest.METADATA}: {error}"
            raise InputError(Problem(f"checkpoint {entry.path}", found, expected, fix, code="checkpoints")) from None
        self._load_parts(entry.path, reader.parts())
        if self._ranks.rank < world_size:
            states = reader.value(state.random_states_name(self._ranks.rank))
            random_states.restore(states, self._ranks.device)
        else:  # neither its initial numbers nor those of another rank
            random_states.seed(f"{torch.initial_seed()} {step} {self._ranks.rank}")
        if world_size != self._ranks.world_size and self._ranks.is_main:
            note(f"{entry.path.name} was saved by {world_size} ranks: random numbers will differ")
        if self._ranks.is_main:
            note(f"resuming from step {step} ({entry.path})")
        self.metric = entry.manifest.metric
        # A checkpoint of another folder is not saved in this one.
        self._saved_step = step if is_own else None
        self._due_from = step
        self._due_at = time.monotonic() + self._every_seconds
        return step

    def _load_parts(self, path: Path, states: Mapping[str, Any]) -> None:
        if set(states) != set(self._parts):
            found = f"the parts {', '.join(sorted(states))}"
            expected = f"the parts {', '.join(sorted(self._parts))}"
            fix = "use a folder without checkpoints of another training"
            raise InputError(Problem(f"checkpoint {path}", found, expected, fix, code="checkpoints"))
        for name, part in self._parts.items():
            state = states[name]
            try:
                if not getattr(part, "reads_saved_tensors", False):
                    state = tensors.full(state)
                part.load_state_dict(state)
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
