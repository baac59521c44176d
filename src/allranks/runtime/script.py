"""The main function of a training script."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from torch import distributed

from allranks.runtime.exit import clean_exit, closing, failure
from allranks.runtime.exit.eviction import EVICTED
from allranks.runtime.ranks.ranks import TIMEOUT_SECONDS, Ranks, start

_STATUS = {0: "FINISHED", EVICTED: "KILLED", failure.INTERRUPTED: "KILLED"}


def main(
    train: Callable[[Ranks], None], *, strategy: str = "ddp", timeout_seconds: float = TIMEOUT_SECONDS
) -> NoReturn:
    """Initialise the process group, call train(ranks), and exit.

    train:           the training function. All ranks call it.
    strategy:        "ddp", "fsdp", "deepspeed" or "horovod"
    timeout_seconds: how long a rank waits for the others, at the rendezvous and in every collective

    Exit codes: 0 success, 1 an exception (recorded with its traceback), 2 wrong input (an InputError), 143 saved and
    stopped for an eviction, 130 Ctrl-C. SystemExit determines its own code.
    """
    ranks = None
    try:
        ranks = start(strategy, timeout_seconds)
        try:
            train(ranks)
        except SystemExit as ended:
            if ended.code:  # sys.exit(0) is a success, which waits for its last checkpoint
                raise
        closing.close_all()
        code = 0
    except BaseException as error:
        # Recorded first: the rank that failed first is the cause, and the others failed because they lost it.
        code = failure.record(error)
        closing.abandon_all()
    if ranks is not None:
        ranks.metrics.close(_STATUS.get(code, "FAILED"))
        if code == 0:
            distributed.destroy_process_group()
    clean_exit.leave(code)
