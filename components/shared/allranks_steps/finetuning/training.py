"""Train by Transformers' Trainer, from the settings to the outputs. Every fine-tuning uses it."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import Trainer

from allranks import runtime
from allranks_steps.finetuning.progress import EvaluationEnded, Progress, resume_from
from allranks_steps.messages import bad_input
from allranks_steps.text.scoring import Record


class ExactTrainer(Trainer):  # type: ignore[misc]  # Transformers is untyped here
    """Evaluates each held-out example once. The Trainer's own evaluation averages the losses of batches, and repeats
    examples if they do not fill a batch on every rank."""

    def figures(self, examples: Sequence[Record]) -> dict[str, float]:
        """Return the figures, the same on every rank. A collective. Implementations must call `poll` after each
        batch."""
        raise NotImplementedError

    def evaluate(
        self,
        eval_dataset: Sequence[Record] | None = None,
        ignore_keys: list[str] | None = None,  # noqa: ARG002
        metric_key_prefix: str = "eval",
    ) -> dict[str, float]:
        """Return the figures, each with the prefix; {} after an eviction."""
        try:
            with self.accelerator.autocast():
                found = self.figures(self.eval_dataset if eval_dataset is None else eval_dataset)
        except EvaluationEnded:
            return {}
        metrics = {f"{metric_key_prefix}_{name}": value for name, value in found.items() if name != "count"}
        self.log(dict(metrics))
        self.control: Any = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def poll(self) -> None:
        """Raise EvaluationEnded on every rank if one is evicted."""
        self.callback_handler.on_prediction_step(self.args, self.state, self.control)


def run(trainer: Trainer, progress: Progress, args: Namespace, ranks: runtime.Ranks, about: dict[str, Any]) -> None:
    """Train, from the newest checkpoint if there is one, evaluate, and write the history. A collective.

    about: further content of the history

    Raise Evicted if the training was evicted. Raise InputError if there is no checkpoint to resume from, or if
    DeepSpeed's file contradicts other inputs, which Transformers detects.
    """
    resumed = resume_from(args.checkpoints, args.resume_from_checkpoint, ranks)
    try:
        trainer.train(resume_from_checkpoint=resumed)
    except ValueError as error:
        if "DeepSpeed config" not in str(error):
            raise
        found = " ".join(str(error).split())
        raise bad_input("input deepspeed", found, "the same values", 'write "auto" in the file') from error
    progress.end_if_evicted()
    if trainer.eval_dataset is not None:
        metrics = _last_evaluation(trainer)
        progress.end_if_evicted()
        if ranks.is_main:
            names = [
                name for name in metrics if name.startswith("eval_") and not name.endswith(("_runtime", "_per_second"))
            ]
            print("held out: " + ", ".join(f"{name.removeprefix('eval_')} {metrics[name]:.4f}" for name in names))
    measured_on = runtime.measured_on(ranks)
    if ranks.is_main:
        progress.history.write(args.history, about | measured_on)


def save_weights(trainer: Trainer, folder: Path) -> None:
    """Write the trained weights, or the adapter. A collective. No rank holds a second copy of weights on its device."""
    trainer.save_model(str(folder))
    (folder / "training_args.bin").unlink(missing_ok=True)


def _last_evaluation(trainer: Trainer) -> dict[str, float]:
    """Evaluate the trained model on its held-out examples, unless the Trainer did so after the last step."""
    for logs in trainer.state.log_history:
        if logs["step"] == trainer.state.global_step and "eval_loss" in logs:
            return dict(logs)
    return dict(trainer.evaluate())
