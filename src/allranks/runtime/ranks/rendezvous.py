"""Rendezvous of the ranks: a store at the master's address, in which every rank registers."""

import json
import os
import socket
import time
from datetime import timedelta

from torch.distributed import DistNetworkError, DistStoreError, PrefixStore, Store, TCPStore  # type: ignore[attr-defined]

from allranks.contract.rank_env import RankEnv
from allranks.errors import InputError, Problem

NAME_SECONDS = 10.0
"""Time limit for resolving the master's name. Names of instances that start together appear within seconds."""

SILENT_SECONDS = 15.0
"""Time limit for connections to the master that time out. A host without rank 0 refuses connections immediately, so a
time-out indicates a firewall, or an address in another network."""

_CONNECT_SECONDS = 3.0
_PAUSE_SECONDS = 0.1
_GRACE_SECONDS = 5.0


def rank_label(env: RankEnv, rank: int | None = None) -> str:
    """Return the name of a rank, by default this one, for messages: "instance 1, rank 2"."""
    if rank is None:
        return f"instance {env.instance_rank}, rank {env.rank}"
    return f"instance {rank // env.local_world_size}, rank {rank}"


def connect_ranks(env: RankEnv, timeout_seconds: float) -> Store:
    """Wait until all ranks have connected to the store, and return the store. Rank 0 hosts it.

    timeout_seconds: time limit for the other ranks, whose instances may start later

    Raise InputError if there is no master address, its name does not resolve, or it does not answer. Raise
    ConnectionError, which names the missing ranks, if some ranks do not connect in time.
    """
    address, port = env.master()
    # Under torchrun, its agent hosts the store before its ranks start and during their restarts.
    agent_hosts = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    is_host = env.rank == 0 and not agent_hosts
    deadline = time.monotonic() + timeout_seconds
    if not is_host:
        _wait_for_master(env, address, port, deadline)
    try:
        store = TCPStore(
            address,
            port,
            env.world_size,
            is_master=is_host,
            timeout=timedelta(seconds=timeout_seconds),
            wait_for_workers=False,
        )
    except (DistStoreError, DistNetworkError) as error:
        hint = (
            f"Is the port free there? ({str(error).splitlines()[0]})"
            if is_host
            else "Did rank 0 start, and is it still running?"
        )
        raise ConnectionError(f"{_not_connected(env, timeout_seconds)}. {hint}") from error
    restart_store = PrefixStore(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"), store)
    _wait_for_all(env, restart_store, deadline, timeout_seconds)
    return restart_store


def _wait_for_master(env: RankEnv, host: str, port: int, deadline: float) -> None:
    """Wait until a process listens at the master's address, or until the deadline: the store then raises an error."""
    unresolved_since = silent_since = None
    while (now := time.monotonic()) < deadline:
        try:
            with socket.create_connection((host, port), timeout=min(_CONNECT_SECONDS, deadline - now)):
                return
        except socket.gaierror as error:
            unresolved_since = now if unresolved_since is None else unresolved_since
            if time.monotonic() - unresolved_since > NAME_SECONDS:
                raise _unreachable(
                    env,
                    f"the master's name {host} does not resolve ({error.strerror})",
                    "the name or the address of the instance that rank 0 runs on",
                    "set MASTER_ADDR to that instance's address, or make its name resolve on this instance",
                ) from None
        except ConnectionRefusedError:
            unresolved_since = silent_since = None
        except OSError as error:
            silent_since = now if silent_since is None else silent_since
            if time.monotonic() - silent_since > SILENT_SECONDS:
                raise _unreachable(
                    env,
                    f"the master at {host}:{port} does not answer ({error.strerror or error})",
                    "a host that accepts or refuses connections: all ports between instances must be open",
                    "open the virtual network's security group between the instances, or the firewall on them; is "
                    "MASTER_ADDR an address that this instance has a route to?",
                ) from None
        time.sleep(_PAUSE_SECONDS)


def _unreachable(env: RankEnv, found: str, expected: str, fix: str) -> InputError:
    where = f"{rank_label(env)} on {socket.gethostname()}"
    return InputError(Problem(where, found, expected, fix, code="no-rendezvous"))


def _wait_for_all(env: RankEnv, store: Store, deadline: float, timeout_seconds: float) -> None:
    """Register this rank in the store and wait for the others. Rank 0 writes the list of missing ranks to the store."""
    remaining = timedelta(seconds=max(1.0, deadline - time.monotonic()))
    try:
        store.set(_arrival_key(env.rank), "")
        if env.rank != 0:
            store.wait(["met"], remaining + timedelta(seconds=_GRACE_SECONDS))
            missing = json.loads(store.get("met"))
        else:
            missing = _missing(env, store, remaining)
            store.set("met", json.dumps(missing))
    except (DistStoreError, DistNetworkError) as error:
        raise ConnectionError(
            f"{_not_connected(env, timeout_seconds)}. Rank 0 has ended, or does not answer"
        ) from error
    if missing:
        names = "; ".join(rank_label(env, rank) for rank in missing[:8]) + (" ..." if len(missing) > 8 else "")
        raise ConnectionError(
            f"{_not_connected(env, timeout_seconds)}. {len(missing)} did not connect: {names}. Were all "
            f"{env.world_size} processes started, and can they connect to that address?"
        )


def _missing(env: RankEnv, store: Store, timeout: timedelta) -> list[int]:
    try:
        store.wait([_arrival_key(rank) for rank in range(env.world_size)], timeout)
    except DistStoreError:
        return [rank for rank in range(env.world_size) if not store.check([_arrival_key(rank)])]
    return []


def _arrival_key(rank: int) -> str:
    return f"here/{rank}"


def _not_connected(env: RankEnv, timeout_seconds: float) -> str:
    return (
        f"rank {env.rank} of {env.world_size} (instance {env.instance_rank} of {env.instance_count}, launcher "
        f"{env.launcher}) did not connect to the others at {env.master_addr}:{env.master_port} within "
        f"{timeout_seconds:g} s"
    )
