"""Score a model on the test images, each rank a part of them, and count every image exactly once."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import no_model
import numpy as np
import torch
import torch.distributed as dist
from loading import load
from prepared_images import BadData, Description, Images, read, read_description
from scores import confusion_matrix_document, scores
from torch import Tensor, nn

from allranks import runtime
from allranks.errors import InputError, Problem


def evaluate(ranks: runtime.Ranks) -> None:
    args = arguments()
    description, images = data(args.data, args.split)
    classes = len(description.classes)
    model = load(args.model, description, ranks.device)
    confusion = count(model, images, classes, args.batch_size, ranks)
    baseline = None
    if args.baseline and not no_model.stands_in(args.baseline):
        other = load(args.baseline, description, ranks.device, "baseline")
        baseline = count(other, images, classes, args.batch_size, ranks)
    if not ranks.is_main:
        return
    metrics = {"split": args.split, "source": description.source} | scores(confusion.numpy(), description.classes)
    if args.baseline:
        metrics["baseline"] = None if baseline is None else scores(baseline.numpy(), description.classes)
    matrix = confusion_matrix_document(confusion.numpy(), description.classes)
    args.metrics.mkdir(parents=True, exist_ok=True)
    write(args.metrics / "metrics.json", metrics)
    # Files in ./outputs become the run's artifacts, from which Azure ML's studio draws the matrix.
    for folder in (args.metrics, Path("outputs")):
        folder.mkdir(exist_ok=True)
        write(folder / "confusion_matrix.json", matrix)
    ranks.metrics.log_dict(matrix, "confusion_matrix.json")
    ranks.metrics.log({f"{args.split}_{name}": metrics[name] for name in ("accuracy", "macro_f1")}, step=0)
    compared = f", the baseline's {metrics['baseline']['accuracy']:.4f}" if metrics.get("baseline") else ""
    print(f"{args.split} accuracy {metrics['accuracy']:.4f}{compared} on {metrics['count']} images")


def data(source: Path, split: str) -> tuple[Description, Images]:
    """Return the description and one split, from a copy that the ranks of an instance share."""
    try:
        folder = runtime.stage(source)
        return read_description(folder), read(folder, split)
    except BadData as error:
        raise InputError(Problem("input data", str(error))) from None


@torch.no_grad()
def count(model: nn.Module, images: Images, class_count: int, batch_size: int, ranks: runtime.Ranks) -> Tensor:
    """Return the confusion matrix (rows: true class, columns: predicted class) over all ranks. A collective."""
    confusion = torch.zeros(class_count * class_count, dtype=torch.int64)
    own = range(ranks.rank, len(images), ranks.world_size)
    for start in range(0, len(own), batch_size):
        indices = list(own[start : start + batch_size])
        pixels = torch.from_numpy(np.take(images.pixels, indices, axis=0)).to(ranks.device)
        labels = torch.from_numpy(np.take(images.labels, indices))
        cells = labels * class_count + model(pixels).argmax(dim=1).cpu()
        confusion += torch.bincount(cells, minlength=class_count * class_count)
    dist.all_reduce(confusion)
    return confusion.reshape(class_count, class_count)


def write(file: Path, content: object) -> None:
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    """Parse the inputs and outputs that component.yaml describes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--baseline", type=Path)
    parser.add_argument("--split", choices=["train", "validation", "test"], default="test")
    parser.add_argument("--batch_size", type=int, default=256)
    parser.add_argument("--metrics", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    runtime.main(evaluate)
