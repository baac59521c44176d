"""TRL's trainers, with the exact evaluation of this project."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

from allranks_steps.finetuning.progress import EvaluationEnded
from allranks_steps.finetuning.scoring import score, summarize
from allranks_steps.finetuning.tokens import Record


class ExactSFTTrainer(SFTTrainer):
    """Evaluates each held-out token once. The Trainer's own evaluation averages the losses of batches, and repeats
    examples if they do not fill a batch on every rank."""

    def _send_telemetry(self) -> None:
        """Do not tell TRL's developers about the training, as TRL does by default."""

    def evaluate(
        self,
        eval_dataset: Sequence[Record] | None = None,
        ignore_keys: list[str] | None = None,  # noqa: ARG002
        metric_key_prefix: str = "eval",
    ) -> dict[str, float]:
        """Return loss, perplexity and accuracy of the tokens, each with the prefix; {} after an eviction."""
        examples = self.eval_dataset if eval_dataset is None else eval_dataset
        try:
            with self.accelerator.autocast():
                table = score(self.model, examples, self.args.per_device_eval_batch_size, self.args.device, self._poll)
        except EvaluationEnded:
            return {}
        scores = summarize(table)
        metrics = {f"{metric_key_prefix}_{name}": scores[name] for name in ("loss", "perplexity", "accuracy")}
        self.log(dict(metrics))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _poll(self) -> None:
        self.callback_handler.on_prediction_step(self.args, self.state, self.control)


class WholeDPOTrainer(DPOTrainer):
    """Evaluates all held-out pairs. The Trainer leaves out the last ones in evaluation, too, if it does so in training.

    Where they do not fill a batch on every rank, a few are counted twice: evaluate_finetuned_language_model is exact.
    """

    def _send_telemetry(self) -> None:
        """Do not tell TRL's developers about the training, as TRL does by default."""

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Return what TRL returns: loss, rewards, their margins and their accuracy, each with the prefix; {} after an
        eviction."""
        self.args.dataloader_drop_last = False
        try:
            return dict(super().evaluate(*args, **kwargs))
        except EvaluationEnded:
            return {}
        finally:
            self.args.dataloader_drop_last = True


def supervised(
    model: Any, tokenizer: Any, train: Dataset, held_out: Dataset | None, *, packing: bool, **options: Any
) -> ExactSFTTrainer:
    """Return a trainer for examples of input_ids and labels.

    packing: whether several examples share a sequence of max_length tokens, none of which attends to another
    options: callbacks, peft_config, max_length, and the keyword arguments of TrainingArguments as settings
    """
    settings = SFTConfig(
        **options.pop("settings"),
        max_length=options.pop("max_length"),
        packing=packing,
        eval_packing=False,
        # Nothing is left to do without packing: the examples are tokens already.
        dataset_kwargs={"skip_prepare_dataset": not packing},
    )
    return ExactSFTTrainer(
        model, settings, train_dataset=train, eval_dataset=held_out, processing_class=tokenizer, **options
    )


def preference(
    model: Any, tokenizer: Any, train: Dataset, held_out: Dataset | None, *, beta: float, **options: Any
) -> WholeDPOTrainer:
    """Return a trainer by direct preference optimization (Rafailov et al. 2023, arXiv:2305.18290).

    beta: how much a departure from the base model costs

    The base model is the adapter switched off. Without an adapter, its log-probabilities are computed before the first
    step, so that no second model is in memory.
    """
    settings = DPOConfig(
        **options.pop("settings"),
        max_length=options.pop("max_length"),
        beta=beta,
        precompute_ref_log_probs=options.get("peft_config") is None,
    )
    return WholeDPOTrainer(
        model, args=settings, train_dataset=train, eval_dataset=held_out, processing_class=tokenizer, **options
    )
