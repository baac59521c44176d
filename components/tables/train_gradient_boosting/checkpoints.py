"""Checkpoints of a boosting: the trees, and the progress of the training."""

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allranks.runtime.output_room import full_output_refused
from allranks_steps.history import History
from allranks_steps.messages import bad_input

_NAME = re.compile(r"iteration_(\d+)\.json")


@dataclass
class Progress:
    """The progress of a training.

    iteration:      number of iterations so far
    best:           the best value of the metric, after best_iteration; None before the first evaluation
    """

    iteration: int = 0
    best: float | None = None
    best_iteration: int = 0
    history: History = field(default_factory=lambda: History("row"))


class Checkpoints:
    """One file for each checkpoint, which rank 0 writes. A file is renamed to its name when it is complete.

    keep: number of checkpoints to keep, the newest ones; 0 keeps all
    """

    def __init__(self, folder: Path, keep: int) -> None:
        self._folder, self._keep = folder, keep

    def save(self, model: str, progress: Progress) -> None:
        """Write a checkpoint, and remove old ones. Raise InputError if the disk is full.

        model: LightGBM's text
        """
        with full_output_refused("output checkpoints", self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            file = self._folder / f"iteration_{progress.iteration:09d}.json"
            partial = self._folder / f".{file.name}.partial"
            history = progress.history.state_dict()
            with partial.open("w", encoding="utf-8") as writer:
                json.dump({"progress": vars(progress) | {"history": history}, "model": model}, writer)
                writer.flush()
                os.fsync(writer.fileno())
            partial.replace(file)
        if self._keep:
            for old in _checkpoints(self._folder)[: -self._keep]:
                old.unlink()

    def load(self, start_from: Path | None) -> tuple[str, Progress] | None:
        """Return model and progress of the newest checkpoint; without any, of the newest in `start_from`."""
        own = _checkpoints(self._folder)
        if own:
            return _read(own[-1])
        if start_from is None:
            return None
        others = _checkpoints(start_from)
        if not others:
            found = f"{start_from} holds no checkpoint"
            raise bad_input(
                "input resume_from_checkpoint", found, "the output `checkpoints` of train_gradient_boosting"
            )
        return _read(others[-1])


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("iteration_*.json") if _NAME.fullmatch(file.name))


def _read(file: Path) -> tuple[str, Progress]:
    try:
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        progress = Progress(**content["progress"] | {"history": History("row")})
        progress.history.load_state_dict(content["progress"]["history"])
        return content["model"], progress
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise bad_input(f"checkpoint {file}", f"it is damaged ({error!r})", fix="remove the file") from None
