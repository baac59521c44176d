"""The process group of a training: backend, device, network interface, time-out."""

from __future__ import annotations

import os
from datetime import timedelta

import torch
from torch import distributed

from allranks.contract import devices
from allranks.contract.rank_env import RankEnv
from allranks.errors import InputError, Problem
from allranks.hardware.network import LOOPBACK
from allranks.runtime.notes import note


def open_group(env: RankEnv, timeout_seconds: float) -> torch.device:
    """Bring up torch's default process group, and return the device of this rank.

    NCCL where the instance has a GPU for each of its ranks, with gloo for tensors on the CPU; else gloo alone, also
    where ranks share a GPU, which NCCL refuses.
    One process needs no launcher, address or port.

    timeout_seconds bounds the meeting of the ranks and every collective.
    Raises InputError where several ranks have no address to meet at, ConnectionError where they did not meet.
    """
    device = _device(env)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    else:
        _share_cores(env)
    with_nccl = device.type == "cuda" and not devices.shared(os.environ)
    backend = "cpu:gloo,cuda:nccl" if with_nccl else "gloo"
    timeout = timedelta(seconds=timeout_seconds)

    if env.world_size == 1:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK)
        store = distributed.HashStore()  # type: ignore[attr-defined]
        distributed.init_process_group(backend, store=store, rank=0, world_size=1, timeout=timeout)
        return device

    if env.master_addr is None:
        raise InputError(
            Problem(
                where=f"rank {env.rank} of {env.world_size} (launcher {env.launcher})",
                found="no address at which the ranks can meet",
                expected="MASTER_ADDR: the address of the instance that rank 0 runs on",
                fix="set MASTER_ADDR, and MASTER_PORT where another port than 6105 is to be used",
            )
        )
    try:
        distributed.init_process_group(backend, init_method="env://", timeout=timeout)
    except (distributed.DistStoreError, distributed.DistNetworkError) as error:
        raise ConnectionError(
            f"rank {env.rank} of {env.world_size} (instance {env.instance_rank} of {env.instance_count}, launcher "
            f"{env.launcher}) did not meet the others at {env.master_addr}:{env.master_port} within "
            f"{timeout_seconds:g} s. Were all {env.world_size} processes started, can they reach that address, and is "
            f"the port free there?"
        ) from error
    return device


def _device(env: RankEnv) -> torch.device:
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count >= env.local_world_size:
        return torch.device("cuda", env.local_rank)
    if count and devices.shared(os.environ):
        return torch.device("cuda", env.local_rank % count)
    if count and env.local_rank == 0:
        note(f"instance {env.instance_rank} has {count} GPUs for {env.local_world_size} ranks: training on the CPU")
    return torch.device("cpu")


def _share_cores(env: RankEnv) -> None:
    # Every rank would otherwise take every core, and ranks of one instance would wait for each other.
    if env.local_world_size > 1 and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // env.local_world_size))
