"""Count the correct predictions of a model on labelled images, over all ranks."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from allranks import runtime
from allranks_steps.images.scores import Counts

MOST_CLASSES = 1000
"""Number of classes up to which there is a confusion matrix."""


@torch.no_grad()
def count(
    model: nn.Module,
    loader: runtime.DataLoader,
    class_count: int,
    ranks: runtime.Ranks,
    interrupted: Callable[[], bool] = lambda: False,
) -> Counts | None:
    """Return the counts over all ranks. Each image is counted once. A collective.

    interrupted: called on every rank before each batch; if it returns True, the result is None

    The ranks of a sharded model communicate in every forward pass, so all make the same number of passes.
    """
    with_matrix = class_count <= MOST_CLASSES
    cells = class_count * class_count if with_matrix else 3 * class_count
    found = torch.zeros(cells, dtype=torch.int64, device=ranks.device)
    sums = torch.zeros(2, dtype=torch.float64, device=ranks.device)  # loss, correct among five
    for batch in loader:
        if interrupted():
            return None
        scores = model(batch.pixels).float()
        if loader.weight == 0:
            continue
        best = scores.topk(min(5, class_count), dim=1).indices
        loss = functional.cross_entropy(scores, batch.labels, reduction="sum")
        sums += torch.stack([loss, (best == batch.labels.unsqueeze(1)).any(dim=1).sum()])
        found += _cells(batch.labels, best[:, 0], class_count, with_matrix=with_matrix)
    found, sums = ranks.reduce(found).cpu(), ranks.reduce(sums).cpu()
    if with_matrix:
        return Counts.from_matrix(found.reshape(class_count, class_count).numpy(), *sums.tolist())
    present, predicted, correct = found.reshape(3, class_count).numpy()
    return Counts(present, predicted, correct, None, *sums.tolist())


def _cells(labels: Tensor, predicted: Tensor, class_count: int, *, with_matrix: bool) -> Tensor:
    """Return the cells of the confusion matrix, or the numbers of images, predictions and correct predictions of each
    class."""
    if with_matrix:
        return torch.bincount(labels * class_count + predicted, minlength=class_count * class_count)
    correct = labels[labels == predicted]
    return torch.cat([torch.bincount(each, minlength=class_count) for each in (labels, predicted, correct)])
