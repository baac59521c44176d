"""What a training by Transformers' Trainer reports, and how it survives an eviction."""

from __future__ import annotations

import json
import resource
import shutil
import time
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from transformers import TrainerCallback

from allranks import runtime
from allranks.errors import InputError, Problem
from allranks.runtime.eviction import Eviction

COMPLETE = "complete.json"
"""The file that makes a checkpoint's folder one from which a training can resume."""

_PREFIX = "checkpoint-"


class EvaluationEnded(Exception):
    """Ends an evaluation on every rank, because a rank is evicted. The Trainer then saves."""


class Progress(TrainerCallback):
    """Log what the Trainer logs, mark complete checkpoints, and end an evicted training.

    keep: number of checkpoints to keep

    Must be constructed on the main thread. From then on, SIGTERM does not end the process: the Trainer saves at the
    next step, on every rank, and returns from `train`. Then `evicted` is True. After each batch of an evaluation,
    `on_prediction_step` must be called: it raises EvaluationEnded, and the Trainer's `evaluate` must return.
    """

    def __init__(self, ranks: runtime.Ranks, keep: int) -> None:
        self.evicted = False
        self.started = time.time()
        self._ranks, self._keep = ranks, keep
        self._eviction = Eviction()
        self._logged_at, self._logged_step = time.perf_counter(), 0

    def on_train_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        self._logged_at, self._logged_step = time.perf_counter(), state.global_step

    def on_step_end(self, _args: Any, _state: Any, control: Any, **_: Any) -> None:
        # Trainer's own handler of SIGTERM saves on the rank that received it alone, which then waits for the others.
        if self._ranks.any_rank(self._eviction.requested):
            self.evicted = control.should_save = control.should_training_stop = True
            control.should_evaluate = False  # it comes before the save

    def on_prediction_step(self, _args: Any, _state: Any, control: Any, **_: Any) -> None:
        if self._ranks.any_rank(self._eviction.requested):
            self.evicted = control.should_save = control.should_training_stop = True
            raise EvaluationEnded

    def on_log(self, _args: Any, state: Any, _control: Any, logs: dict[str, float], **_: Any) -> None:
        if "loss" in logs:
            now, steps = time.perf_counter(), max(1, state.global_step - self._logged_step)
            logs |= {"step_seconds": (now - self._logged_at) / steps, "peak_memory_mib": peak_memory(self._ranks)}
            self._logged_at, self._logged_step = now, state.global_step
            # The Trainer's state is saved with every checkpoint, so a resumed training's history is complete.
            state.log_history[-1].update(logs)
        values = {_name(key): value for key, value in logs.items() if _is_logged(key)}
        if values:
            self._ranks.metrics.log(values, step=state.global_step, total=state.max_steps, epoch=int(state.epoch or 0))
        if self._ranks.is_main and "loss" in logs:
            print(f"step {state.global_step} of {state.max_steps}: loss {logs['loss']:.4f}", flush=True)

    def on_save(self, args: Any, state: Any, _control: Any, **_: Any) -> None:
        self._ranks.barrier()  # every rank has written its part
        if self._ranks.is_main:
            folder = Path(args.output_dir)
            about = {"step": state.global_step, "world_size": self._ranks.world_size}
            (folder / f"{_PREFIX}{state.global_step}" / COMPLETE).write_text(json.dumps(about), encoding="utf-8")
            for old in checkpoints(folder)[self._keep :]:
                shutil.rmtree(old)
        self._ranks.barrier()


def checkpoints(folder: Path) -> list[Path]:
    """Return the complete checkpoints of a folder, the newest first."""
    found = [file.parent for file in folder.glob(f"{_PREFIX}*/{COMPLETE}")]
    return sorted(found, key=lambda path: int(path.name.removeprefix(_PREFIX)), reverse=True)


def resume_from(own: Path, given: Path | None, ranks: runtime.Ranks) -> str | None:
    """Return the newest complete checkpoint: of this training, or of the given folder; None without one.

    An incomplete one of this training is removed. Raise InputError if the given folder has none.
    """
    found: list[str | None] = [None]
    if ranks.is_main:
        existing = checkpoints(own) or (checkpoints(given) if given is not None else [])
        for leftover in own.glob(f"{_PREFIX}*"):
            if not (leftover / COMPLETE).is_file():
                shutil.rmtree(leftover)
        found = [str(existing[0]) if existing else None]
    distributed.broadcast_object_list(found, src=0)
    if found[0] is None and given is not None:
        expected = "the output `checkpoints` of this component"
        raise InputError(Problem("input resume_from_checkpoint", f"no checkpoint in {given}", expected, "give it"))
    if found[0] is not None and ranks.is_main:
        runtime.note(f"resuming from {found[0]}")
    return found[0]


def write_history(file: Path, trainer: Any, progress: Progress, ranks: runtime.Ranks, about: dict[str, Any]) -> None:
    """Write the logged points, and what is known about the training, as JSON. A collective."""
    points = [
        {
            "step": logs["step"],
            "loss": logs["loss"],
            "seconds": logs["step_seconds"],
            "peak_memory": logs["peak_memory_mib"],
        }
        for logs in trainer.state.log_history
        if "step_seconds" in logs
    ]
    measured = runtime.measured_on(ranks) | {"started": progress.started, "ended": time.time()}
    if ranks.is_main:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(about | measured | {"points": points}, indent=2) + "\n", encoding="utf-8")


def last_evaluation(trainer: Any) -> dict[str, float]:
    """Evaluate the trained model on its held-out examples, unless the Trainer did so after the last step."""
    for logs in trainer.state.log_history:
        if logs["step"] == trainer.state.global_step and "eval_loss" in logs:
            return dict(logs)
    return dict(trainer.evaluate())


def print_evaluation(metrics: dict[str, float], ranks: runtime.Ranks) -> None:
    """Print the figures of an evaluation on rank 0. The Trainer has logged them."""
    if ranks.is_main:
        names = [
            name for name in metrics if name.startswith("eval_") and not name.endswith(("_runtime", "_per_second"))
        ]
        print("held out: " + ", ".join(f"{name.removeprefix('eval_')} {metrics[name]:.4f}" for name in names))


def peak_memory(ranks: runtime.Ranks) -> float:
    """Return the highest rank's peak memory in MiB: allocated on its GPU, or of its CPU process. A collective."""
    if ranks.device.type == "cuda":
        own = torch.cuda.max_memory_allocated(ranks.device) / 2**20
    else:
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    most = torch.tensor(own)
    distributed.all_reduce(most, distributed.ReduceOp.MAX)
    return most.item()


def _name(key: str) -> str:
    return {"learning_rate": key, "step_seconds": key, "peak_memory_mib": key, "grad_norm": "gradient_norm"}.get(
        key, key if key.startswith("eval_") else f"train_{key}"
    )


def _is_logged(key: str) -> bool:
    # The Trainer's own summary at the end, and what is the step's number in other units.
    return not key.startswith(("train_", "total_")) and key not in ("epoch", "num_tokens", "eval_num_tokens")
