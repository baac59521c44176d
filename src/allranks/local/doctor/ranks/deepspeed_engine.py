"""One step of DeepSpeed's ZeRO 1 on a model with one weight, whose gradient is rank + 1."""

import os

import deepspeed
import torch
from place import tell

model = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.zeros_(model.weight)
config = {
    "train_micro_batch_size_per_gpu": 1,
    "zero_optimization": {"stage": 1},
    "zero_allow_untested_optimizer": True,
    "gradient_clipping": 0.0,  # DeepSpeed clips by default
}
deepspeed.init_distributed("gloo")
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
rank, world_size = torch.distributed.get_rank(), torch.distributed.get_world_size()
engine.backward(engine(torch.full((1, 1), float(rank + 1))).sum())
engine.step()
# The step has subtracted the mean gradient from 0.
total = -engine.module.weight.item() * world_size
tell(rank=rank, world_size=world_size, local_rank=int(os.environ["LOCAL_RANK"]), total=total)
