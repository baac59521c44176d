"""What a check before the first step found."""

from __future__ import annotations

from dataclasses import dataclass

OK = "ok"
WARNING = "warning"
FAILED = "FAILED"


@dataclass(frozen=True)
class Finding:
    """One check's outcome on one rank, or on all of them where nothing is to be said of one.

    check:    the check's name, one word
    state:    "ok", "warning" (training goes on) or "FAILED" (it does not start)
    found:    what was found: one line
    expected: what was to be found, where it was not
    fix:      what to do, where there is something to do
    instance, rank: who it is about; None for all
    """

    check: str
    state: str
    found: str
    expected: str = ""
    fix: str = ""
    instance: int | None = None
    rank: int | None = None

    @property
    def who(self) -> str:
        """ "instance 1, rank 2", "instance 1", or nothing where it is about all."""
        parts = [f"{name} {number}" for name, number in (("instance", self.instance), ("rank", self.rank))]
        return ", ".join(part for part in parts if not part.endswith("None"))
