"""The whole environment of a rank: what Azure ML gives it, on top of the little that any process of this machine
needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from allranks.contract import job as jobs
from allranks.contract.job import Job
from allranks.contract.launch import Launch, Process
from allranks.local.instances.kinds import InstanceKind

INHERITED = (
    "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ",
    "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE",
    "HF_HOME", "HF_HUB_OFFLINE", "TORCH_HOME",
)  # fmt: skip
"""What a rank inherits of the user's own shell. Not the rest: a stray RANK or MASTER_ADDR of the shell would not be
there on Azure ML either."""


def search_path(environ: Mapping[str, str], interpreter: Path) -> str:
    """Where a rank looks for programs: beside its interpreter first. environ: the engine's own environment."""
    return os.pathsep.join([str(interpreter.parent), environ.get("PATH", os.defpath)])


def machine(environ: Mapping[str, str], interpreter: Path, ranks: int) -> dict[str, str]:
    """Return the machine's part.

    environ:     the engine's own environment
    interpreter: what `python` is to mean
    ranks:       how many ranks share this machine's cores
    """
    inherited = {name: environ[name] for name in INHERITED if name in environ}
    # Emulated instances share one machine: without a bound each rank starts as many threads as it has cores.
    threads = max(1, (os.cpu_count() or 1) // ranks)
    return inherited | {
        "PATH": search_path(environ, interpreter),
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": environ.get("OMP_NUM_THREADS", str(threads)),
    }


def given(
    variables: Mapping[str, str], job: Job, launch: Launch, process: Process, kind: InstanceKind
) -> dict[str, str]:
    """Return Azure ML's part, what this kind of instances needs besides, and what the step itself sets, which wins.

    variables: the step's own
    """
    return {**jobs.environment(job, launch, process), **kind.environment(), **variables}
