"""The launchers of a user's program.

A launcher is a function that returns the command before the program and its arguments, which starts the processes of an
instance; only `RANK` if this process is the rank itself. It raises InputError if the platform's launch does not fit.
"""

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from allranks.contract import launch, world
from allranks.contract.variables import join_seconds
from allranks.runtime import RankEnv, detect, note
from allranks.runtime.sockets.rendezvous import connect
from allranks_steps.messages import bad_input

RANK = [sys.executable, str(Path(__file__).with_name("rank.py"))]

CLOSE_SECONDS = 5.0
"""How long rank 0 waits until another rank has closed its connection."""

GPU_DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""Device files of NVIDIA's driver, AMD's driver, and Windows under WSL. A machine with GPUs has one of them."""


def pytorch(args: argparse.Namespace) -> list[str]:  # noqa: ARG001
    _join(_launched_by("pytorch"))
    return RANK


def mpi(args: argparse.Namespace) -> list[str]:  # noqa: ARG001
    """mpirun has started all ranks or none. An Open MPI that ignores the hosts starts a world on each instance."""
    world.check(_launched_by("mpi"))
    return RANK


def tensorflow(args: argparse.Namespace) -> list[str]:  # noqa: ARG001
    """Every task runs the program when all tasks have started. TensorFlow would wait for a missing task for ever."""
    env = _launched_by("tensorflow")
    world.check(env)
    if env.world_size > 1:
        # Of no use to the other launches.
        from allranks.runtime.tensorflow.cluster import listed, wait_for_tasks

        wait_for_tasks(listed(), join_seconds(os.environ))
    return RANK


def torchrun(args: argparse.Namespace) -> list[str]:
    """torchrun, with a static rendezvous: every instance is known. If instances may be missing or processes may
    restart, the instances find each other by the c10d rendezvous instead."""
    env = _per_node()
    count = env.instance_count
    if args.min_instances > count:
        found, expected = f"{args.min_instances} of {count} instances", f"at most {count}; 0 for all"
        fix = "lower it, or raise resources.instance_count"
        raise bad_input("input min_instances", found, expected, fix)
    elastic = 0 < args.min_instances < count
    if elastic and not args.max_restarts:
        found = f"0, with {args.min_instances} to {count} instances"
        expected = "at least 1: torchrun starts the processes again when an instance leaves or joins"
        fix = "set max_restarts, for example to 3; or leave min_instances out"
        raise bad_input("input max_restarts", found, expected, fix)
    nodes = f"{args.min_instances}:{count}" if elastic else str(count)
    if count == 1:
        rendezvous = ["--standalone", "--local-addr", "127.0.0.1"]
    elif elastic or args.max_restarts:
        # Otherwise the ranks of all attempts share one store, and one that is started again may read the address of a
        # rank that has ended (pytorch/pytorch#135712, still so in torch 2.13).
        os.environ.setdefault("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
        rendezvous = ["--nnodes", nodes, "--rdzv-backend", "c10d", "--rdzv-id", "allranks"]
        rendezvous += ["--rdzv-endpoint", f"{env.master_addr}:{env.master_port}"]
        rendezvous += ["--rdzv-conf", f"is_host={int(env.instance_rank == 0)}", "--local-addr", _own_address(env)]
    else:
        rendezvous = ["--nnodes", nodes, "--node-rank", str(env.instance_rank)]
        rendezvous += ["--master-addr", str(env.master_addr), "--master-port", str(env.master_port)]
    if not elastic:
        _join(env)
    options = [*rendezvous, "--nproc-per-node", str(_processes(args)), "--max-restarts", str(args.max_restarts)]
    return [sys.executable, "-m", "torch.distributed.run", *options, RANK[1]]


def accelerate(args: argparse.Namespace) -> list[str]:
    """`accelerate launch`. Without GPUs it would start one process, so it is told that there are several GPUs, and its
    processes that there are none."""
    env = _per_node()
    total = _processes(args) * env.instance_count
    _join(env)
    options = ["--num_machines", str(env.instance_count), "--machine_rank", str(env.instance_rank)]
    options += ["--num_processes", str(total)]
    if env.instance_count > 1:
        options += ["--main_process_ip", str(env.master_addr), "--main_process_port", str(env.master_port)]
        options += ["--same_network"]
    else:
        options += ["--main_process_port", "0"]
    if args.config:  # an option would replace the value in the file
        options = ["--config_file", str(args.config), *options]
        options += ["--mixed_precision", args.mixed_precision] if args.mixed_precision else []
    else:
        options += ["--mixed_precision", args.mixed_precision or "no", "--dynamo_backend", "no"]
        options += ["--multi_gpu"] if total > 1 else []
    if not _gpus():
        os.environ["ACCELERATE_USE_CPU"] = "true"
    return [sys.executable, "-m", "accelerate.commands.launch", *options, RANK[1]]


def deepspeed(args: argparse.Namespace) -> list[str]:
    """DeepSpeed's launcher on each instance. It knows the instances by a hostfile, and starts nothing by ssh."""
    env = _per_node()
    hosts = [host for host in os.environ.get("AZ_BATCH_HOST_LIST", "").split(",") if host]
    if len(hosts) != env.instance_count:
        hosts = [f"instance-{number}" for number in range(env.instance_count)]
    processes = _processes(args)
    _join(env)
    hostfile = Path("hostfile").resolve()
    hostfile.write_text("".join(f"{host} slots={processes}\n" for host in hosts), encoding="utf-8")
    options = ["--hostfile", str(hostfile), "--no_ssh", "--node_rank", str(env.instance_rank)]
    options += ["--num_gpus", str(processes), "--no_local_rank"]
    options += ["--master_addr", str(env.master_addr or "127.0.0.1"), "--master_port", str(env.master_port or 29500)]
    return [sys.executable, "-m", "deepspeed.launcher.runner", *options, RANK[1]]


def ray(args: argparse.Namespace) -> list[str]:
    """The program runs on the cluster's head, once every instance has joined; the others only serve."""
    if not os.environ.get("RAY_ADDRESS"):
        found = "is not set: Ray would start a cluster of this instance alone"
        expected = "the address of the cluster's head"
        where = "environment variable RAY_ADDRESS"
        raise bad_input(where, found, expected, "set distribution.type to ray")
    rank, count = launch.read_instance(os.environ) or (0, 1)
    if rank > 0:
        note("this instance serves the Ray cluster; the program runs on its head")
        return []
    _wait_for_ray(count, args.join_seconds)
    return RANK


LAUNCHERS: Mapping[str, Callable[[argparse.Namespace], list[str]]] = {
    launch.__name__: launch for launch in (pytorch, torchrun, accelerate, deepspeed, mpi, tensorflow, ray)
}


def _launched_by(distribution: str) -> RankEnv:
    """Return the rank and layout of this process. Raise InputError if the platform started it by another
    distribution."""
    env = detect()
    if env.launcher != distribution:
        where = f"rank {env.rank} of {env.world_size}"
        fix = f"set distribution.type to {distribution}, or use the component run_{env.launcher}"
        raise bad_input(where, f"launcher {env.launcher}", distribution, fix)
    return env


def _join(env: RankEnv) -> None:
    """Wait for the processes that the platform starts on the other instances, so that a missing one is named. They meet
    at the master's port, which the launcher or the program uses afterwards.

    Raise InputError if they are on fewer instances than declared, and ConnectionError if some are missing.
    """
    world.check(env)
    connections = connect(env, join_seconds(os.environ)) if env.world_size > 1 else {}
    for connection in connections.values():
        with contextlib.suppress(OSError), connection:
            # The other end closes first: then this end leaves nothing at the port.
            if env.rank == 0:
                connection.settimeout(CLOSE_SECONDS)
                connection.recv(1)


def _per_node() -> RankEnv:
    """Return the rank and layout of this instance. Raise InputError if the platform started several processes on it,
    each of which would start more."""
    env = detect()
    if env.local_world_size > 1:
        found, expected = f"{env.local_world_size} processes on each instance", "1: the launcher starts the rest"
        fix = "set it to 1, and processes to the number that each instance is to have"
        raise bad_input("distribution.process_count_per_instance", found, expected, fix)
    return env


def _gpus() -> int:
    # torch takes seconds to import, and its launcher imports it again.
    if not any(map(os.path.exists, GPU_DRIVERS)):
        return 0
    import torch

    return torch.cuda.device_count()


def _processes(args: argparse.Namespace) -> int:
    """Return the processes of an instance: as given, or one for each GPU. Raise InputError for more than GPUs."""
    gpus = _gpus()
    if gpus and args.processes > gpus:
        found = f"{args.processes} processes on the {gpus} GPUs of this instance; NCCL rejects two ranks on one GPU"
        raise bad_input("input processes", found, f"at most {gpus}", "set it to 0: one for each GPU")
    processes: int = args.processes or gpus or 1
    return processes


def _own_address(env: RankEnv) -> str:
    """Return an address of this instance by which the others reach it."""
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((str(env.master_addr), env.master_port or 1))  # sends nothing
        return str(probe.getsockname()[0])


def _wait_for_ray(count: int, seconds: float) -> None:
    """Wait until `count` nodes are in the cluster. Raise TimeoutError, or ConnectionError if there is no cluster."""
    import ray as library

    library.init(log_to_driver=False, logging_level="warning")
    deadline = time.monotonic() + seconds
    while len(alive := [str(node["NodeManagerAddress"]) for node in library.nodes() if node["Alive"]]) < count:
        if time.monotonic() > deadline:
            hosts = (os.environ.get("AZ_BATCH_HOST_LIST") or "").split(",")
            missing = [world.instance_name(number) for number, host in enumerate(hosts) if number and host not in alive]
            names = f": {', '.join(missing)} did not" if missing else ""
            raise TimeoutError(f"{len(alive)} of {count} instances have joined the Ray cluster in {seconds:g} s{names}")
        time.sleep(0.2)
    library.shutdown()  # the program connects by itself
