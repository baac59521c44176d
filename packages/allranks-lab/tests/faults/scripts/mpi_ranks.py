"""Ranks by mpi4py alone."""

import os

import sabotage

rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
sabotage.strike("start", rank)

from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
for step in range(sabotage.STEPS):
    sabotage.strike("before", rank, step)
    world.allreduce(rank)
    sabotage.strike("between", rank, step)
    value = array("d", [1.0] * (1 + 9000 * sabotage.strange("shape", rank, step)))
    if sabotage.strange("type", rank, step):
        value = array("f", [1.0])
    if sabotage.strange("order", rank, step):
        world.Bcast(value, 0)
    total = array(value.typecode, value)
    world.Allreduce(value, total)
sabotage.strike("after", rank)
world.Barrier()
