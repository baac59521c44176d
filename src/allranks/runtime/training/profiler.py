"""Profile some steps of a training with torch.profiler."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from allranks.errors import InputError, Problem
from allranks.runtime.notes import note
from allranks.runtime.ranks.ranks import Ranks

FOLDER = Path("outputs", "profile")
"""Azure ML uploads ./outputs as the artifacts of the run."""

ROWS = 20


class Profiler:
    """Profile some steps with torch.profiler, on some ranks.

        with runtime.Profiler(ranks, active=5, enabled=args.profile) as profiler:
            for batch in loader:
                ...
                profiler.step()

    wait:     steps before the profiler starts, in which a training is often slower, such as those that compile
    warm_up:  steps that the profiler then records and discards, because its own start is slow
    active:   steps that are recorded
    on_ranks: the ranks that record. The other ranks wait for them in their collectives.
    folder:   folder of the results
    enabled:  whether to profile at all
    options:  further arguments of torch.profiler.profile, such as record_shapes, profile_memory or with_stack

    A rank that records writes `rank_0.pt.trace.json.gz`, which https://ui.perfetto.dev and TensorBoard open, and
    `rank_0.txt`, a table of the operators that took longest. Before, after and on other ranks, `step` does nothing.
    Raise InputError for a number out of range.
    """

    def __init__(
        self,
        ranks: Ranks,
        *,
        wait: int = 10,
        warm_up: int = 2,
        active: int = 3,
        on_ranks: Sequence[int] = (0,),
        folder: str | Path = FOLDER,
        enabled: bool = True,
        **options: Any,
    ) -> None:
        for name, value, minimum in (("wait", wait, 0), ("warm_up", warm_up, 0), ("active", active, 1)):
            if value < minimum:
                raise InputError(Problem(f"profiler, {name}", str(value), f"at least {minimum}"))
        if unknown := [rank for rank in on_ranks if not 0 <= rank < ranks.world_size]:
            found = f"{unknown[0]}, with {ranks.world_size} ranks"
            raise InputError(Problem("profiler, on_ranks", found, f"from 0 to {ranks.world_size - 1}"))
        self._ranks, self._folder = ranks, Path(folder)
        self._wait, self._warm_up, self._active = wait, warm_up, active
        self._options = options
        self._profile: Any = None
        self._enabled = enabled and ranks.rank in on_ranks

    def __enter__(self) -> Profiler:
        """Start to count the steps."""
        if self._enabled:
            profiler: Any = torch.profiler  # torch imports it with itself
            activities = [profiler.ProfilerActivity.CPU]
            if self._ranks.device.type == "cuda":
                activities.append(profiler.ProfilerActivity.CUDA)
            schedule = profiler.schedule(wait=self._wait, warmup=self._warm_up, active=self._active, repeat=1)
            self._profile = profiler.profile(
                activities=activities, schedule=schedule, on_trace_ready=self._write, **self._options
            )
            self._profile.start()
        return self

    def step(self) -> None:
        """Count a step. Call it after each one."""
        if self._profile is not None:
            self._profile.step()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Write what was recorded, if that has not been done yet."""
        if self._profile is not None:
            self._profile.stop()
        if self._profile is not None:
            self._profile = None
            note(f"rank {self._ranks.rank} recorded no profile: it made no more than {self._wait} steps")

    def _write(self, profile: Any) -> None:
        self._profile = None  # `step` costs nothing from now on
        name = f"rank_{self._ranks.rank}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            profile.export_chrome_trace(str(self._folder / f"{name}.pt.trace.json.gz"))
            order = f"self_{self._ranks.device.type}_time_total"
            table = profile.key_averages().table(sort_by=order, row_limit=ROWS)
            (self._folder / f"{name}.txt").write_text(table + "\n", encoding="utf-8")
        except OSError as problem:  # a full disk must not end a training
            note(f"the profile of rank {self._ranks.rank} could not be written: {problem}")
        else:
            note(f"rank {self._ranks.rank} wrote the profile of {self._active} steps to {self._folder}/{name}.*")
