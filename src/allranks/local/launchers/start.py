"""What a launcher answers: the processes that the engine starts for a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from allranks.contract.launch import Launch
from allranks.contract.process import Process


@dataclass(frozen=True)
class Start:
    """One process that the engine starts.

    arguments: the program as an absolute path, and its arguments
    """

    process: Process
    arguments: tuple[str, ...]


Launcher: TypeAlias = Callable[[Launch, Sequence[str]], tuple[Start, ...]]
"""Given the launch and the command of each instance (its paths differ), says what to start."""
