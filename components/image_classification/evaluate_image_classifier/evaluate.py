"""Score a model on labelled images, each rank a part of them, and count every image exactly once."""

from __future__ import annotations

import argparse
from typing import Any

import torch
from loading import load
from torch import Tensor, nn
from torch.nn import functional

from allranks import runtime
from allranks.errors import InputError, Problem
from allranks.runtime.output_room import full_output_refused
from allranks_steps.images.image_data.batches import evaluation_loader
from allranks_steps.images.image_data.decoding import Decoder
from allranks_steps.images.image_data.images import ImageData
from allranks_steps.images.image_data.open_data import kind, open_data
from allranks_steps.images.scores import Counts, report, scores
from allranks_steps.models import no_model

MOST_CLASSES = 1000
"""Number of classes up to which there is a confusion matrix."""


def evaluate(ranks: runtime.Ranks) -> None:
    args = runtime.arguments()
    data = read(args)
    counts = count_images("model", data, args, ranks)
    baseline: dict[str, Any] | None = None
    if args.baseline and not no_model.stands_in(args.baseline):
        baseline = scores(count_images("baseline", data, args, ranks))
    if ranks.is_main:
        with full_output_refused("output metrics", args.metrics):
            metrics = report(
                args.metrics,
                counts,
                split=args.split,
                source=data.source,
                classes=data.classes,
                metrics=ranks.metrics,
                further={"baseline": baseline} if args.baseline else {},
            )
        compared = f", the baseline's {baseline['accuracy']:.4f}" if baseline else ""
        print(f"{args.split} accuracy {metrics['accuracy']:.4f}{compared} on {metrics['count']} images")


def read(args: argparse.Namespace) -> ImageData:
    """Open the data. Arrays are copied to a local disk, which the ranks of an instance share. Raise InputError."""
    data = open_data(runtime.stage(args.data) if kind(args.data) == "arrays" else args.data)
    if not data.count(args.split):
        present = ", ".join(split for split in data.splits if data.count(split)) or "none"
        raise InputError(Problem("input split", f"no image in the split {args.split}", f"one of {present}"))
    return data


def count_images(name: str, data: ImageData, args: argparse.Namespace, ranks: runtime.Ranks) -> Counts:
    """Score the split with the model of an input. A collective. Raise InputError if the model does not fit the data."""
    model, image_size = load(getattr(args, name), data, ranks.device, name)
    loader = evaluation_loader(
        data.splits[args.split],
        None if data.kind == "arrays" else Decoder(image_size, data.channels),
        ranks,
        per_device_batch_size=args.per_device_eval_batch_size,
        num_workers=args.dataloader_num_workers,
    )
    return count(model, loader, len(data.classes), ranks)


@torch.no_grad()
def count(model: nn.Module, loader: runtime.DataLoader, class_count: int, ranks: runtime.Ranks) -> Counts:
    """Return what the model scores over all ranks. A collective."""
    with_matrix = class_count <= MOST_CLASSES
    cells = class_count * class_count if with_matrix else 3 * class_count
    found = torch.zeros(cells, dtype=torch.int64, device=ranks.device)
    sums = torch.zeros(2, dtype=torch.float64, device=ranks.device)  # loss, correct among five
    for batch in loader:
        if loader.weight == 0:
            continue
        scores = model(batch.pixels).float()
        best = scores.topk(min(5, class_count), dim=1).indices
        loss = functional.cross_entropy(scores, batch.labels, reduction="sum")
        sums += torch.stack([loss, (best == batch.labels.unsqueeze(1)).any(dim=1).sum()])
        found += _cells(batch.labels, best[:, 0], class_count, with_matrix=with_matrix)
    found, sums = ranks.reduce(found).cpu(), ranks.reduce(sums).cpu()
    if with_matrix:
        return Counts.of_matrix(found.reshape(class_count, class_count).numpy(), *sums.tolist())
    present, predicted, correct = found.reshape(3, class_count).numpy()
    return Counts(present, predicted, correct, None, *sums.tolist())


def _cells(labels: Tensor, predicted: Tensor, class_count: int, *, with_matrix: bool) -> Tensor:
    """Return the cells of the confusion matrix; without one, images, predictions and correct ones of each class."""
    if with_matrix:
        return torch.bincount(labels * class_count + predicted, minlength=class_count * class_count)
    correct = labels[labels == predicted]
    return torch.cat([torch.bincount(each, minlength=class_count) for each in (labels, predicted, correct)])


if __name__ == "__main__":
    runtime.main(evaluate)
