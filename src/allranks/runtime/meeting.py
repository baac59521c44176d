"""Where the ranks of a job meet: a store at the master's address, at which every rank says that it has come."""

from __future__ import annotations

import json
import os
import socket
import time
from datetime import timedelta

from torch.distributed import DistNetworkError, DistStoreError, PrefixStore, Store, TCPStore  # type: ignore[attr-defined]

from allranks.contract.rank_env import RankEnv
from allranks.errors import InputError, Problem

NAME_SECONDS = 10.0
"""How long a name may stay unknown: those of instances that start together come up within seconds of each other."""

SILENT_SECONDS = 15.0
"""How long the master's address may leave a knock unanswered. A host that is up and has no rank 0 yet refuses at once,
so that silence is a firewall, or an address of another network."""

_KNOCK_SECONDS = 3.0
_PAUSE_SECONDS = 0.1
_GRACE_SECONDS = 5.0


def place(env: RankEnv, rank: int | None = None) -> str:
    """Return how a rank, by default this one, is named in what is said to a person: "instance 1, rank 2"."""
    if rank is None:
        return f"instance {env.instance_rank}, rank {env.rank}"
    return f"instance {rank // env.local_world_size}, rank {rank}"


def meet(env: RankEnv, timeout_seconds: float) -> Store:
    """Return the store of a job of several ranks, once every one of them has come to it. Rank 0 holds it.

    timeout_seconds bounds the wait for the others, which start when their instances do.
    Raise InputError if this rank has no address to go to, the address's name is not known, or it stays silent;
    ConnectionError where ranks did not come, naming them.
    """
    if env.master_addr is None or env.master_port is None:
        raise InputError(
            Problem(
                where=f"rank {env.rank} of {env.world_size} (launcher {env.launcher})",
                found="no address at which the ranks can meet",
                expected="MASTER_ADDR: the address of the instance that rank 0 runs on",
                fix="set MASTER_ADDR, and MASTER_PORT where another port than 6105 is to be used",
            )
        )
    # Under torchrun its agent holds the store, from before its ranks start and through their restarts.
    agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    holds = env.rank == 0 and not agent
    until = time.monotonic() + timeout_seconds
    if not holds:
        _reach(env, env.master_addr, env.master_port, until)
    try:
        store = TCPStore(
            env.master_addr,
            env.master_port,
            env.world_size,
            is_master=holds,
            timeout=timedelta(seconds=timeout_seconds),
            wait_for_workers=False,
        )
    except (DistStoreError, DistNetworkError) as error:
        hint = f"Is the port free there? ({str(error).splitlines()[0]})" if holds else "Did rank 0 start, and stay?"
        raise ConnectionError(f"{_not_met(env, timeout_seconds)}. {hint}") from error
    attempt = PrefixStore(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"), store)
    _await_all(env, attempt, until, timeout_seconds)
    return attempt


def _reach(env: RankEnv, host: str, port: int, until: float) -> None:
    """Return once somebody listens at the master's address, or nobody did for all the time there is: the store says
    that itself."""
    unknown = silent = None  # since when
    while (now := time.monotonic()) < until:
        try:
            with socket.create_connection((host, port), timeout=min(_KNOCK_SECONDS, until - now)):
                return
        except socket.gaierror as error:
            unknown = now if unknown is None else unknown
            if time.monotonic() - unknown > NAME_SECONDS:
                raise _unreachable(
                    env,
                    f"the master's name {host} does not resolve ({error.strerror})",
                    "the name or the address of the instance that rank 0 runs on",
                    "set MASTER_ADDR to that instance's address, or give this instance the name of that one",
                ) from None
        except ConnectionRefusedError:
            unknown = silent = None
        except OSError as error:
            silent = now if silent is None else silent
            if time.monotonic() - silent > SILENT_SECONDS:
                raise _unreachable(
                    env,
                    f"the master at {host}:{port} does not answer ({error.strerror or error})",
                    "a host that accepts or refuses: between instances every port has to be open",
                    "open the virtual network's security group between the instances, or the firewall on them; is "
                    "MASTER_ADDR an address that this instance has a route to?",
                ) from None
        time.sleep(_PAUSE_SECONDS)


def _unreachable(env: RankEnv, found: str, expected: str, fix: str) -> InputError:
    return InputError(Problem(f"{place(env)} on {socket.gethostname()}", found, expected, fix))


def _await_all(env: RankEnv, store: Store, until: float, timeout_seconds: float) -> None:
    """Say that this rank is here, and wait for the others; rank 0 knows them all and tells."""
    left = timedelta(seconds=max(1.0, until - time.monotonic()))
    try:
        store.set(_here(env.rank), "")
        if env.rank != 0:
            store.wait(["met"], left + timedelta(seconds=_GRACE_SECONDS))
            missing = json.loads(store.get("met"))
        else:
            missing = _missing(env, store, left)
            store.set("met", json.dumps(missing))
    except (DistStoreError, DistNetworkError) as error:
        raise ConnectionError(f"{_not_met(env, timeout_seconds)}. Rank 0 is gone, or does not answer") from error
    if missing:
        names = "; ".join(place(env, rank) for rank in missing[:8]) + (" ..." if len(missing) > 8 else "")
        raise ConnectionError(
            f"{_not_met(env, timeout_seconds)}. {len(missing)} did not come: {names}. Were all {env.world_size} "
            f"processes started, and can they reach that address?"
        )


def _missing(env: RankEnv, store: Store, left: timedelta) -> list[int]:
    try:
        store.wait([_here(rank) for rank in range(env.world_size)], left)
    except DistStoreError:
        return [rank for rank in range(env.world_size) if not store.check([_here(rank)])]
    return []


def _here(rank: int) -> str:
    return f"here/{rank}"


def _not_met(env: RankEnv, timeout_seconds: float) -> str:
    return (
        f"rank {env.rank} of {env.world_size} (instance {env.instance_rank} of {env.instance_count}, launcher "
        f"{env.launcher}) did not meet the others at {env.master_addr}:{env.master_port} within {timeout_seconds:g} s"
    )
