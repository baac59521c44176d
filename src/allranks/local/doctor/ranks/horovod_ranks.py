"""A sum over all ranks by Horovod's own all-reduce."""

import horovod.torch as hvd
import torch
from place import tell

hvd.init()
total = hvd.allreduce(torch.tensor(float(hvd.rank() + 1)), op=hvd.Sum)
tell(rank=hvd.rank(), world_size=hvd.size(), local_rank=hvd.local_rank(), total=total.item())
hvd.shutdown()
