"""A training that uses MPI too; with an argument its last rank fails while the others wait for it in MPI."""

import sys

from mpi4py import MPI

from allranks import runtime


def train(ranks: runtime.Ranks) -> None:
    if len(sys.argv) > 1 and ranks.rank == ranks.world_size - 1:
        raise ValueError("the loss is nan")
    sys.stdout.write(f"{ranks.launcher} {MPI.COMM_WORLD.allreduce(ranks.rank)}\n")


if __name__ == "__main__":
    runtime.main(train)
