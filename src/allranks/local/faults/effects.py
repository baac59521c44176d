"""What faults do to processes."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Sequence

from allranks.local import stack_dumps
from allranks.runs.records import RankRecord


def signal_ranks(ranks: Sequence[RankRecord], number: signal.Signals) -> None:
    """Send a signal to every process that writes to the log of one of the ranks: the shell, the script, the workers of
    a launcher and of data loaders."""
    for pid, _ in stack_dumps.processes_of({rank.rank: rank.log for rank in ranks}):
        with contextlib.suppress(OSError):  # it has just ended
            os.kill(pid, number)
