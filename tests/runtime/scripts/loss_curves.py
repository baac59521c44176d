"""The loss curves of a small Llama by several strategies, one after another in one process group; rank 0 prints them.

loss_curves.py STEPS NAME:PRECISION ...
"""

import argparse as source  # any text of the standard library
import inspect
import json
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn, optim
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from allranks import runtime
from allranks.runtime import strategies

CONFIG = LlamaConfig(
    vocab_size=128,
    max_position_embeddings=16,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    use_cache=False,
)
BATCH, ACCUMULATION, MAX_GRAD_NORM = 8, 2, 1.0
TEXT = torch.tensor([min(byte, 127) for byte in inspect.getsource(source).encode()])


def batch(number: int) -> Tensor:
    """Return windows of text of one token more than a block."""
    generator = torch.Generator().manual_seed(number)
    starts = torch.randint(len(TEXT) - CONFIG.max_position_embeddings - 1, (BATCH, 1), generator=generator)
    return TEXT[starts + torch.arange(CONFIG.max_position_embeddings + 1)]


def loss_of(model: nn.Module, tokens: Tensor) -> Tensor:
    return functional.cross_entropy(model(tokens[:, :-1]).logits.flatten(0, 1), tokens[:, 1:].flatten())


def schedule(steps: int) -> Callable[[optim.Optimizer], Any]:
    return lambda optimizer: optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)


def optimizer_of(model: nn.Module) -> optim.Optimizer:
    return optim.AdamW(model.parameters(), lr=0.004, weight_decay=0.1)


def one_process(steps: int) -> dict[str, list[float]]:
    """An ordinary loop, without a strategy."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(CONFIG)
    optimizer = optimizer_of(model)
    scheduler = schedule(steps)(optimizer)
    losses, norms, rates = [], [], []
    for step in range(steps):
        total = 0.0
        for part in range(ACCUMULATION):
            loss = loss_of(model, batch(step * ACCUMULATION + part)) / ACCUMULATION
            loss.backward()
            total += loss.item()
        losses.append(total)
        rates.append(optimizer.param_groups[0]["lr"])
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM).item())
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    return {"losses": losses, "norms": norms, "rates": rates}


def by_strategy(name: str, precision: str, steps: int, ranks: runtime.Ranks) -> dict[str, list[float]]:
    deepspeed_stage = int(name.removeprefix("zero")) if name.startswith("zero") else None
    strategy = strategies.strategy("deepspeed" if name.startswith("zero") else name, ranks.device)
    torch.manual_seed(0)
    model = strategy.create(lambda: LlamaForCausalLM(CONFIG))
    settings = runtime.TrainingSettings(
        gradient_accumulation_steps=ACCUMULATION,
        max_grad_norm=MAX_GRAD_NORM,
        precision=precision,
        blocks=(LlamaDecoderLayer,),
        deepspeed_stage=deepspeed_stage,
    )
    training = strategy.prepare(model, optimizer_of(model), settings, schedule(steps))
    losses, norms, rates = [], [], []
    for step in range(steps):
        rates.append(training.optimizer.param_groups[0]["lr"])
        stepped = False
        while not stepped:  # in float16, the first steps find the loss scale, and change nothing
            total = torch.zeros(())
            for part in range(ACCUMULATION):
                assert not stepped
                tokens = batch(step * ACCUMULATION + part).chunk(ranks.world_size)[ranks.rank]
                loss = loss_of(training.model, tokens)
                training.backward(loss)
                total += loss.detach() / ACCUMULATION
                stepped = training.step()
            assert stepped or settings.precision == "float16"
        torch.distributed.all_reduce(total)
        losses.append(total.item() / ranks.world_size)
        norms.append(training.gradient_norm.item())
    return {"losses": losses, "norms": norms, "rates": rates}


def train(ranks: runtime.Ranks) -> None:
    curves = {}
    for training in sys.argv[2:]:
        name, precision = training.split(":")
        curves[training] = by_strategy(name, precision, int(sys.argv[1]), ranks)
    if ranks.is_main:
        print(json.dumps(curves), flush=True)


if __name__ == "__main__":
    runtime.main(train)
