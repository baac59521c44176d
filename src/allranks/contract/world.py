"""The reading side of the contract: the rank and layout of this process, for every launcher, and whether its ranks came
up on all the instances that the job was declared with."""

import os
from collections.abc import Callable, Mapping

from allranks.contract import mpi, pytorch, ray, single, tensorflow, variables
from allranks.contract.rank_env import RankEnv
from allranks.contract.variables import ELASTIC_INSTANCES, elastic_instances
from allranks.errors import InputError, Problem

READERS: tuple[Callable[[Mapping[str, str]], RankEnv | None], ...] = (
    *(pytorch.read_torchrun, mpi.read, tensorflow.read, pytorch.read, ray.read, single.read),
)
"""Functions that read each launcher's variables. The first one that finds its variables is that of the launcher that
started the process.

Launchers nest, and processes of an inner launcher inherit the variables of an outer one. Launchers that can only be
innermost therefore come first, and names that an outer launch also sets come late.
- torchrun sets TORCHELASTIC_RUN_ID, and runs inside PyTorch and MPI launches with one process per instance.
- mpirun sets OMPI_* or PMI_* in every process, and runs inside PyTorch and TensorFlow launches. A plain RANK
  that torchrun did not set is then the same number, or comes from the outer launch.
- TF_CONFIG is specific to one process. RANK and WORLD_SIZE are generic names that may come from an outer launch.
- A Ray cluster spans the launch, and the processes that Ray Train starts in it have their own RANK and WORLD_SIZE.
"""


def detect(environ: Mapping[str, str] = os.environ) -> RankEnv:
    """Return the rank and layout of this process, from the variables of the innermost launcher.

    A process without a launcher is rank 0 of 1. Raise InputError if a launcher's variables are incomplete, not numbers,
    or contradict each other, or if a launcher within an Azure ML job has more instances than the job: with a wrong
    rank, or with ranks that do not exist, all other ranks would hang.
    """
    # The last reader, for no launcher, always returns a result.
    env = next(env for read in READERS if (env := read(environ)))
    count = variables.integer(environ, "AZUREML_NODE_COUNT", minimum=1, default=env.instance_count)
    if env.instance_count > count:
        raise variables.wrong(
            "AZUREML_NODE_COUNT",
            f"{count}, with ranks on {env.instance_count} instances (launcher {env.launcher})",
            "no more instances than the step has",
            "set the step's resources.instance_count, or the hostfile or --nnodes of the launcher that it starts",
        )
    return env


LAUNCHERS = ("mpi", "pytorch", "torchrun")
"""Launchers with ranks on all instances. A Ray cluster, for example, may have instances without ranks."""

FIX = (
    "start ranks on all instances: mpirun of Open MPI 4.1 (5 ignores the hosts that Azure ML passes), torchrun with "
    "--nnodes=$AZUREML_NODE_COUNT; or set resources.instance_count to fewer"
)


def instances(env: RankEnv, environ: Mapping[str, str] = os.environ) -> int:
    """Return the number of instances to run on: Azure ML's AZUREML_NODE_COUNT, else the launcher's."""
    if env.launcher not in LAUNCHERS:
        return env.instance_count
    return variables.integer(environ, "AZUREML_NODE_COUNT", minimum=1, default=env.instance_count)


def elastic(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether torchrun may continue with fewer instances than declared. It sets TORCHELASTIC_MAX_RESTARTS
    from its option --max-restarts, which is 0 for a job that is not elastic."""
    return bool(variables.integer(environ, "TORCHELASTIC_MAX_RESTARTS", default=0))


def full_instances(env: RankEnv, environ: Mapping[str, str] = os.environ) -> int:
    """Return the full number of instances of an elastic job, even if it continues on fewer: the maximum of
    ALLRANKS_ELASTIC_INSTANCES, or of torchrun's --nnodes. For any other job, return its number of instances.

    Raise InputError if the number of instances is outside of the range.
    """
    limits = elastic_instances(environ)
    if limits is None:
        return max(env.instance_count, instances(env, environ)) if elastic(environ) else env.instance_count
    if not limits[0] <= env.instance_count <= limits[1]:
        found = f"{limits[0]}:{limits[1]}, on {env.instance_count} instances (launcher {env.launcher})"
        fix = "change the range, or resources.instance_count"
        raise variables.wrong(ELASTIC_INSTANCES, found, f"{limits[0]} to {limits[1]} instances", fix)
    return limits[1]


def require_all(env: RankEnv, environ: Mapping[str, str] = os.environ) -> None:
    """Raise InputError if an elastic job continues on fewer instances, for a program that cannot keep the batch
    size."""
    full = full_instances(env, environ)
    if env.instance_count < full:
        found = f"{env.instance_count} of the {full} instances that the batch of a step is meant for"
        fix = f"unset {ELASTIC_INSTANCES}: this program divides a batch over all ranks only"
        raise InputError(Problem("world size", found, f"all {full}", fix))


def smaller(env: RankEnv, declared: int) -> Problem | None:
    """Return the problem of a world on fewer instances than declared; None if it is complete. env: of any rank"""
    if env.instance_count >= declared:
        return None
    ranks = "1 rank" if env.world_size == 1 else f"{env.world_size} ranks"
    found = f"{ranks} on {env.instance_count} of the job's {declared} instances (launcher {env.launcher})"
    expected = f"{env.local_world_size * declared} ranks: {env.local_world_size} on each of the {declared} instances"
    return Problem("world size", found, expected, FIX)


def check(env: RankEnv, environ: Mapping[str, str] = os.environ) -> None:
    """Raise InputError if the ranks started on fewer instances than the job was declared with, or if TF_CONFIG leaves
    instances without a task: each instance would train alone, as with Open MPI 5 (kubeflow/trainer#4028). A torchrun
    that may continue with fewer is accepted."""
    if env.launcher == tensorflow.TensorFlow.type:
        problem = tensorflow.idle_instances(environ)
    else:
        problem = smaller(env, instances(env, environ))
    if problem is not None and not elastic(environ):
        raise InputError(problem)


def instance_name(number: int, environ: Mapping[str, str] = os.environ) -> str:
    """Return an instance's name for messages, with its address if Azure ML lists it: "instance 2 (10.0.0.6)"."""
    addresses = (environ.get("AZ_BATCH_HOST_LIST") or "").split(",")
    return f"instance {number}" + (f" ({addresses[number]})" if number < len(addresses) and addresses[number] else "")
