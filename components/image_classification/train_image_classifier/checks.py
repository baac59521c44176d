"""Check inputs against each other, the data and the model, which the spec cannot express."""

import argparse
import tempfile
from pathlib import Path

from torch import nn

from allranks import runtime
from allranks.runtime.output_room import Content, outputs_of_training, require_room
from allranks_steps.images.classifier import has_batch_norm
from allranks_steps.messages import bad_input

OPTIMIZER_COPIES = {"adamw_torch": 2, "sgd": 1}
"""Numbers that an optimizer keeps for each weight: AdamW's two moments, SGD's momentum."""


def check_room(args: argparse.Namespace, parameter_count: int, validates: bool, ranks: runtime.Ranks) -> None:
    """Raise InputError if the disks of the outputs have no room for them. A collective.

    validates: whether checkpoints have a metric, by which the best one is kept
    """
    weights = 4 * parameter_count  # float32
    copies = 1 + OPTIMIZER_COPIES[args.optim] + bool(args.ema_decay)
    temporary = Path(tempfile.gettempdir())
    require_room(
        [
            *outputs_of_training(
                args.model, weights, args.checkpoints, copies * weights, args.save_total_limit, best=validates
            ),
            Content(f"TMPDIR {temporary}", temporary / "model", weights, fix="set TMPDIR to a folder on a larger disk"),
        ],
        ranks,
    )


def check_batches(args: argparse.Namespace, model: nn.Module, count: int, ranks: runtime.Ranks) -> None:
    """Raise InputError if there are fewer images than ranks or than a batch, or a batch is too small for batch
    normalization.

    count: number of training images
    """
    if count < ranks.world_size:
        found = f"{count} training images for {ranks.world_size} ranks"
        raise bad_input("input data", found, "at least one for each rank", "use fewer ranks")
    batch_size = args.per_device_train_batch_size * ranks.full_world_size
    if args.dataloader_drop_last and count < batch_size:
        raise bad_input(
            "input dataloader_drop_last",
            f"{count} training images do not fill a batch of {batch_size} over {ranks.world_size} ranks",
            "at least one full batch",
            "leave dataloader_drop_last out, or use a smaller per_device_train_batch_size or fewer ranks",
        )
    last = 0 if args.dataloader_drop_last else count % batch_size
    shares = ranks.world_size * -(-ranks.full_world_size // ranks.world_size)  # of a batch, over ranks and passes
    smallest = max(1, (last or batch_size) // shares)
    if has_batch_norm(model) and smallest < 2 and not args.sync_batchnorm:
        where = "dataloader_drop_last" if args.per_device_train_batch_size > 1 else "per_device_train_batch_size"
        raise bad_input(
            f"input {where}",
            f"a batch of {smallest} on a rank, for a model with batch normalization",
            "at least 2 images",
            "set dataloader_drop_last, another per_device_train_batch_size, or a model without it (convnextv2, "
            "vit, swin)",
        )


def steps_when_resumed(
    args: argparse.Namespace, step: int, total: int, loader: runtime.DataLoader, ranks: runtime.Ranks
) -> int:
    """Return the number of optimizer steps of a training of epochs that resumes at a step, with a note if it is another
    one than `total`, because the number of ranks or the batch size has changed."""
    passes: int = loader.sampler.batches_left + (args.num_train_epochs - 1 - loader.epoch) * len(loader)
    resumed: int = step + max(0, passes) // args.gradient_accumulation_steps
    if resumed != total and ranks.is_main:
        runtime.note(f"the batches have another size than before: {resumed} steps in all instead of {total}")
    return resumed


def note_without_effect(args: argparse.Namespace, ranks: runtime.Ranks) -> None:
    """Note the inputs that have no effect on CPUs."""
    names = [name for name in ("tf32", "offload") if getattr(args, name)]
    if names and ranks.device.type == "cpu" and ranks.is_main:
        runtime.note(f"{' and '.join(names)}: no effect, because the ranks train on CPUs")
