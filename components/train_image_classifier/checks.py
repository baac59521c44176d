"""What can only be checked with the data and the model."""

from __future__ import annotations

import argparse
import shutil

from classifier import has_batch_norm
from torch import nn

from allranks import runtime
from allranks.errors import InputError, Problem


def check_room(args: argparse.Namespace, parameter_count: int, ranks: runtime.Ranks) -> None:
    """Raise InputError if the disk of the outputs has no room for them."""
    # float32 weights, and with AdamW two more numbers for each in a checkpoint, of which one more than the limit exist
    # while one is written.
    needed = 4 * parameter_count * (1 + 3 * (args.save_total_limit + 1))
    existing = next(folder for folder in (args.checkpoints, *args.checkpoints.absolute().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if ranks.any_rank(ranks.is_main and free < needed):
        found = f"{free / 2**30:.1f} GiB are free, and the checkpoints and the model need {needed / 2**30:.1f} GiB"
        raise InputError(Problem("output checkpoints", found, fix="use a larger disk, or a smaller save_total_limit"))


def check_batches(args: argparse.Namespace, model: nn.Module, count: int, ranks: runtime.Ranks) -> None:
    """Raise InputError if there are fewer images than ranks, or a batch too small for batch normalization."""
    if count < ranks.world_size:
        found = f"{count} training images for {ranks.world_size} ranks"
        raise InputError(Problem("input data", found, "at least one for each rank", "use fewer ranks"))
    batch_size = args.per_device_train_batch_size * ranks.world_size
    last = 0 if args.dataloader_drop_last else count % batch_size
    smallest = min(args.per_device_train_batch_size, last // ranks.world_size if last else batch_size)
    if has_batch_norm(model) and smallest < 2 and not args.sync_batchnorm:
        where = "dataloader_drop_last" if args.per_device_train_batch_size > 1 else "per_device_train_batch_size"
        raise InputError(
            Problem(
                where=f"input {where}",
                found=f"a batch of {smallest} on a rank, for a model with batch normalization",
                expected="at least 2 images",
                fix="set dataloader_drop_last, another per_device_train_batch_size, or a model without it (convnextv2, "
                "vit, swin)",
            )
        )
