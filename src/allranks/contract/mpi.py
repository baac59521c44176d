"""The MPI distribution: mpirun starts every process, and sets the variables with its rank.

Azure ML's images have Open MPI. The variables of Intel MPI and MPICH are read as well; both are started by Hydra, which
sets the same variables. With one process per instance it is a per-node launch: that process's OMPI_COMM_WORLD_RANK is
its instance's rank.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from allranks.contract import rank_env, variables
from allranks.contract.launch import Distribution, Launch, Process
from allranks.contract.rank_env import Place, RankEnv


@dataclass(frozen=True)
class Mpi(Distribution):
    """Settings of the MPI distribution. The process count is per instance."""

    type: ClassVar[str] = "mpi"
    process_count_per_instance: int = 1

    def environment(self, launch: Launch, process: Process) -> dict[str, str]:
        """Return the variables that Open MPI's mpirun sets, and those that Azure ML adds on a single instance.

        OMPI_COMM_WORLD_NODE_RANK is the rank within the instance, despite its name. Azure ML sets no MASTER_PORT for
        MPI, which means 6105. It is set here if the launch uses another port.
        """
        size = str(launch.instance_count * self.process_count_per_instance)
        values = {
            OPEN_MPI.rank: str(process.rank),
            OPEN_MPI.world_size: size,
            OPEN_MPI.local_rank: str(process.local_rank),
            OPEN_MPI.local_world_size: str(self.process_count_per_instance),
            "OMPI_COMM_WORLD_NODE_RANK": str(process.local_rank),
            "OMPI_UNIVERSE_SIZE": size,
        }
        if launch.instance_count == 1:
            values["AZ_BATCHAI_MPI_MASTER_NODE"] = launch.addresses[0]
        return values | variables.unusual_port(launch.master_port)


class Names(NamedTuple):
    """The names of an MPI implementation's variables for a rank."""

    rank: str
    world_size: str
    local_rank: str
    local_world_size: str


OPEN_MPI = Names(
    "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"
)
HYDRA = Names("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS")


def read(environ: Mapping[str, str]) -> RankEnv | None:
    """Return the rank and layout that mpirun set; None if it did not start this process.

    mpirun does not number the instances. The number is derived from the rank, assuming that ranks fill one instance
    after another (mpirun's default). Raise InputError if the variables contradict this.
    """
    names = next((names for names in (OPEN_MPI, HYDRA) if variables.text(environ, names.rank)), None)
    if names is None:
        return None
    rank = variables.integer(environ, names.rank)
    world_size = variables.integer(environ, names.world_size, minimum=1)
    local_rank = variables.integer(environ, names.local_rank)
    local_world_size = variables.integer(environ, names.local_world_size, minimum=1)
    instances = f"{names.world_size} / {names.local_world_size}"
    env = rank_env.read(
        environ,
        Mpi.type,
        Place(names.rank, rank, names.world_size, world_size),
        Place(names.local_rank, local_rank, names.local_world_size, local_world_size),
        Place(names.rank, rank // local_world_size, instances, -(-world_size // local_world_size)),
    )
    if world_size % local_world_size or rank % local_world_size != local_rank:
        raise variables.wrong(
            names.rank,
            f"{rank} of {world_size}, with local rank {local_rank} of {local_world_size}",
            "as many ranks on every instance, which fill one instance after another",
            "start mpirun with --map-by slot and as many slots on every host",
        )
    return env
