"""A network variable that follows from the hardware, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NetworkVariable:
    """One variable of NCCL or UCX.

    why: a short reason, for a person who finds the value in a log
    """

    name: str
    value: str
    why: str
