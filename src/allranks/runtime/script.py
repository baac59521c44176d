"""The main function of a training script with torch, and its process group as a context manager."""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import NoReturn

from torch import distributed
from torch.distributed import HashStore  # type: ignore[attr-defined]

from allranks.contract import world
from allranks.contract.variables import join_seconds
from allranks.contract.world import detect
from allranks.runtime import libraries, lifecycle, strategies
from allranks.runtime.lifecycle import TIMEOUT_SECONDS
from allranks.runtime.metrics.metrics import Metrics
from allranks.runtime.preflight.checking import Preflight, is_enabled
from allranks.runtime.ranks.process_group import open_group
from allranks.runtime.ranks.ranks import Ranks
from allranks.runtime.ranks.rendezvous import connect_ranks


def main(
    train: Callable[[Ranks], None], *, strategy: str = "ddp", timeout_seconds: float = TIMEOUT_SECONDS
) -> NoReturn:
    """Initialise the process group, call train(ranks), and exit.

    train:           the training function. All ranks call it.
    strategy:        "ddp", "fsdp", "deepspeed" or "horovod"
    timeout_seconds: time limit for the other ranks, at the rendezvous and in every collective

    Exit codes: 0 success, 1 an exception (recorded with its traceback), 2 wrong input (an InputError), 143 saved and
    stopped for an eviction, 130 Ctrl-C. SystemExit determines its own code.
    """

    def connect(ending: lifecycle.Ending) -> Callable[[], None]:
        ranks = _start(strategy, timeout_seconds)
        ending.metrics = ranks.metrics
        ending.disconnect = lambda code: None if code else distributed.destroy_process_group()
        return partial(train, ranks)

    lifecycle.run(connect)


@contextmanager
def started(*, strategy: str = "ddp", timeout_seconds: float = TIMEOUT_SECONDS) -> Generator[Ranks]:
    """Context manager that yields the same Ranks as `main` passes to a training. For programs with their own main
    function."""
    ranks = _start(strategy, timeout_seconds)
    status, ended = "FAILED", None
    try:
        try:
            yield ranks
        except SystemExit as error:
            if error.code:
                raise
            ended = error
        lifecycle.close_all()
        status = "FINISHED"
    except BaseException:
        lifecycle.abandon_all()
        raise
    finally:
        ranks.metrics.close(status)
        distributed.destroy_process_group()
    if ended:
        raise ended


def _start(strategy_name: str, timeout_seconds: float) -> Ranks:
    """Read the launch variables, prepare libraries, connect the ranks, run the preflight checks, initialise the process
    group, and open the metrics.

    Raise InputError if the launch variables contradict each other, the ranks came up on fewer instances than declared,
    the strategy is unknown or not installed, or a preflight check fails. Raise ConnectionError if the ranks do not
    connect within ALLRANKS_JOIN_SECONDS, by default timeout_seconds.
    """
    env = detect()
    has_preflight = is_enabled(env)
    if not has_preflight:  # it compares the worlds too, in its table
        world.check(env)
    full_instance_count = world.full_instances(env)
    strategies.check(strategy_name)
    libraries.set_variables(env)
    store = connect_ranks(env, join_seconds(os.environ, timeout_seconds)) if env.world_size > 1 else HashStore()
    preflight = Preflight(env, store) if has_preflight else None
    if preflight:
        preflight.before_the_group()
    device = open_group(env, store, timeout_seconds)
    if preflight:
        preflight.in_the_group(device)
    return Ranks(
        rank=env.rank,
        local_rank=env.local_rank,
        world_size=env.world_size,
        local_world_size=env.local_world_size,
        instance_rank=env.instance_rank,
        instance_count=env.instance_count,
        launcher=env.launcher,
        device=device,
        strategy=strategies.strategy(strategy_name, device),
        metrics=Metrics(is_main=env.rank == 0),
        store=store,
        full_instance_count=full_instance_count,
    )
