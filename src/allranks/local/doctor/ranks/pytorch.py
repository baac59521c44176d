"""A sum over all ranks by torch.distributed, which the runtime has set up."""

import torch
from place import tell
from torch import distributed

from allranks import runtime


def train(ranks: runtime.Ranks) -> None:
    total = torch.tensor(float(ranks.rank + 1))
    distributed.all_reduce(total)
    tell(rank=ranks.rank, world_size=ranks.world_size, local_rank=ranks.local_rank, total=total.item())


runtime.main(train)
