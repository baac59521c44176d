"""The complete environment of a rank: Azure ML's variables, and the few that every process on this machine needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from allranks.contract import job as jobs
from allranks.contract.job import Job
from allranks.contract.launch import Launch, Process
from allranks.local.instances.kinds import InstanceKind
from allranks.local.scope import Scope
from allranks.plan import values
from allranks.plan.graph import Step

INHERITED = (
    "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ",
    "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE",
    "HF_HOME", "HF_HUB_OFFLINE", "TORCH_HOME",
)  # fmt: skip
"""Variables that a rank inherits from the user's shell. All others are left out, because a stray RANK or MASTER_ADDR of
the shell would not exist on Azure ML either."""


def search_path(environ: Mapping[str, str], interpreter: Path) -> str:
    """Return PATH for a rank, with its interpreter's folder first. environ: the engine's own environment"""
    return os.pathsep.join([str(interpreter.parent), environ.get("PATH", os.defpath)])


def machine(environ: Mapping[str, str], interpreter: Path, ranks: int) -> dict[str, str]:
    """Return the machine's part.

    environ:     the engine's own environment
    interpreter: the interpreter for `python`
    ranks:       how many ranks share this machine's cores
    """
    inherited = {name: environ[name] for name in INHERITED if name in environ}
    # Emulated instances share one machine. Without a limit, each rank would start one thread per core.
    threads = max(1, (os.cpu_count() or 1) // ranks)
    return inherited | {
        "PATH": search_path(environ, interpreter),
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": environ.get("OMP_NUM_THREADS", str(threads)),
    }


def given(
    variables: Mapping[str, str], job: Job, launch: Launch, process: Process, kind: InstanceKind
) -> dict[str, str]:
    """Return Azure ML's variables, those of this kind of instances, and the step's own, which take precedence.

    variables: the step's own
    """
    return {**jobs.environment(job, launch, process), **kind.environment(), **variables}


def variables_of(step: Step, scope: Scope) -> dict[str, str]:
    """Return the step's environment variables with their bindings resolved."""
    return {name: values.resolve(value, scope.lookup) or "" for name, value in step.environment_variables.items()}
