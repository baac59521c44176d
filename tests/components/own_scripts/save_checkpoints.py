"""Train a small model under ZeRO 2 and 3, and save it in every way: save_checkpoints.py FOLDER

FOLDER/zero2 and zero3: weights.pt, what the weights are; ours, our checkpoints; deepspeed, the engine's own
"""

import sys
from pathlib import Path

import torch
from torch import nn

from allranks import runtime


def train(ranks: runtime.Ranks) -> None:
    for stage in (2, 3):
        folder = Path(sys.argv[1], f"zero{stage}")
        torch.manual_seed(stage)
        model = nn.Sequential(nn.Linear(7, 13), nn.Tanh(), nn.Linear(13, 5, bias=False))
        model.register_buffer("scale", torch.tensor([0.5, 2.0]))
        settings = runtime.TrainingSettings(deepspeed_stage=stage)
        training = ranks.strategy.prepare(model, torch.optim.AdamW(model.parameters()), settings)
        for _ in range(2):
            training.backward(training.model(torch.randn(4, 7)).square().mean())
            training.step()
        runtime.Checkpoints(folder / "ours", ranks, {"training": training}).save(2)
        training.model.save_checkpoint(str(folder / "deepspeed"))
        weights = training.weights()
        if ranks.is_main:
            torch.save(weights, folder / "weights.pt")


if __name__ == "__main__":
    runtime.main(train, strategy="deepspeed")
