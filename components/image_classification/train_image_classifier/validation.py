"""Score the model that is being trained on the validation images."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from allranks import runtime


@torch.no_grad()
def validate(
    model: nn.Module, loader: runtime.DataLoader, ranks: runtime.Ranks, interrupted: Callable[[], bool]
) -> dict[str, float] | None:
    """Return loss, accuracy and top5_accuracy, each image counted once. A collective.

    interrupted: whether to stop, asked before each batch; the result is then None

    The ranks of a sharded model communicate in every forward pass, so all make the same number of passes.
    """
    model.eval()
    totals = torch.zeros(4, dtype=torch.float64, device=ranks.device)  # images, loss, correct, correct among five
    try:
        for batch in loader:
            if interrupted():
                return None
            scores = model(batch.pixels)
            if loader.weight == 0:
                continue
            best = scores.topk(min(5, scores.shape[1]), dim=1).indices == batch.labels.unsqueeze(1)
            loss = functional.cross_entropy(scores, batch.labels, reduction="sum")
            count = torch.tensor(float(len(batch.labels)), device=ranks.device)
            totals += torch.stack([count, loss.float(), best[:, 0].sum(), best.any(dim=1).sum()])
    finally:
        model.train()
    count, *sums = ranks.reduce(totals).tolist()
    return dict(zip(("loss", "accuracy", "top5_accuracy"), (value / count for value in sums), strict=True))
