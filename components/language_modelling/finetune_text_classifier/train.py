"""Fine-tune a model to classify texts or pairs of texts, or to predict a number, on the ranks that there are."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import DataCollatorWithPadding, PrinterCallback, Trainer, TrainingArguments, set_seed

from allranks import runtime
from allranks.errors import InputError
from allranks.runtime.output_room import full_output_refused
from allranks_steps.finetuning import classified_texts, classifier, progress, records, saving, trainer_settings
from allranks_steps.finetuning.base_model import check_fit, find, read_config, read_tokenizer
from allranks_steps.finetuning.classified_texts import Columns
from allranks_steps.finetuning.classifier_scores import metrics, predict

SERVED_BY = Path(__file__).parent / "served_text_classifier.py"


class ExactTrainer(Trainer):
    """Evaluates each held-out text once. The Trainer's own evaluation averages the losses of batches."""

    def evaluate(
        self,
        eval_dataset: Dataset | None = None,
        ignore_keys: list[str] | None = None,  # noqa: ARG002
        metric_key_prefix: str = "eval",
    ) -> dict[str, float]:
        """Return the figures of `classifier_scores.metrics`, each with the prefix; {} after an eviction."""
        examples = self.eval_dataset if eval_dataset is None else eval_dataset
        size, tokenizer = self.args.per_device_eval_batch_size, self.processing_class
        try:
            with self.accelerator.autocast():
                table = predict(self.model, examples, size, tokenizer, self.args.device, self._poll)
        except progress.EvaluationEnded:
            return {}
        found = metrics(table, examples["labels"], regression=self.model.config.num_labels == 1)
        result = {f"{metric_key_prefix}_{name}": value for name, value in found.items() if name != "count"}
        self.log(dict(result))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, result)
        return result

    def _poll(self) -> None:
        self.callback_handler.on_prediction_step(self.args, self.state, self.control)


def train(ranks: runtime.Ranks) -> None:
    args = trainer_settings.resolved(parser(), ranks)
    if problems := trainer_settings.problems(args, ranks):
        raise InputError.of(problems)
    folder = find(args.base_model, "base_model")
    config = read_config(folder)
    tokenizer = read_tokenizer(folder)
    check_fit(folder, config, tokenizer, args.max_seq_length)
    tokenizer.model_max_length = args.max_seq_length  # also when the model is served

    # Before the model is loaded: with ZeRO 3 its weights are then divided among the ranks as they are read.
    settings = TrainingArguments(**trainer_settings.keywords(args, ranks))
    trainer_settings.check_world(settings.world_size, ranks)
    names, examples, held_out = data(args, tokenizer, settings)
    if len(examples) < (needed := trainer_settings.step_size(args, ranks)):
        raise records.too_few(len(examples), needed, "texts")
    set_seed(args.seed)  # of the new layer
    model = classifier.load(folder, tokenizer.pad_token_id, **head(names))

    watcher = progress.Progress(ranks, args.save_total_limit)
    trainer = ExactTrainer(
        model,
        settings,
        data_collator=DataCollatorWithPadding(tokenizer),
        train_dataset=examples,
        eval_dataset=held_out,
        processing_class=tokenizer,
        callbacks=[watcher],
    )
    trainer.remove_callback(PrinterCallback)
    about = describe(args, ranks, model, names)
    parameters = about["parameters"]
    trainer_settings.check_room(args, trainer_settings.FLOAT32_BYTES * parameters, parameters, ranks)
    resumed = progress.resume_from(args.checkpoints, args.resume_from_checkpoint, ranks)
    trainer_settings.run(trainer, resumed)
    if watcher.evicted:
        raise runtime.Evicted
    if held_out is not None:
        evaluation = progress.last_evaluation(trainer)
        if watcher.evicted:
            raise runtime.Evicted
        progress.print_evaluation(evaluation, ranks)
    progress.write_history(args.history, trainer, watcher, ranks, about)

    with full_output_refused("output model", args.model):
        trainer.save_model(str(saving.weights_folder(args.model)))
        if ranks.is_main:
            saving.write_mlflow_model(args.model, SERVED_BY, None, ["torch", "transformers"])
    ranks.barrier()


def data(
    args: argparse.Namespace, tokenizer: Any, settings: TrainingArguments
) -> tuple[list[str] | None, Dataset, Dataset | None]:
    """Return the labels' names (None for numbers), the examples to train on, the held-out ones. Raise InputError."""
    columns = Columns(args.text_column, args.text_pair_column, args.label_column)
    own = records.read(args.data, "data")
    classified_texts.check(own, columns, "data")
    names = classified_texts.label_names(own, columns) if args.problem_type == "classification" else None
    parts = {"data": own}
    if args.validation_data is not None:
        parts["validation_data"] = records.read(args.validation_data, "validation_data")
        classified_texts.check(parts["validation_data"], columns, "validation_data")
    elif args.validation_fraction:
        parts["data"], parts["validation_data"] = records.split(own, args.validation_fraction, args.seed)
    # One rank of the instance writes the tokens, and the others read them.
    with settings.main_process_first(local=True, desc="tokenizing"):
        found = {
            name: classified_texts.tokenize(part, columns, tokenizer, args.max_seq_length, names, name)
            for name, part in parts.items()
        }
    return names, found["data"], found.get("validation_data")


def head(names: list[str] | None) -> dict[str, Any]:
    """Return the configuration of the layer for the labels, which the model's config.json keeps."""
    if names is None:
        return {"num_labels": 1, "problem_type": "regression"}
    return {
        "num_labels": len(names),
        "problem_type": "single_label_classification",
        "id2label": dict(enumerate(names)),
        "label2id": {name: number for number, name in enumerate(names)},
    }


def describe(args: argparse.Namespace, ranks: runtime.Ranks, model: Any, names: list[str] | None) -> dict[str, Any]:
    """Print and log what is trained, and return what a history says about its training."""
    per_step = trainer_settings.step_size(args, ranks)
    about = {
        "strategy": args.strategy,
        "deepspeed_stage": args.deepspeed_stage if args.strategy == "deepspeed" else None,
        "launcher": ranks.launcher,
        "world_size": ranks.world_size,
        "parameters": model.num_parameters(),
        "tokens_per_step": per_step * args.max_seq_length,
        "sample": "text",
        "samples_per_step": per_step,
    }
    ranks.metrics.log_params(about | {name: value for name, value in vars(args).items() if not isinstance(value, Path)})
    if ranks.is_main:
        learned = "a number" if names is None else f"{len(names)} labels"
        print(f"{about['parameters']:,} weights on {ranks.world_size} ranks, {learned}", flush=True)
    return about


def parser() -> argparse.ArgumentParser:
    """Return the parser of the inputs and outputs that component.yaml describes."""
    parser = argparse.ArgumentParser(description=__doc__)
    trainer_settings.add_arguments(parser)
    parser.add_argument("--text_column", default="text")
    parser.add_argument("--text_pair_column", default="")
    parser.add_argument("--label_column", default="label")
    parser.add_argument("--problem_type", choices=["classification", "regression"], default="classification")
    return parser


if __name__ == "__main__":
    runtime.main(train)
