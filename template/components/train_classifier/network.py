"""The network, which the training and the evaluation share."""

from torch import nn


def network() -> nn.Module:
    """Return a network that takes points (n, 2) and returns a score for each of the two classes (n, 2)."""
    return nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
