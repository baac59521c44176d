"""Training loops of the same model on the same data: ours, and those that a user of each library writes by hand.

Each loop is a generator that yields after each step, so that a benchmark can run them in turn. Every 10 steps, each
computes the mean loss over the ranks. Our loop uses what the runtime offers: it also logs the mean, counts the batches
for a resume, and saves a checkpoint if it is evicted.

All index the data alike: whether a loop does so before the forward pass, or in the middle of it, where the caches hold
other things, made more of a difference than our loop does.

Two copies of a model in one process differ by up to 10 % in the time of a step, for as long as the process lives,
depending on where their memory lies. So our loop and those that it is compared with train the same model.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import BatchSampler, DistributedSampler

from allranks import runtime

LOG_EVERY = 10
SAMPLES = 4096
RATE = 1e-3

Loop: TypeAlias = Iterator[None]
Mean: TypeAlias = Callable[[Tensor], float]


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

    def __getitem__(self, indices: list[int]) -> tuple[Tensor, Tensor]:
        """Return a batch: samples and labels."""
        return self.samples[indices], self.labels[indices]


def torch_batches(ranks: runtime.Ranks, batch_size: int) -> Iterator[list[int]]:
    """Yield the indices of this rank's batches for ever, drawn by torch's own samplers."""
    sampler: Any = DistributedSampler(range(SAMPLES), ranks.world_size, ranks.rank, drop_last=True)  # type: ignore[arg-type]
    for epoch in itertools.count():
        sampler.set_epoch(epoch)
        yield from BatchSampler(sampler, batch_size // ranks.world_size, drop_last=True)


class Wrapped(NamedTuple):
    """A model and its optimizer as a library has distributed them, and its own `backward`, by default the loss's."""

    model: Any
    optimizer: Any
    backward: Callable[[Tensor], None] = Tensor.backward


def model_of(name: str) -> tuple[Small | Large, torch.optim.Optimizer]:
    """Return a model and its optimizer, with the same weights in each call."""
    torch.manual_seed(0)
    model = MODELS[name]()
    return model, torch.optim.AdamW(model.parameters(), lr=RATE)


def our_loop(ranks: runtime.Ranks, training: runtime.Training, batch_size: int, data: Data, folder: Path) -> Loop:
    """Our loop over a model that our strategy has prepared."""
    sampler = runtime.ResumableSampler(SAMPLES, ranks, batch_size=batch_size, drop_last=True)
    checkpoints = runtime.Checkpoints(folder, ranks, {"training": training, "sampler": sampler}, every_minutes=1e6)
    step = checkpoints.load()
    while True:
        for indices in sampler.epoch_batches():
            samples, labels = data[indices]
            loss = functional.cross_entropy(training.model(samples), labels)
            training.backward(loss, sampler.weight)
            training.step()
            step += 1
            # In the middle of a block of steps, so that all of its cost belongs to the block.
            if step % LOG_EVERY == LOG_EVERY // 2:
                ranks.metrics.log({"train_loss": ranks.mean(loss), "learning_rate": RATE}, step=step)
            checkpoints.save_if_due(step)
            yield


def plain_loop(ranks: runtime.Ranks, wrapped: Wrapped, batch_size: int, data: Data, mean: Mean | None) -> Loop:
    """The loop that a user writes by hand. mean: returns the mean loss over the ranks; None: it is not logged"""
    model, optimizer, backward = wrapped
    means: list[float] = []
    for step, indices in enumerate(torch_batches(ranks, batch_size)):
        samples, labels = data[indices]
        loss = functional.cross_entropy(model(samples), labels)
        backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if mean and step % LOG_EVERY == LOG_EVERY // 2:
            means.append(mean(loss))
        yield


def deepspeed_loop(ranks: runtime.Ranks, engine: Any, batch_size: int, data: Data, mean: Mean | None) -> Loop:
    """The loop that a user of DeepSpeed's engine writes by hand."""
    means: list[float] = []
    for step, indices in enumerate(torch_batches(ranks, batch_size)):
        samples, labels = data[indices]
        loss = functional.cross_entropy(engine(samples), labels)
        engine.backward(loss)
        engine.step()
        if mean and step % LOG_EVERY == LOG_EVERY // 2:
            means.append(mean(loss))
        yield


def mean_of_torch(loss: Tensor) -> float:
    """The mean over the ranks as users of torch compute it."""
    total = loss.detach().clone()
    distributed.all_reduce(total)
    return total.item() / distributed.get_world_size()


def mean_of_horovod(loss: Tensor) -> float:
    """The mean over the ranks as users of Horovod compute it."""
    import horovod.torch as hvd

    mean: Tensor = hvd.allreduce(loss.detach())
    return mean.item()


def ddp(_ranks: runtime.Ranks, name: str) -> Wrapped:
    """torch's DistributedDataParallel."""
    model, optimizer = model_of(name)
    return Wrapped(DistributedDataParallel(model), optimizer)


def fsdp(ranks: runtime.Ranks, name: str) -> Wrapped:
    """torch's fully_shard."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.manual_seed(0)
    model = MODELS[name]()
    fully_shard(model, mesh=init_device_mesh("cpu", (ranks.world_size,)))
    return Wrapped(model, torch.optim.AdamW(model.parameters(), lr=RATE))


def horovod(_ranks: runtime.Ranks, name: str) -> Wrapped:
    """Horovod's DistributedOptimizer."""
    import horovod.torch as hvd

    model, optimizer = model_of(name)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return Wrapped(model, hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters()))


def deepspeed(_ranks: runtime.Ranks, name: str) -> Wrapped:
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
    return Wrapped(engine, engine.optimizer)


def accelerate(_ranks: runtime.Ranks, name: str) -> Wrapped:
    """Hugging Face Accelerate, which uses DistributedDataParallel here."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    return Wrapped(*accelerator.prepare(*model_of(name)), accelerator.backward)


def fabric(ranks: runtime.Ranks, name: str) -> Wrapped:
    """Lightning Fabric, which uses DistributedDataParallel here."""
    from lightning.fabric import Fabric

    lightning = Fabric(accelerator="cpu", devices=ranks.local_world_size, num_nodes=1, strategy="ddp")
    lightning.launch()
    return Wrapped(*lightning.setup(*model_of(name)), lightning.backward)


BY_HAND: dict[str, Callable[[runtime.Ranks, str], Wrapped]] = {
    "ddp": ddp,
    "fsdp": fsdp,
    "horovod": horovod,
    "deepspeed": deepspeed,
    "accelerate": accelerate,
    "fabric": fabric,
}
"""Libraries, with what prepares a model as their users do by hand."""

OF_ONE_MODEL = {"ours", "by hand", "without metrics"}
"""Loops that train the model that our strategy has prepared."""


def loops_of(
    names: Sequence[str], ranks: runtime.Ranks, strategy: str, model: str, data: Data, folder: Path
) -> dict[str, Loop]:
    """Return loops by name: "ours"; "by hand" and "without metrics", on the same model; a library's name for a model
    that it has prepared."""
    batch_size = MODELS[model].batch_size
    training = ranks.strategy.prepare(*model_of(model)) if OF_ONE_MODEL & set(names) else None

    def loop_of(name: str) -> Loop:
        if training is not None and name == "ours":
            return our_loop(ranks, training, batch_size, data, folder)
        if training is not None and name in OF_ONE_MODEL:
            wrapped = Wrapped(training.model, training.optimizer)
        else:
            wrapped = BY_HAND[name](ranks, model)
        mean = None if name == "without metrics" else mean_of_horovod if strategy == "horovod" else mean_of_torch
        if strategy == "deepspeed":
            return deepspeed_loop(ranks, wrapped.model, batch_size, data, mean)
        return plain_loop(ranks, wrapped, batch_size, data, mean)

    return {name: loop_of(name) for name in names}
