"""Train a model under several strategies, one after another, and save a checkpoint of each.

save_each.py FOLDER NAME ...     rank 0 also writes the weights to FOLDER/NAME/weights.pt
"""

import sys
from pathlib import Path

import torch

from allranks import runtime
from allranks.runtime import strategies


def train(ranks: runtime.Ranks) -> None:
    for name in sys.argv[2:]:
        folder = Path(sys.argv[1], name)
        stage = int(name[-1]) if name.startswith("zero") else None
        strategy = strategies.strategy("deepspeed" if stage else name, ranks.device)
        model = torch.nn.Linear(64, 10)
        optimizer = torch.optim.AdamW(model.parameters())
        training = strategy.prepare(model, optimizer, runtime.TrainingSettings(deepspeed_stage=stage))
        training.backward(training.model(torch.randn(8, 64)).square().mean())
        training.step()
        runtime.Checkpoints(folder / "checkpoints", ranks, {"training": training}).save(100)
        if weights := training.weights():
            torch.save(weights, folder / "weights.pt")


if __name__ == "__main__":
    runtime.main(train)
