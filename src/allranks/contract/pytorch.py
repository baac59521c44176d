"""The PyTorch distribution: Azure ML starts every process and sets the variables of torch.distributed.

With one process per instance it is a per-node launch: a launcher such as torchrun starts the rest.
Source: Azure ML's "Distributed GPU training guide".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from allranks.contract import rank_env, variables
from allranks.contract.launch import Distribution, Launch, Process
from allranks.contract.rank_env import Place, RankEnv


@dataclass(frozen=True)
class PyTorch(Distribution):
    """Settings of the PyTorch distribution. The process count is per instance, usually one process per GPU."""

    type: ClassVar[str] = "pytorch"
    process_count_per_instance: int = 1

    def environment(self, launch: Launch, process: Process) -> dict[str, str]:
        """Return the variables of the instance (MASTER_ADDR, MASTER_PORT, WORLD_SIZE, NODE_RANK) and of the process.

        Azure ML does not set LOCAL_WORLD_SIZE, so it is not set here.
        """
        return {
            "MASTER_ADDR": launch.addresses[0],
            "MASTER_PORT": str(launch.master_port),
            "WORLD_SIZE": str(launch.instance_count * self.process_count_per_instance),
            "NODE_RANK": str(process.instance_rank),
            "RANK": str(process.rank),
            "LOCAL_RANK": str(process.local_rank),
        }


def read(environ: Mapping[str, str]) -> RankEnv | None:
    """Return the rank and layout from RANK, WORLD_SIZE and LOCAL_RANK; None if neither of the first two is set.

    Azure ML does not set the number of ranks per instance. It is LOCAL_WORLD_SIZE if that is set, else WORLD_SIZE /
    AZUREML_NODE_COUNT, else it follows from RANK, LOCAL_RANK and NODE_RANK. Raise InputError if it does not follow from
    them (NODE_RANK is 0 and the number of instances is unknown): a wrong guess would make the job hang."""
    if variables.text(environ, "RANK") is None and variables.text(environ, "WORLD_SIZE") is None:
        return None
    world_size = variables.integer(environ, "WORLD_SIZE", minimum=1)
    rank = variables.integer(environ, "RANK")
    if world_size == 1:
        local_rank = variables.integer(environ, "LOCAL_RANK", default=0)
    else:
        # No default, because two ranks would both use GPU 0 (azureml-examples#675).
        local_rank = variables.integer(environ, "LOCAL_RANK")
    node_rank = variables.integer(environ, "NODE_RANK", default=None)
    local_world_size, source = _local_world_size(environ, rank, local_rank, world_size, node_rank)
    if world_size % local_world_size:
        raise variables.wrong(source, f"{local_world_size} on each instance", f"a divisor of WORLD_SIZE {world_size}")
    derived = node_rank is None or source != "LOCAL_WORLD_SIZE"
    instance_rank = rank // local_world_size if node_rank is None else node_rank
    instance_name = "RANK" if node_rank is None else "NODE_RANK"
    env = rank_env.read(
        environ,
        PyTorch.type,
        Place("RANK", rank, "WORLD_SIZE", world_size),
        Place("LOCAL_RANK", local_rank, source, local_world_size),
        Place(instance_name, instance_rank, f"WORLD_SIZE / {source}", world_size // local_world_size),
    )
    if derived and rank != instance_rank * local_world_size + local_rank:
        raise variables.wrong(
            "RANK",
            f"{rank}, with LOCAL_RANK {local_rank}, on instance {instance_rank} of {local_world_size} ranks each",
            f"{instance_rank * local_world_size + local_rank}: ranks fill one instance after another",
            "set NODE_RANK and LOCAL_WORLD_SIZE if the ranks are ordered differently",
        )
    return env


def _local_world_size(
    environ: Mapping[str, str], rank: int, local_rank: int, world_size: int, node_rank: int | None
) -> tuple[int, str]:
    """Return the number of ranks per instance, and the name of the variable that it comes from."""
    local_world_size = variables.integer(environ, "LOCAL_WORLD_SIZE", minimum=1, default=None)
    if local_world_size is not None:
        return local_world_size, "LOCAL_WORLD_SIZE"
    if world_size == 1:
        return 1, "WORLD_SIZE"
    instance_count = variables.integer(environ, "AZUREML_NODE_COUNT", minimum=1, default=None)
    if instance_count is not None:
        if world_size % instance_count:
            raise variables.wrong("WORLD_SIZE", str(world_size), f"a multiple of AZUREML_NODE_COUNT {instance_count}")
        return world_size // instance_count, "AZUREML_NODE_COUNT"
    if node_rank:
        if (rank - local_rank) % node_rank or rank <= local_rank:
            raise variables.wrong(
                "RANK",
                f"{rank}, with LOCAL_RANK {local_rank} and NODE_RANK {node_rank}",
                "NODE_RANK x the ranks of an instance + LOCAL_RANK",
            )
        return (rank - local_rank) // node_rank, "NODE_RANK"
    if node_rank is None and rank == local_rank:
        return world_size, "WORLD_SIZE"
    raise variables.missing(
        "LOCAL_WORLD_SIZE",
        f"the number of ranks on each instance: of {world_size} ranks, no variable contains the number on this one",
        "set LOCAL_WORLD_SIZE, or AZUREML_NODE_COUNT",
    )


def read_torchrun(environ: Mapping[str, str]) -> RankEnv | None:
    """Return the rank and layout that torchrun set; None if it did not start this process.

    torchrun overrides RANK, LOCAL_RANK, WORLD_SIZE and LOCAL_WORLD_SIZE in each process. A group is torchrun on one
    instance, so GROUP_RANK is the instance's rank. NODE_RANK may come from an outer launch and is not read. Raise
    InputError if one of the variables is missing or contradicts another.
    """
    if variables.text(environ, "TORCHELASTIC_RUN_ID") is None:
        return None

    def place(name: str, count: str) -> Place:
        return Place(name, variables.integer(environ, name), count, variables.integer(environ, count, minimum=1))

    instance, rank = place("GROUP_RANK", "GROUP_WORLD_SIZE"), place("RANK", "WORLD_SIZE")
    return rank_env.read(environ, "torchrun", rank, place("LOCAL_RANK", "LOCAL_WORLD_SIZE"), instance)
