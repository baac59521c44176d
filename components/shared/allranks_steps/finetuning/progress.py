"""Report the progress of Transformers' Trainer, and save a training that is evicted."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import distributed
from transformers import TrainerCallback

from allranks import runtime
from allranks.runtime.clean_exit import Eviction
from allranks_steps.history import History, peak_memory
from allranks_steps.messages import bad_input

COMPLETE = "complete.json"
"""File that marks a checkpoint as complete."""

_PREFIX = "checkpoint-"


class EvaluationEnded(Exception):
    """Raised on every rank to end an evaluation if a rank is evicted. The Trainer then saves."""


class Progress(TrainerCallback):  # type: ignore[misc]  # Transformers is untyped here
    """Log the Trainer's metrics, mark complete checkpoints, and end an evicted training.

    keep:    number of checkpoints to keep
    sample:  name of one sample
    samples: number of samples in a step, over all ranks

    Must be constructed on the main thread. From then on, SIGTERM does not end the process: the Trainer saves at the
    next step, on every rank, and returns from `train`. Then `end_if_evicted` raises. After each batch of an evaluation,
    `on_prediction_step` must be called: it raises EvaluationEnded, and the Trainer's `evaluate` must return.
    """

    def __init__(self, ranks: runtime.Ranks, keep: int, sample: str, samples: int) -> None:
        self.history = History(sample)
        self._evicted = False
        self._ranks, self._keep, self._samples = ranks, keep, samples
        self._eviction = Eviction()

    def end_if_evicted(self) -> None:
        """Raise Evicted if the training was evicted."""
        if self._evicted:
            raise runtime.Evicted

    def on_train_begin(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
        logged = state.log_history
        points = [logs["point"] for logs in logged if "point" in logs]
        evaluations = [{"step": logs["step"], "loss": logs["eval_loss"]} for logs in logged if "eval_loss" in logs]
        self.history.load_state_dict({"points": points, "evaluations": evaluations})
        self.history.restart()

    def on_step_end(self, _args: Any, _state: Any, control: Any, **_: Any) -> None:
        self.history.count(self._samples)
        # The Trainer's own handler of SIGTERM saves only on the rank that received it, which then waits for the others.
        if self._ranks.any_rank(self._eviction.requested):
            self._evicted = control.should_save = control.should_training_stop = True
            control.should_evaluate = False  # it comes before the save

    def on_prediction_step(self, _args: Any, _state: Any, control: Any, **_: Any) -> None:
        if self._ranks.any_rank(self._eviction.requested):
            self._evicted = control.should_save = control.should_training_stop = True
            raise EvaluationEnded

    def on_log(self, _args: Any, state: Any, _control: Any, logs: dict[str, float], **_: Any) -> None:
        if "eval_loss" in logs:
            self.history.add_evaluation(state.global_step, logs["eval_loss"])
        if "loss" in logs:
            peak = float(self._ranks.reduce(peak_memory(self._ranks.device), "max"))
            point = self.history.add(state.global_step, logs["loss"], peak)
            logs |= {"step_seconds": point.seconds, "peak_memory_mib": peak}
            # The Trainer's state is saved with every checkpoint, so a resumed training's history is complete.
            state.log_history[-1]["point"] = asdict(point)
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


def resume_from(folder: Path, start_from: Path | None, ranks: runtime.Ranks) -> str | None:
    """Return the newest complete checkpoint of this training, otherwise of `start_from`; None if there is none.

    Remove incomplete checkpoints of this training. Raise InputError if `start_from` has no checkpoint.
    """
    found: list[str | None] = [None]
    if ranks.is_main:
        existing = checkpoints(folder) or (checkpoints(start_from) if start_from is not None else [])
        for leftover in folder.glob(f"{_PREFIX}*"):
            if not (leftover / COMPLETE).is_file():
                shutil.rmtree(leftover)
        found = [str(existing[0]) if existing else None]
    distributed.broadcast_object_list(found, src=0)
    if found[0] is None and start_from is not None:
        expected = "the output `checkpoints` of this component"
        raise bad_input("input resume_from_checkpoint", f"no checkpoint in {start_from}", expected, "give it")
    if found[0] is not None and ranks.is_main:
        runtime.note(f"resuming from {found[0]}")
    return found[0]


def _name(key: str) -> str:
    return {"learning_rate": key, "step_seconds": key, "peak_memory_mib": key, "grad_norm": "gradient_norm"}.get(
        key, key if key.startswith("eval_") else f"train_{key}"
    )


def _is_logged(key: str) -> bool:
    # Left out: the Trainer's own summary at the end, and values that follow from the step.
    return not key.startswith(("train_", "total_")) and key not in ("epoch", "num_tokens", "eval_num_tokens")
