"""A sum over all ranks by mpi4py. The ranks of an instance are those that share memory."""

from mpi4py import MPI
from place import tell

world = MPI.COMM_WORLD
instance = world.Split_type(MPI.COMM_TYPE_SHARED)
tell(rank=world.rank, world_size=world.size, local_rank=instance.rank, total=world.allreduce(float(world.rank + 1)))
