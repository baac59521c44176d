"""The process group of a training: backend, device, network interface, time-out."""

import os
from collections.abc import MutableMapping
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed
from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]

from allranks.contract.rank_env import RankEnv
from allranks.contract.variables import gpus_shared
from allranks.hardware.network import LOOPBACK
from allranks.runtime.notes import note

_FOLDER = Path("outputs", "flight_recorder")
"""Azure ML uploads ./outputs as the artifacts of the run."""
_FILE_VARIABLES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
"""Variables with the path of the files without the rank: torch's current name, and the former one."""


def open_group(env: RankEnv, store: Store, timeout_seconds: float) -> torch.device:
    """Initialise torch's default process group, and return the device of this rank.

    The backend is NCCL, with gloo for CPU tensors, if the instance has a GPU for each of its ranks. Otherwise it is
    gloo, also if ranks share a GPU, which NCCL does not support. If a collective of NCCL times out, the Flight Recorder
    writes the last ones to ./outputs.

    store:           the store that connects the ranks
    timeout_seconds: time-out of every collective
    """
    device = _device(env)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    elif env.local_world_size > 1 and "OMP_NUM_THREADS" not in os.environ:
        # Otherwise every rank would use every core, and the ranks of an instance would slow each other down.
        torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // env.local_world_size))
    with_nccl = device.type == "cuda" and not gpus_shared(os.environ)
    backend = "cpu:gloo,cuda:nccl" if with_nccl else "gloo"
    if with_nccl and env.world_size > 1:
        enable_flight_recorder()
    if env.world_size == 1:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", LOOPBACK)
    distributed.init_process_group(
        backend,
        store=PrefixStore("group", store),
        rank=env.rank,
        world_size=env.world_size,
        timeout=timedelta(seconds=timeout_seconds),
    )
    return device


def _device(env: RankEnv) -> torch.device:
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count >= env.local_world_size:
        return torch.device("cuda", env.local_rank)
    if count and gpus_shared(os.environ):
        return torch.device("cuda", env.local_rank % count)
    if count and env.local_rank == 0:
        note(f"instance {env.instance_rank} has {count} GPUs for {env.local_world_size} ranks: training on the CPU")
    return torch.device("cpu")


def enable_flight_recorder(*, environ: MutableMapping[str, str] = os.environ, folder: Path = _FOLDER) -> None:
    """Let NCCL's process groups write the last collectives of a rank to `folder/rank_N` when one times out.

    Call it before the process group starts. A path that the user has set stays as it is. Read the files with
    `torchfrtrace FOLDER --prefix rank_`.
    """
    if any(name in environ for name in _FILE_VARIABLES):
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)  # torch does not create it
    except OSError as error:
        note(f"no Flight Recorder: {error}")
        return
    environ[_FILE_VARIABLES[0]] = str(folder.absolute() / "rank_")
