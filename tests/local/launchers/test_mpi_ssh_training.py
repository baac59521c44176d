"""Horovod and DeepSpeed under an mpirun that reaches the instances by ssh."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from ssh_jobs import User, needs_ssh

pytestmark = [pytest.mark.timeout(200), needs_ssh]

HOROVOD = """
import os
import horovod.torch as hvd, torch
hvd.init()
model = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.constant_(model.weight, float(hvd.rank()))
hvd.broadcast_parameters(model.state_dict(), root_rank=2)
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.5), named_parameters=model.named_parameters(), op=hvd.Average
)
(model(torch.ones(1, 1)) * (hvd.rank() + 1)).sum().backward()
optimizer.step()
print(os.getuid(), hvd.rank(), hvd.size(), hvd.mpi_enabled(), model.weight.item())
"""

# It finds the ranks through mpi4py. gloo's threads race with the interpreter's exit, so that is left out.
DEEPSPEED = """
import os
import deepspeed, torch
deepspeed.init_distributed("gloo")
from mpi4py import MPI
rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
model = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.constant_(model.weight, 2.0)
settings = {
    "train_micro_batch_size_per_gpu": 1,
    "zero_optimization": {"stage": 2},
    "zero_allow_untested_optimizer": True,
    "gradient_clipping": 0.0,
}
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=settings)
engine.backward((engine(torch.ones(1, 1)) * (rank + 1)).sum())
engine.step()
print(os.getuid(), rank, size, MPI.COMM_WORLD.size == size, model.weight.item(), flush=True)
torch.distributed.barrier()
MPI.Finalize()
os._exit(0)
"""

TRAINED = 2.0 - 0.5 * (1 + 2 + 3) / 3
"""The first weight, less the learning rate times the mean of the gradients."""


@pytest.mark.parametrize(
    ("library", "source"), [("horovod", HOROVOD), ("deepspeed", DEEPSPEED)], ids=["horovod", "deepspeed"]
)
def test_gradients_are_averaged_over_the_instances(library: str, source: str, user: User) -> None:
    if find_spec(library) is None:
        pytest.skip(f"no {library} here")
    logs = user.run(source)
    assert [log.splitlines()[-1] for log in logs] == [f"{user.number} {rank} 3 True {TRAINED}" for rank in range(3)]
