"""One step of a training by Horovod and by DeepSpeed, for ranks under mpirun. Each rank prints its user, its rank, the
size of the world, whether the library uses MPI, and the weight that it has then."""

HOROVOD = """
import os
import horovod.torch as hvd, torch
hvd.init()
model = torch.nn.Linear(1, 1, bias=False)
torch.nn.init.constant_(model.weight, float(hvd.rank()))
hvd.broadcast_parameters(model.state_dict(), root_rank=hvd.size() - 1)
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
torch.nn.init.constant_(model.weight, size - 1.0)
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

BY_LIBRARY = {"horovod": HOROVOD, "deepspeed": DEEPSPEED}


def printed(user: int, size: int) -> list[str]:
    """What the ranks print: the first weight, less the learning rate times the mean of the gradients."""
    gradients = range(1, size + 1)
    weight = size - 1 - 0.5 * sum(gradients) / size
    return [f"{user} {rank} {size} True {weight}" for rank in range(size)]
