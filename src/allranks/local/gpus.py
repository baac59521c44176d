"""The GPUs of this machine, and the GPUs of each emulated instance."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache

from allranks.contract import variables
from allranks.contract.distributions import processes_per_instance
from allranks.contract.single import Single
from allranks.errors import Problem
from allranks.hardware import sizes
from allranks.plan.graph import Plan, Step
from allranks.plan.walk import steps

VARIABLE = "CUDA_VISIBLE_DEVICES"
AUTO = "auto"
SHARE = "share"
_SECONDS = 20


def find(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the CUDA names of the GPUs that the engine may use: those in CUDA_VISIBLE_DEVICES, else all that the
    driver lists. Return an empty list without a working driver."""
    if VARIABLE in environ:
        return tuple(name.strip() for name in environ[VARIABLE].split(",") if name.strip())
    program = shutil.which("nvidia-smi", path=environ.get("PATH"))
    if program is None:
        return ()
    query = [program, "--query-gpu=index", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(answer.stdout.split())


@cache
def driver_files() -> tuple[str, ...]:
    """Return the driver's files that every container needs. Those of an image would not fit this machine's driver."""
    try:
        listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return ()
    libraries = re.findall(r"=> (\S+/lib(?:cuda|cudadebugger|nvcuvid|nvoptix|nvidia-[\w-]+)\.so[\w.]*)", listed)
    programs = filter(None, [shutil.which("nvidia-smi")])
    # A library may be listed in several folders, the first of which counts.
    return tuple({os.path.basename(path): path for path in (*reversed(libraries), *programs)}.values())


def select(choice: str, available: Sequence[str]) -> tuple[str, ...]:
    """Return the GPUs that a run may use. choice: auto, share, or the number of GPUs"""
    return tuple(available[: int(choice)] if choice.isdecimal() else available)


def problems(plan: Plan, choice: str, available: Sequence[str]) -> list[Problem]:
    """Return a problem for each step with more ranks than GPUs, or for a choice of more GPUs than this machine has.

    Without GPUs, or with a choice of 0, steps use the CPU.
    """
    if choice.isdecimal() and int(choice) > len(available):
        expected = f"at most {len(available)}: this machine has no more"
        fix = f"--gpus {len(available)}, or --gpus auto"
        return [Problem(f"--gpus {choice}", "too many GPUs", expected, fix, code="too-few-gpus")]
    gpus = select(choice, available)
    if choice == SHARE or not gpus:
        return []
    return [
        Problem(
            where=f"this machine, for step {path}",
            found=f"{step.ranks} ranks for {len(gpus)} GPU{'s' * (len(gpus) > 1)}",
            expected="a GPU for each rank",
            fix="--gpus share (ranks share them), or --gpus 0 (the CPU)",
            code="too-few-gpus",
        )
        for path, step in steps(plan.graph)
        if step.ranks > len(gpus) and step.ranks > 1
    ]


def exclusive(step: Step, choice: str, available: Sequence[str]) -> int:
    """Return the number of GPUs that the step uses exclusively; 0 if GPUs are shared or absent.

    Each rank that the platform starts has one GPU. With a per-node launch, each instance has as many GPUs as its Azure
    size, or an equal share of all. A step without a distribution has as many as its size, or one.
    """
    gpus = select(choice, available)
    if choice == SHARE or not gpus:
        return 0
    share = max(len(gpus) // step.instance_count, 1)
    per_instance = processes_per_instance(step.distribution)
    if per_instance == 1:
        size = sizes.known(step.instance_type) if step.instance_type else None
        if size is not None and size.gpus:
            per_instance = min(size.gpus, share)
        elif not isinstance(step.distribution, Single):
            per_instance = share
    return min(per_instance * step.instance_count, len(gpus))


def instance_variables(step: Step, choice: str, available: Sequence[str], used: Sequence[str]) -> list[dict[str, str]]:
    """Return for each instance of a step the variables that select its GPUs; none if this machine has no GPUs.

    used: the GPUs that the step uses exclusively, divided equally among the instances
    """
    if not available:
        return [{} for _ in range(step.instance_count)]
    if choice == SHARE:
        gpus = select(choice, available)
        return [{VARIABLE: ",".join(gpus), variables.GPUS_SHARED: "1"} for _ in range(step.instance_count)]
    share = len(used) // step.instance_count
    return [{VARIABLE: ",".join(used[rank * share : (rank + 1) * share])} for rank in range(step.instance_count)]
