"""Sum `rank + 1` over all ranks with a stack's own all-reduce. Every rank prints its numbers and the sum.

usage: python sum_ranks.py STACK [DEVICES [per-node]]

Only the stack's own packages are imported, since each may be installed without the others.
"""

import json
import os
import sys
import tempfile

from allranks import runtime


def emit(*, rank: int, world_size: int, local_rank: int, total: float) -> None:
    """Print the rank's numbers in one line. total: the sum of `rank + 1` over all ranks"""
    result = {"rank": rank, "world_size": world_size, "local_rank": local_rank, "total": total}
    # One write, because ranks that the stack's own launcher starts share a log.
    os.write(1, f"result {json.dumps(result)}\n".encode())


def pytorch() -> None:
    """Sum with torch.distributed, which the runtime has set up."""
    # Each stack imports its own packages.
    import torch

    def train(ranks: runtime.Ranks) -> None:
        total = torch.tensor(float(ranks.rank + 1))
        torch.distributed.all_reduce(total)
        emit(rank=ranks.rank, world_size=ranks.world_size, local_rank=ranks.local_rank, total=total.item())

    runtime.main(train)


def mpi() -> None:
    """Sum with mpi4py. The ranks of an instance share memory."""
    # Each stack imports its own packages.
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    instance = world.Split_type(MPI.COMM_TYPE_SHARED)
    emit(rank=world.rank, world_size=world.size, local_rank=instance.rank, total=world.allreduce(float(world.rank + 1)))


def deepspeed() -> None:
    """Run one step of DeepSpeed's ZeRO 1 on a model with one weight, whose gradient is rank + 1."""
    # Each stack imports its own packages.
    import deepspeed
    import torch

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
    emit(rank=rank, world_size=world_size, local_rank=int(os.environ["LOCAL_RANK"]), total=total)


def horovod() -> None:
    # Each stack imports its own packages.
    import horovod.torch as hvd
    import torch

    hvd.init()
    total = hvd.allreduce(torch.tensor(float(hvd.rank() + 1)), op=hvd.Sum)
    emit(rank=hvd.rank(), world_size=hvd.size(), local_rank=hvd.local_rank(), total=total.item())
    hvd.shutdown()


def accelerate() -> None:
    # Each stack imports its own packages.
    import torch
    from accelerate import Accelerator

    here = Accelerator()
    total = here.reduce(torch.tensor(float(here.process_index + 1)), reduction="sum")
    local_rank = here.local_process_index
    emit(rank=here.process_index, world_size=here.num_processes, local_rank=local_rank, total=total.item())
    here.end_training()


def lightning(devices: str, launch: str = "") -> None:
    """Run one step of Lightning's Trainer. devices: the number of ranks that it finds or starts on each instance"""
    per_node = launch == "per-node"
    if os.environ.get("LOCAL_RANK") is None or not per_node or "ALLRANKS_PER_NODE" not in os.environ:
        runtime.prepare_libraries(per_node=per_node)
    # Each stack imports its own packages.
    import lightning as pl
    import torch

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def training_step(self, batch: torch.Tensor) -> torch.Tensor:
            total = self.all_gather(torch.tensor(float(self.global_rank + 1))).sum().item()
            emit(rank=self.global_rank, world_size=self.trainer.world_size, local_rank=self.local_rank, total=total)
            return self.layer(batch).sum()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    trainer = pl.Trainer(
        accelerator="cpu",
        strategy="ddp",
        devices=int(devices),
        num_nodes=int(os.environ["AZUREML_NODE_COUNT"]),
        max_steps=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(torch.ones(64, 1), batch_size=1))


def transformers() -> None:
    """Run one step of Hugging Face's Trainer."""
    # Each stack imports its own packages.
    import torch
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": self.layer(x).sum()}

    class PrintResult(TrainerCallback):
        def on_step_end(self, args: TrainingArguments, *_: object, **__: object) -> None:
            total = torch.tensor(float(args.process_index + 1))
            if args.world_size > 1:
                torch.distributed.all_reduce(total)
            local_rank = args.local_process_index
            emit(rank=args.process_index, world_size=args.world_size, local_rank=local_rank, total=total.item())

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(folder, max_steps=1, report_to=[], save_strategy="no", disable_tqdm=True)
        data = [{"x": torch.ones(1)} for _ in range(64)]
        Trainer(Model(), arguments, train_dataset=data, callbacks=[PrintResult()]).train()


def tensorflow() -> None:
    """Sum with TensorFlow's workers, one per instance."""
    # Each stack imports its own packages.
    import tensorflow as tf

    # Each stack imports its own packages.
    from allranks.runtime import tensorflow

    def train(training: tensorflow.Training) -> None:
        strategy = training.strategy

        @tf.function
        def total() -> tf.Tensor:
            value = strategy.run(lambda: tf.constant(float(training.rank + 1)))
            return strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None)

        emit(rank=training.rank, world_size=training.world_size, local_rank=0, total=float(total()))

    tensorflow.main(train)


def tensorflow_servers() -> None:
    """Sum with TensorFlow's parameter servers: the chief makes the workers add to a variable on a server.

    The chief does not train, so the world has one worker less than there are instances. Only the chief prints a
    result.
    """
    # Each stack imports its own packages.
    import tensorflow as tf

    # Each stack imports its own packages.
    from allranks.runtime import tensorflow

    def train(training: tensorflow.Training) -> None:
        total = 0.0
        if training.coordinator is None:
            total = 1.0
        else:
            with training.strategy.scope():
                variable = tf.Variable(0.0)

            @tf.function
            def add() -> None:
                variable.assign_add(1.0)

            training.coordinator.schedule(add)
            training.coordinator.join()
            total = float(variable.read_value())
        emit(rank=training.rank, world_size=training.world_size, local_rank=0, total=total)

    tensorflow.main(train)


def tensorflow_horovod() -> None:
    # Each stack imports its own packages.
    import horovod.tensorflow as hvd
    import tensorflow as tf

    # Each stack imports its own packages.
    from allranks.runtime.tensorflow import Training, horovod

    def train(training: Training) -> None:
        total = hvd.allreduce(tf.constant(float(training.rank + 1)), op=hvd.Sum)
        emit(rank=hvd.rank(), world_size=hvd.size(), local_rank=hvd.local_rank(), total=float(total))

    horovod.main(train)


def ray(each: str) -> None:
    """Run one Ray task per rank, the same number on every node. The script on the head prints the results of all."""
    # Each stack imports its own packages.
    import ray

    count = int(each)
    ray.init(log_to_driver=False)
    nodes = sorted(node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"])

    @ray.remote(num_cpus=0.5)
    def number(rank: int) -> tuple[int, str]:
        return rank + 1, ray.util.get_node_ip_address()

    results = [
        number.options(resources={f"node:{node}": 0.01}).remote(count * index + local)
        for index, node in enumerate(nodes)
        for local in range(count)
    ]
    answers = ray.get(results)
    for rank, (_, node) in enumerate(answers):
        if node == nodes[rank // count]:
            total = float(sum(value for value, _ in answers))
            emit(rank=rank, world_size=len(answers), local_rank=rank % count, total=total)


stack, *given = sys.argv[1:]
globals()[stack](*given)
