"""A training of an elastic job that resumes from its last checkpoint, up to a step.

elastic.py FOLDER STEP NAME

The last batch of an epoch is smaller, and each step accumulates. Rank 0 writes the losses and learning rates by step,
how often each sample was drawn in the steps, and a random number of each rank.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import strategies as script
import torch

from allranks import runtime
from allranks.runtime import strategies

SAMPLES, PER_DEVICE, ACCUMULATION, SCHEDULED = 141, 3, 2, 200


class Samples(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> tuple[int, torch.Tensor]:
        generator = torch.Generator().manual_seed(index)
        return index, torch.randint(script.VOCABULARY, (script.LENGTH,), generator=generator)


def train(ranks: runtime.Ranks) -> None:
    found = resumed(sys.argv[3], ranks, Path(sys.argv[1]), int(sys.argv[2]))
    if ranks.is_main:
        sys.stdout.write(json.dumps(found) + "\n")


def resumed(name: str, ranks: runtime.Ranks, folder: Path, last: int) -> dict[str, Any]:
    stage = int(name.removeprefix("zero")) if name.startswith("zero") else None
    strategy = strategies.strategy("deepspeed" if stage else name, ranks.device)
    model, optimizer = script.model_and_optimizer(create=strategy.create)
    sampler = runtime.ResumableSampler(
        SAMPLES, ranks, batch_size=PER_DEVICE * ranks.full_world_size, per_device_batch_size=PER_DEVICE
    )
    settings = runtime.TrainingSettings(
        gradient_accumulation_steps=ACCUMULATION,
        passes_per_batch=sampler.passes_per_batch,
        max_grad_norm=0.5,
        deepspeed_stage=stage,
        blocks=(script.Block,),
    )
    schedule = lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, SCHEDULED)  # noqa: E731
    training = strategy.prepare(model, optimizer, settings, schedule)
    loader = runtime.DataLoader(Samples(), sampler)
    checkpoints = runtime.Checkpoints(folder, ranks, {"training": training, "loader": loader}, every_steps=20)
    torch.manual_seed(1 + ranks.rank)
    step = checkpoints.load()
    random = ranks.gather(torch.rand(1)).tolist()
    losses, rates, drawn, total = {}, {}, Counter[str](), torch.zeros(())
    while step < last:
        for indices, tokens in loader:
            assert len(tokens) <= PER_DEVICE
            epoch = sampler.epoch
            rate = training.optimizer.param_groups[0]["lr"]
            loss = script.loss_of(training.model, tokens)
            training.backward(loss, loader.weight)
            total += loss.detach() * loader.weight
            if loader.weight:
                drawn.update(f"{epoch} {index}" for index in indices.tolist())
            if not training.step():
                continue
            losses[step] = ranks.reduce(total / training.gradient_accumulation_steps, "mean").item()
            rates[step] = rate
            total.zero_()
            step += 1
            checkpoints.save_if_due(step)
            if step == last:
                break
    checkpoints.save(step)
    counts: list[Any] = [None] * ranks.world_size
    torch.distributed.all_gather_object(counts, drawn)
    return {"losses": losses, "rates": rates, "drawn": sum(counts, Counter()), "random": random}


if __name__ == "__main__":
    runtime.main(train, timeout_seconds=60)
