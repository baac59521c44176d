"""The reading side of the contract: read the rank and layout of this process from its environment, for every
launcher.

Slurm is on this side only. Source: the "output environment variables" of srun's manual.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from allranks.contract import pytorch, single, variables
from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.rank_env import RankEnv, checked
from allranks.contract.single import Single

FIRST_SPECIAL_STEP = 0xFFFFFFF0
"""The first number of steps that srun did not create: the batch script, salloc's shell, external processes."""


def read_slurm(environ: Mapping[str, str]) -> RankEnv | None:
    """Return the rank and layout that srun set; None if this process is not a task of a step.

    A batch script and salloc's shell also have SLURM_PROCID 0 and the job's SLURM_NTASKS, but no step number
    (Lightning#20776). As ranks, they would wait for ranks that do not exist. The step's counts take precedence over the
    job's. The master is the first host of the step. Raise InputError if the variables contradict each other.
    """
    step = variables.text(environ, "SLURM_STEP_ID") or variables.text(environ, "SLURM_STEPID")
    if step is None or not step.isdecimal() or int(step) >= FIRST_SPECIAL_STEP:
        return None
    if variables.text(environ, "SLURM_PROCID") is None:
        return None
    ranks_name = _first(environ, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS")
    instances_name = _first(environ, "SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES")
    world_size = variables.integer(environ, ranks_name, minimum=1)
    instance_count = variables.integer(environ, instances_name, minimum=1)
    instance_rank = 0 if instance_count == 1 else variables.integer(environ, "SLURM_NODEID", below=instance_count)
    local_world_size, source = _local_world_size(environ, world_size, instance_rank, instance_count)
    return checked(
        RankEnv(
            rank=variables.integer(environ, "SLURM_PROCID"),
            local_rank=variables.integer(environ, "SLURM_LOCALID"),
            world_size=world_size,
            local_world_size=local_world_size,
            instance_rank=instance_rank,
            instance_count=instance_count,
            master_addr=_master(environ, instance_count),
            master_port=variables.master_port(environ),
            launcher="slurm",
        ),
        rank=("SLURM_PROCID", ranks_name),
        local_rank=("SLURM_LOCALID", source),
        instance_rank=("SLURM_NODEID", instances_name),
    )


def tasks_per_node(value: str) -> tuple[int, ...] | None:
    """Return the tasks of each node: `2(x3),1` in Slurm's short form is 2, 2, 2, 1. None for another format."""
    counts: list[int] = []
    for part in value.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip(), re.ASCII)
        if match is None:
            return None
        counts += [int(match[1])] * int(match[2] or 1)
    return tuple(counts)


def first_host(nodelist: str) -> str:
    """Return the first host of Slurm's short form: `node[01-04,7],other3` is node01, `rack[1-2]n[3-4]` is rack1n3."""
    prefix, bracket, rest = nodelist.partition("[")
    if not bracket or "," in prefix:
        return prefix.split(",")[0]
    numbers, _, tail = rest.partition("]")
    return prefix + re.split("[,-]", numbers)[0] + first_host(tail)


def _first(environ: Mapping[str, str], *names: str) -> str:
    """Return the first of these variables that is set, or the last one if none is set."""
    return next((name for name in names if variables.text(environ, name) is not None), names[-1])


def _local_world_size(
    environ: Mapping[str, str], world_size: int, instance_rank: int, instance_count: int
) -> tuple[int, str]:
    """Return the number of tasks of this node, and the name of the variable that it comes from."""
    for name in ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"):
        value = variables.text(environ, name)
        if value is None:
            continue
        counts = tasks_per_node(value)
        if counts is None or len(counts) != instance_count:
            raise variables.wrong(name, repr(value), f"the tasks of {instance_count} nodes, such as 2(x3),1")
        return counts[instance_rank], name
    if instance_count == 1:
        return world_size, "SLURM_NTASKS"
    return variables.integer(environ, "SLURM_NTASKS_PER_NODE", minimum=1), "SLURM_NTASKS_PER_NODE"


def _master(environ: Mapping[str, str], instance_count: int) -> str | None:
    """Return the host of rank 0. The host on which srun was called is the last choice, since it may be a login node."""
    if master_addr := variables.text(environ, "MASTER_ADDR"):
        return master_addr
    for name in ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"):
        if nodes := variables.text(environ, name):
            return first_host(nodes)
    return variables.text(environ, "SLURM_LAUNCH_NODE_IPADDR") or variables.master_address(environ, instance_count)


READERS: tuple[Callable[[Mapping[str, str]], RankEnv | None], ...] = (
    pytorch.read_torchrun,
    *(kind.module.read for name, kind in DISTRIBUTIONS.items() if name != Single.type),
    read_slurm,
    single.read,
)
"""Functions that read each launcher's variables. The first one that finds its variables belongs to the launcher that
started the process.

Launchers nest, and processes of an inner launcher also see the variables of an outer one. So launchers that can only be
innermost come first, and names that an outer launch also sets come late.
- torchrun sets TORCHELASTIC_RUN_ID, and runs inside PyTorch, MPI and Slurm launches with one process per instance.
- mpirun sets OMPI_* or PMI_* in every process, and runs inside PyTorch, TensorFlow and Slurm launches. A plain RANK
  that torchrun did not set is then the same number, or comes from the outer launch.
- TF_CONFIG is specific to one process. RANK and WORLD_SIZE are generic names that may come from an outer launch.
- A Ray cluster spans the launch, and the processes that Ray Train starts in it have their own RANK and WORLD_SIZE.
- Slurm is a cluster's outermost layer. A script under srun that starts ranks itself sets RANK for them.
"""


def detect(environ: Mapping[str, str] = os.environ) -> RankEnv:
    """Return the rank and layout of this process, from the variables of the innermost launcher.

    A process without a launcher is rank 0 of 1. Raise InputError if a launcher's variables are incomplete, not numbers,
    or contradict each other, or if a launcher within an Azure ML job has more instances than the job. A wrong rank, or
    waiting for ranks that do not exist, would make all other ranks hang.
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
