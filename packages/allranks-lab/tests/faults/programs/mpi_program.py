"""Ranks by mpi4py alone, each broken in one way: the argument is its name."""

import os
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank = world.Get_rank()


def aborts():
    world.Barrier()
    if rank == 2:
        print("the checksum of shard 7 is wrong", file=sys.stderr, flush=True)
        world.Abort(7)
    world.Barrier()


def returns_early():
    for _ in range(4 if rank == 1 else 5):
        world.allreduce(rank)


def waits_for_another_tag():
    if rank == 2:
        world.send("weights", dest=3, tag=4)
    if rank == 3:
        world.recv(source=2, tag=5)
    world.Barrier()


def gathers_too_many():
    if rank == 0:
        for _ in range(4):
            world.recv(source=MPI.ANY_SOURCE)
    else:
        world.send(rank, dest=0)
    world.Barrier()


def other_communicator():
    pair = world.Split(rank // 2)
    if rank == 3:
        pair.Barrier()
    world.Barrier()
    pair.Barrier()
    if rank == 2:
        world.Barrier()


def ends_before_finalize():
    world.Barrier()
    if rank == 2:
        os._exit(0)
    world.Barrier()


globals()[sys.argv[1]]()
