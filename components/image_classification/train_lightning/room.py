"""Disk space for the outputs of a training."""

import argparse
from pathlib import Path
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback

from allranks.runtime.output_room import full_output_refused, outputs_of_training, require_room

COPIES = 3
"""Numbers that a checkpoint has for each weight: the weight and AdamW's two moments."""


class RoomCheck(Callback):  # type: ignore[misc]  # its types are not read
    """Raises InputError on every rank, before the first step, if there is no room for the outputs."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args

    def on_fit_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        weights = sum(value.numel() * value.element_size() for value in module.state_dict().values())
        keep = self._args.save_total_limit
        # last.ckpt counts as the best checkpoint does in other trainings: it is one more than those to keep.
        contents = outputs_of_training(
            self._args.model, weights, self._args.checkpoints, COPIES * weights, keep, best=True
        )
        require_room(contents, _Ranks(trainer))


class _Ranks:
    """Lightning's ranks, as require_room calls them."""

    def __init__(self, trainer: lightning.Trainer) -> None:
        self.is_main, self._strategy = trainer.is_global_zero, trainer.strategy

    def broadcast(self, value: Any) -> Any:
        return self._strategy.broadcast(value)


class Trainer(lightning.Trainer):  # type: ignore[misc]  # its types are not read
    """Lightning's Trainer, which names the output if a disk is full."""

    def save_checkpoint(self, filepath: Any, *arguments: Any, **options: Any) -> None:
        with full_output_refused("output checkpoints", Path(filepath).parent):
            super().save_checkpoint(filepath, *arguments, **options)
