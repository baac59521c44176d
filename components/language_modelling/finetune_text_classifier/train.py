"""Fine-tune a model to classify texts or pairs of texts, or to predict a number, on all ranks."""

from argparse import Namespace
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import DataCollatorWithPadding, PrinterCallback, TrainingArguments, set_seed

from allranks import runtime
from allranks.errors import InputError
from allranks.runtime.output_room import full_output_refused
from allranks_steps.finetuning import classified_texts, classifier, records, trainer_settings, training
from allranks_steps.finetuning.classified_texts import Columns
from allranks_steps.finetuning.classifier import metrics, predict
from allranks_steps.finetuning.progress import Progress
from allranks_steps.history import describe
from allranks_steps.text.mlflow_model import write_mlflow_model
from allranks_steps.text.model_folder import WITHIN, open_model


class ExactTrainer(training.ExactTrainer):
    """Evaluates each held-out text once, by the figures of `classifier.metrics`."""

    def figures(self, examples: Any) -> dict[str, float]:
        size, tokenizer = self.args.per_device_eval_batch_size, self.processing_class
        table = predict(self.model, examples, size, tokenizer, self.args.device, self.poll)
        return metrics(table, examples["labels"], regression=self.model.config.num_labels == 1)


def train(ranks: runtime.Ranks) -> None:
    args = trainer_settings.resolved(ranks)
    if problems := trainer_settings.problems(args, ranks):
        raise InputError.of(problems)
    folder, _, tokenizer = open_model(args.base_model, "base_model", args.max_seq_length)
    tokenizer.model_max_length = args.max_seq_length  # also when the model is served

    # Before the model is loaded: with ZeRO 3 its weights are then divided among the ranks as they are read.
    settings = TrainingArguments(**trainer_settings.keywords(args, ranks))
    trainer_settings.check_world(settings.world_size, ranks)
    names, examples, held_out = data(args, tokenizer, settings)
    samples = trainer_settings.step_size(args, ranks)
    if len(examples) < samples:
        raise records.too_few(len(examples), samples, "texts")
    set_seed(args.seed)  # of the new layer
    model = classifier.load(folder, tokenizer.pad_token_id, **head(names))

    progress = Progress(ranks, args.save_total_limit, "text", samples)
    trainer = ExactTrainer(
        model,
        settings,
        data_collator=DataCollatorWithPadding(tokenizer),
        train_dataset=examples,
        eval_dataset=held_out,
        processing_class=tokenizer,
        callbacks=[progress],
    )
    trainer.remove_callback(PrinterCallback)
    parameters = model.num_parameters()
    about = describe(args, ranks, "text", parameters=parameters, samples_per_step=samples)
    if ranks.is_main:
        learned = "a number" if names is None else f"{len(names)} labels"
        print(f"{parameters:,} weights on {ranks.world_size} ranks, {learned}", flush=True)
    trainer_settings.check_room(args, trainer_settings.FLOAT32_BYTES * parameters, parameters, ranks)
    training.run(trainer, progress, args, ranks, about)

    with full_output_refused("output model", args.model):
        training.save_weights(trainer, args.model / WITHIN)
        if ranks.is_main:
            served_by = Path(__file__).with_name("served_text_classifier.py")
            write_mlflow_model(args.model, served_by, ("torch", "transformers"))
    ranks.barrier()


def data(
    args: Namespace, tokenizer: Any, settings: TrainingArguments
) -> tuple[list[str] | None, Dataset, Dataset | None]:
    """Return the labels' names (None for numbers), the examples to train on, the held-out ones. Raise InputError."""
    columns = Columns(args.text_column, args.text_pair_column, args.label_column)
    own = records.read(args.data, "data")
    classified_texts.check(own, columns, "data")
    names = classified_texts.label_names(own, columns) if args.problem_type == "classification" else None
    parts = records.with_held_out(own, args)
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


if __name__ == "__main__":
    runtime.main(train)
