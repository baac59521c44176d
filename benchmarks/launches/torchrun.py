"""Launches by torchrun, one agent an instance, side by side on loopback, and by TorchX's local_cwd, which starts the
same agents."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.timing import environment

from allranks.contract.layout import Layout
from launches.launch import Launcher

BIN = Path(sys.executable).parent
VARIABLES = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}
"""By default, gloo resolves this machine's hostname, which may fail."""


def torchrun(code: Path, file: str, layout: Layout, folder: Path) -> float:
    """Launch with torchrun. See `Launcher`."""
    nodes, processes = str(layout.instance_count), str(layout.process_count_per_instance)
    agent = [str(BIN / "torchrun"), "--nnodes", nodes, "--nproc-per-node", processes]
    agent += ["--master-addr", "127.0.0.1", "--master-port", str(_free_port())]
    commands = [
        [*agent, "--node-rank", str(rank), str(code / file), str(folder)] for rank in range(layout.instance_count)
    ]
    return started(commands)


def torchx(python: str) -> Launcher:
    """Return a launcher that calls TorchX. python: of the environment that has it"""
    return partial(_torchx, Path(python).parent / "torchx")


def _torchx(program: Path, code: Path, file: str, layout: Layout, folder: Path) -> float:
    replicas = f"{layout.instance_count}x{layout.process_count_per_instance}"
    variables = ",".join(f"{name}={value}" for name, value in VARIABLES.items())
    command = [str(program), "run", "--scheduler", "local_cwd", "--wait", "dist.ddp", "-j", replicas]
    command += ["--env", variables, "--script", str(code / file), "--", str(folder)]
    return started([command], str(code))


def started(commands: Sequence[Sequence[str]], folder: str | None = None, **more: str) -> float:
    """Start commands side by side, wait for all, and return the time of the start. Raise RuntimeError if one fails.

    more: environment variables in addition to VARIABLES
    """
    # Programs of this environment, such as ninja, come before the machine's, as in the engine's ranks.
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    variables = environment(**VARIABLES, PATH=path, **more)
    with tempfile.TemporaryFile("w+") as output:
        begin = time.time()
        processes = [
            subprocess.Popen(command, env=variables, cwd=folder, stdout=output, stderr=output) for command in commands
        ]
        codes = [process.wait() for process in processes]
        if any(codes):
            output.seek(0)
            raise RuntimeError(f"{commands[0][0]} failed:\n{output.read()[-2000:]}")
    return begin


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
