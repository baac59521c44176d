"""Score a model on labelled images, divided over the ranks. Each image is counted once."""

import argparse
from typing import Any

from loading import load

from allranks import runtime
from allranks.runtime.output_room import full_output_refused
from allranks_steps.images.counting import count
from allranks_steps.images.image_data.batches import evaluation_loader
from allranks_steps.images.image_data.decoding import Decoder
from allranks_steps.images.image_data.images import ImageData, kind, open_data
from allranks_steps.images.scores import Counts, report, scores
from allranks_steps.messages import bad_input
from allranks_steps.models.mlmodel import is_placeholder


def evaluate(ranks: runtime.Ranks) -> None:
    args = runtime.arguments()
    data = read(args)
    counts = count_images("model", data, args, ranks)
    baseline: dict[str, Any] | None = None
    if args.baseline and not is_placeholder(args.baseline):
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
        raise bad_input("input split", f"no image in the split {args.split}", f"one of {present}")
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
    counts = count(model, loader, len(data.classes), ranks)
    assert counts is not None  # nothing interrupts it
    return counts


if __name__ == "__main__":
    runtime.main(evaluate)
