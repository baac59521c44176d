"""Training loops of the same model on the same data: ours, and those that a user of each library writes by hand.

Each loop is a generator that yields after each step, so that a benchmark can run them in turn. Our loop uses what the
runtime offers: it counts the batches for a resume, logs the mean loss over the ranks and the rate every 10 steps, and
saves a checkpoint if it is evicted. The others only train.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import BatchSampler, DistributedSampler

from allranks import runtime

LOG_EVERY = 10
SAMPLES = 4096
RATE = 1e-3

Loop: TypeAlias = Iterator[None]


class Small(nn.Module):
    """A perceptron of 0.3 million parameters: most of a step is calls from Python."""

    batch_size = 128

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(nn.Linear(256, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU())
        self.head = nn.Linear(384, 10)

    def forward(self, samples: Tensor) -> Tensor:
        scores: Tensor = self.head(self.blocks(samples))
        return scores


class Large(nn.Module):
    """A transformer of 3 million parameters: most of a step is arithmetic."""

    batch_size = 16

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True) for _ in range(4)]
        self.blocks = nn.Sequential(nn.Linear(16, 256), *layers)
        self.head = nn.Linear(256, 10)

    def forward(self, samples: Tensor) -> Tensor:
        scores: Tensor = self.head(self.blocks(samples.unflatten(1, (16, 16))).mean(dim=1))
        return scores


MODELS: dict[str, type[Small | Large]] = {"small": Small, "large": Large}


class Data:
    """Random samples and labels."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self.samples = torch.randn(SAMPLES, 256, generator=generator)
        self.labels = torch.randint(10, (SAMPLES,), generator=generator)

    def batches(self, ranks: runtime.Ranks, batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield this rank's batches for ever, drawn by torch's own samplers."""
        sampler: Any = DistributedSampler(range(SAMPLES), ranks.world_size, ranks.rank, drop_last=True)  # type: ignore[arg-type]
        epoch = 0
        while True:
            sampler.set_epoch(epoch)
            for indices in BatchSampler(sampler, batch_size // ranks.world_size, drop_last=True):
                yield self.samples[indices], self.labels[indices]
            epoch += 1


def model_of(name: str) -> tuple[Small | Large, torch.optim.Optimizer]:
    """Return a model and its optimizer, with the same weights in each call."""
    torch.manual_seed(0)
    model = MODELS[name]()
    return model, torch.optim.AdamW(model.parameters(), lr=RATE)


def ours(ranks: runtime.Ranks, name: str, data: Data, folder: Path) -> Loop:
    """Our loop, under the strategy of the ranks."""
    model, optimizer = model_of(name)
    training = ranks.strategy.prepare(model, optimizer)
    sampler = runtime.ResumableSampler(SAMPLES, ranks, batch_size=model.batch_size, drop_last=True)
    checkpoints = runtime.Checkpoints(folder, ranks, {"training": training, "sampler": sampler}, every_minutes=1e6)
    step = checkpoints.load()
    while True:
        for indices in sampler.epoch_batches():
            loss = functional.cross_entropy(training.model(data.samples[indices]), data.labels[indices])
            training.backward(loss * sampler.weight)
            training.step()
            step += 1
            # In the middle of a block of steps, so that all of its cost belongs to the block.
            if step % LOG_EVERY == LOG_EVERY // 2:
                ranks.metrics.log({"train_loss": ranks.mean(loss), "learning_rate": RATE}, step=step)
            checkpoints.save_if_due(step)
            yield


def ddp(ranks: runtime.Ranks, name: str, data: Data, _folder: Path) -> Loop:
    """torch's DistributedDataParallel."""
    model, optimizer = model_of(name)
    return _plain_loop(ranks, DistributedDataParallel(model), optimizer, data, model.batch_size)


def fsdp(ranks: runtime.Ranks, name: str, data: Data, _folder: Path) -> Loop:
    """torch's fully_shard."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = MODELS[name]()
    fully_shard(model, mesh=init_device_mesh("cpu", (ranks.world_size,)))
    return _plain_loop(ranks, model, torch.optim.AdamW(model.parameters(), lr=RATE), data, model.batch_size)


def horovod(ranks: runtime.Ranks, name: str, data: Data, _folder: Path) -> Loop:
    """Horovod's DistributedOptimizer."""
    import horovod.torch as hvd

    model, optimizer = model_of(name)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    distributed = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    return _plain_loop(ranks, model, distributed, data, model.batch_size)


def deepspeed(ranks: runtime.Ranks, name: str, data: Data, _folder: Path) -> Loop:
    """DeepSpeed's engine, with ZeRO stage 2."""
    import deepspeed as library

    model, optimizer = model_of(name)
    config = {
        # DeepSpeed clips by default, and no other loop does.
        "gradient_clipping": 0.0,
        "steps_per_print": 1 << 30,
        "train_micro_batch_size_per_gpu": 1,
        "zero_optimization": {"stage": 2},
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
    }
    engine, *_ = library.initialize(model=model, optimizer=optimizer, config=config, dist_init_required=False)

    def loop() -> Loop:
        for samples, labels in data.batches(ranks, model.batch_size):
            engine.backward(functional.cross_entropy(engine(samples), labels))
            engine.step()
            yield

    return loop()


def accelerate(ranks: runtime.Ranks, name: str, data: Data, _folder: Path) -> Loop:
    """Hugging Face Accelerate, which uses DistributedDataParallel here."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model, optimizer = model_of(name)
    prepared, prepared_optimizer = accelerator.prepare(model, optimizer)
    return _plain_loop(ranks, prepared, prepared_optimizer, data, model.batch_size, accelerator.backward)


def fabric(ranks: runtime.Ranks, name: str, data: Data, _folder: Path) -> Loop:
    """Lightning Fabric, which uses DistributedDataParallel here."""
    from lightning.fabric import Fabric

    lightning = Fabric(accelerator="cpu", devices=ranks.local_world_size, num_nodes=1, strategy="ddp")
    lightning.launch()
    model, optimizer = model_of(name)
    prepared, prepared_optimizer = lightning.setup(model, optimizer)
    return _plain_loop(ranks, prepared, prepared_optimizer, data, model.batch_size, lightning.backward)


def _plain_loop(
    ranks: runtime.Ranks,
    model: nn.Module,
    optimizer: Any,
    data: Data,
    batch_size: int,
    backward: Callable[[Tensor], None] = torch.autograd.backward,
) -> Loop:
    for samples, labels in data.batches(ranks, batch_size):
        loss = functional.cross_entropy(model(samples), labels)
        backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        yield


LOOPS: dict[str, Callable[[runtime.Ranks, str, Data, Path], Loop]] = {
    "ours": ours,
    "ddp": ddp,
    "fsdp": fsdp,
    "horovod": horovod,
    "deepspeed": deepspeed,
    "accelerate": accelerate,
    "fabric": fabric,
}
