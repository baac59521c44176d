"""The options of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from allranks.errors import InputError, Problem
from allranks.local.selection import ALL, Selection

AUTO = "auto"
"""Selects the first kind of instances that this machine supports."""


MOST_SLOTS = 10_000
"""More ranks than any machine runs at once."""


@dataclass(frozen=True)
class Options:
    """Options of a run. `allranks.run` documents most of them.

    grace:        seconds from SIGTERM to SIGKILL when the run is stopped
    trigger_time: the time of the firing that starts the run (without a time zone: in UTC); None without a schedule. A
                  resumed run keeps its own
    run_name:     the job's name, the value of ``${{name}}``. None: the run's id
    selection:    the steps to run; default: all
    target:       the file that the plan was read from, ``FILE[:NAME]``; "" if the job was given as an object
    settings:     the inputs that were set when the file was read, as text
    environment:  as for `allranks.run`, or "container"
    start_timeout: all instances of a step start together here, in milliseconds. On Azure ML they start minutes apart,
                  so the bound there is the training's own
    debug:        the `DebugSession` of allranks-lab for one of its steps; None without a debugger
    """

    instances: str = AUTO
    force_rerun: bool = False
    retries: int = 0
    slots: int | None = None
    gpus: str = "auto"
    track: bool = True
    grace: float = 10.0
    trigger_time: datetime | None = None
    run_name: str | None = None
    selection: Selection = ALL
    target: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    cold: bool = False
    start_timeout: float = 20.0
    stall: float = 300.0
    offline: bool = False
    sample: str = ""
    faults: Sequence[str] = ()
    environment: str = "host"
    debug: Any = None

    def __post_init__(self) -> None:
        if self.slots is not None and not 1 <= self.slots <= MOST_SLOTS:
            raise InputError(Problem(f"--slots {self.slots}", "not a number of ranks", f"1 to {MOST_SLOTS}"))

    def debugs(self, path: str) -> bool:
        """Return whether the step at a path of the run is debugged."""
        return self.debug is not None and bool(self.debug.concerns(path))


DEFAULTS = Options()
"""The options of a run for which the user sets none."""
