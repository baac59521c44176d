"""The finding of a preflight check."""

from __future__ import annotations

from dataclasses import dataclass

OK = "ok"
WARNING = "warning"
FAILED = "FAILED"


@dataclass(frozen=True)
class Finding:
    """The outcome of one check, for one rank or for all of them.

    check:    name of the check, one word
    state:    "ok", "warning" (the training continues) or "FAILED" (the training does not start)
    found:    what was found, in one line
    expected: what was expected, if the state is not "ok"
    fix:      what to do, if anything
    instance, rank: whom the finding is about; None for all
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
        """ "instance 1, rank 2", "instance 1", or "" for all."""
        parts = [f"{name} {number}" for name, number in (("instance", self.instance), ("rank", self.rank))]
        return ", ".join(part for part in parts if not part.endswith("None"))
