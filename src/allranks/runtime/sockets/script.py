"""The main function of a script whose ranks are connected by sockets."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from allranks.contract import world
from allranks.contract.detect import detect
from allranks.contract.own_variables import join_seconds
from allranks.runtime import clean_exit, failure
from allranks.runtime.eviction import EVICTED
from allranks.runtime.metrics import Metrics
from allranks.runtime.sockets.ranks import Ranks
from allranks.runtime.sockets.rendezvous import connect
from allranks.runtime.sockets.watch import Watch

TIMEOUT_SECONDS = 600.0
"""How long a rank waits for the others at the start, and in every collective."""

_STATUS = {0: "FINISHED", EVICTED: "KILLED", failure.INTERRUPTED: "KILLED"}


def main(function: Callable[[Ranks], None], *, timeout_seconds: float = TIMEOUT_SECONDS) -> NoReturn:
    """Connect the ranks, call function(ranks), and exit.

    function:        what every rank does
    timeout_seconds: how long a rank waits for the others

    A rank that ends early ends the others within a second, also while they wait inside a library such as LightGBM,
    which would wait for minutes.

    Exit codes: 0 success, 1 an exception (recorded with its traceback) or a rank that was lost, 2 wrong input (an
    InputError), 143 saved and stopped for an eviction, 130 Ctrl-C. SystemExit determines its own code.
    """
    metrics = None
    watch = None
    try:
        env = detect()
        world.check(env)
        connections = connect(env, timeout_seconds, join_seconds(os.environ, timeout_seconds))
        metrics = Metrics(is_main=env.rank == 0)
        ranks = Ranks(env, metrics, connections)
        watch = Watch(connections, lambda error: _end_process(error, ranks.metrics))
        function(ranks)
        _part(ranks, watch)
        code = 0
    except BaseException as error:
        if watch is not None:
            watch.stop()
        code = failure.record(error)
        if code == EVICTED:  # every rank ends so, at the same step
            with suppress(OSError):
                _part(ranks, watch)
    if metrics is not None:
        metrics.close(_STATUS.get(code, "FAILED"))
    clean_exit.leave(code)


def _part(ranks: Ranks, watch: Watch | None) -> None:
    """Wait until every rank has finished, so that one that finishes early does not count as lost."""
    if watch is not None:
        watch.stop()
    ranks.barrier()


def _end_process(error: ConnectionError, metrics: Metrics) -> NoReturn:
    code = failure.record(error)
    metrics.close("FAILED")
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
