"""Draw points on two spirals, and divide them into a training and a test set. An ordinary script without allranks."""

import argparse
import math
from pathlib import Path

import torch


def spirals(count: int, noise: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return points (count, 2) and their classes (count,), which are 0 and 1."""
    generator = torch.Generator().manual_seed(seed)
    classes = torch.arange(count) % 2
    radius = torch.rand(count, generator=generator).sqrt()
    angle = 3 * math.pi * radius + math.pi * classes
    points = radius[:, None] * torch.stack([angle.cos(), angle.sin()], dim=1)
    return points + noise * torch.randn(count, 2, generator=generator), classes


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--count", type=int, default=2000)
parser.add_argument("--noise", type=float, default=0.05)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--points", type=Path, required=True)
args = parser.parse_args()

points, classes = spirals(args.count, args.noise, args.seed)
test_count = args.count // 5
args.points.mkdir(parents=True, exist_ok=True)
torch.save({"points": points[test_count:], "classes": classes[test_count:]}, args.points / "train.pt")
torch.save({"points": points[:test_count], "classes": classes[:test_count]}, args.points / "test.pt")
print(f"{args.count - test_count} points for training, {test_count} for the test")
