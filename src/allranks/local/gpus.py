"""The GPUs of this machine, and which of them each emulated instance has."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence

from allranks.contract import devices
from allranks.contract.distributions import processes_per_instance
from allranks.errors import Problem
from allranks.plan.graph import Plan, Step

VARIABLE = "CUDA_VISIBLE_DEVICES"
AUTO = "auto"
SHARE = "share"
_SECONDS = 20


def found(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The GPUs that the engine may use, as CUDA names them: those of CUDA_VISIBLE_DEVICES, else all that the driver
    tells of. None where there is no driver, or it does not answer."""
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


def allowed(choice: str, available: Sequence[str]) -> tuple[str, ...]:
    """The GPUs that a run uses. choice: auto, share, or how many."""
    return tuple(available[: int(choice)] if choice.isdecimal() else available)


def problems(plan: Plan, choice: str, available: Sequence[str]) -> list[Problem]:
    """Steps with more ranks than there are GPUs, and a choice of more GPUs than there are.

    A machine without GPUs trains on its CPU, and so does one whose GPUs were not to be used.
    """
    if choice.isdecimal() and int(choice) > len(available):
        expected = f"at most {len(available)}: so many has this machine"
        return [Problem(f"--gpus {choice}", "too many GPUs", expected, f"--gpus {len(available)}, or --gpus auto")]
    gpus = allowed(choice, available)
    if choice == SHARE or not gpus:
        return []
    return [
        Problem(
            where=f"step {step.name}",
            found=f"{needed} ranks for {len(gpus)} GPU{'s' * (len(gpus) > 1)}",
            expected="a GPU for each rank",
            fix="--gpus share (ranks share them), or --gpus 0 (the CPU)",
        )
        for step in plan.steps
        if (needed := step.instance_count * processes_per_instance(step.distribution)) > len(gpus) and needed > 1
    ]


def of_instances(step: Step, choice: str, available: Sequence[str]) -> list[dict[str, str]]:
    """For each instance of a step the variables that name its GPUs; none where this machine has none.

    Each instance has its own, as many as every other, or all of them where they are shared. Steps that run side by side
    have the same ones.
    """
    gpus = allowed(choice, available)
    if not available:
        return [{} for _ in range(step.instance_count)]
    if choice == SHARE:
        return [{VARIABLE: ",".join(gpus), devices.SHARED: "1"} for _ in range(step.instance_count)]
    each = len(gpus) // step.instance_count
    return [{VARIABLE: ",".join(gpus[rank * each : (rank + 1) * each])} for rank in range(step.instance_count)]
