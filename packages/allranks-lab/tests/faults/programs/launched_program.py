"""Workers of torchrun, each broken in one way: the argument is its name."""

import os
import sys

import torch
from torch import distributed as dist

rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
for step in range(5):
    if rank == 3 and step == 2:
        if sys.argv[1] == "exit_code":
            os._exit(9)
        if sys.argv[1] == "uneven_batches":
            sys.exit()
        raise ValueError("bad shard 7")
    dist.all_reduce(torch.ones(1))
