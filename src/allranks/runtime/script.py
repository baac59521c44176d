"""The main of a training script."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from torch import distributed

from allranks.runtime import clean_exit, failure
from allranks.runtime.eviction import EVICTED
from allranks.runtime.ranks import TIMEOUT_SECONDS, Ranks, start

_STATUS = {0: "FINISHED", EVICTED: "KILLED", failure.INTERRUPTED: "KILLED"}


def main(
    train: Callable[[Ranks], None], *, strategy: str = "ddp", timeout_seconds: float = TIMEOUT_SECONDS
) -> NoReturn:
    """Call train(ranks) with the process group up, and end the process.

    strategy:        how a model is spread over the ranks: "ddp", "fsdp", "deepspeed" or "horovod"
    timeout_seconds: how long a rank waits for the others, when they meet and in every collective

    Exit codes: 0 trained to its end, 1 an exception (recorded with its traceback), 2 wrong input (an InputError),
    143 saved and stopped for an eviction, 130 Ctrl-C; SystemExit keeps its own.
    """
    ranks = None
    try:
        ranks = start(strategy, timeout_seconds)
        train(ranks)
        code = 0
    except BaseException as error:
        # Recorded before anything else: among failed ranks the first is the cause, the others only lost their peer.
        code = failure.record(error)
    if ranks is not None:
        ranks.metrics.close(_STATUS.get(code, "FAILED"))
        if code == 0:
            distributed.destroy_process_group()
    clean_exit.leave(code)
