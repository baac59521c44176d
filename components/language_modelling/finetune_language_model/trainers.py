"""TRL's trainers, with evaluations of all held-out examples."""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

from allranks_steps.finetuning.progress import EvaluationEnded
from allranks_steps.finetuning.training import ExactTrainer
from allranks_steps.text.scoring import Record, score, summarize


class ExactSFTTrainer(ExactTrainer, SFTTrainer):  # type: ignore[misc]  # TRL is untyped here
    """Trains on examples of input_ids and labels. Evaluates each held-out token once."""

    def _send_telemetry(self) -> None:
        """Disable the telemetry that TRL sends by default."""

    def figures(self, examples: Sequence[Record]) -> dict[str, float]:
        return summarize(score(self.model, examples, self.args.per_device_eval_batch_size, self.args.device, self.poll))


class WholeDPOTrainer(DPOTrainer):  # type: ignore[misc]  # TRL is untyped here
    """Trains by direct preference optimization (Rafailov et al. 2023, arXiv:2305.18290). Evaluates all held-out pairs.
    The Trainer itself drops the last pairs in evaluation, too, if it does so in training.

    If they do not fill a batch on every rank, a few are counted twice. evaluate_finetuned_language_model is exact.
    """

    def _send_telemetry(self) -> None:
        """Disable the telemetry that TRL sends by default."""

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


def create_trainer(args: Namespace, settings: dict[str, Any]) -> tuple[type[ExactSFTTrainer | WholeDPOTrainer], Any]:
    """Return the class of the trainer, and its arguments.

    settings: keyword arguments of TrainingArguments
    """
    if args.objective == "sft":
        config = SFTConfig(
            **settings,
            max_length=args.max_seq_length,
            packing=args.packing,
            eval_packing=False,
            # Nothing is left to do without packing: the examples are tokens already.
            dataset_kwargs={"skip_prepare_dataset": not args.packing},
        )
        return ExactSFTTrainer, config
    config = DPOConfig(
        **settings,
        max_length=args.max_seq_length,
        beta=args.beta,
        # The base model is the adapter switched off. Without an adapter, its log-probabilities are computed before the
        # first step, so that no second model is in memory.
        precompute_ref_log_probs=args.method == "full",
    )
    return WholeDPOTrainer, config
