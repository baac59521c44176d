"""Fine-tune a causal language model with Transformers, PEFT and TRL, on all ranks."""

import shutil
from argparse import Namespace
from typing import Any

import adapters
import torch
from datasets import Dataset
from peft import PeftModel
from trainers import create_trainer
from transformers import PrinterCallback, Trainer, TrainingArguments

from allranks import runtime
from allranks.errors import InputError, Problem
from allranks.runtime.output_room import full_output_refused
from allranks_steps.finetuning import records, tokens, trainer_settings, training
from allranks_steps.finetuning.progress import Progress
from allranks_steps.history import describe
from allranks_steps.messages import bad_input
from allranks_steps.text import model_folder
from allranks_steps.text.mlflow_model import GENERATION, LANGUAGE_MODEL, write_mlflow_model
from allranks_steps.text.model_folder import ADAPTER, WITHIN, ModelFolder
from allranks_steps.text.scoring import Record


def train(ranks: runtime.Ranks) -> None:
    args = trainer_settings.resolved(ranks)
    check(args, ranks)
    folder, tokenizer = model_folder.open_causal(args.base_model, "base_model", args.max_seq_length)

    settings = trainer_settings.keywords(args, ranks)
    # Before the model is loaded: with ZeRO 3 its weights are then divided among the ranks as they are read.
    plain = TrainingArguments(**settings)
    trainer_settings.check_world(plain.world_size, ranks)
    train_dataset, eval_dataset = data(args, tokenizer, plain)
    model = load(folder, args, ranks)
    if args.method != "full":
        adapters.check(args.target_modules, model)

    samples = trainer_settings.step_size(args, ranks)
    progress = Progress(ranks, args.save_total_limit, "example", samples)
    kind, config = create_trainer(args, settings)
    trainer = kind(
        model,
        args=config,
        train_dataset=train_dataset,
        eval_dataset=eval_dataset,
        processing_class=tokenizer,
        peft_config=None if args.method == "full" else adapters.config(args),
        callbacks=[progress],
    )
    trainer.remove_callback(PrinterCallback)
    if len(trainer.train_dataset) < samples:
        what = "packed sequences" if args.packing else "examples"
        raise records.too_few(len(trainer.train_dataset), samples, what)
    trained, total = adapters.trained_share(trainer.model)
    about = describe(args, ranks, "example", parameters=total, trained_parameters=trained, samples_per_step=samples)
    if ranks.is_main:
        share = f"{trained:,} of {total:,} weights ({trained / total:.2%})"
        print(f"{args.objective} trains {share} by {args.method} on {ranks.world_size} ranks", flush=True)
    weights = total * getattr(torch, saved_precision(args)).itemsize
    trainer_settings.check_room(args, weights, trained, ranks)
    training.run(trainer, progress, args, ranks, about)
    with full_output_refused("output model", args.model):
        save(trainer, folder, tokenizer, args, ranks)


def check(args: Namespace, ranks: runtime.Ranks) -> None:
    """Raise InputError if inputs that are valid by themselves do not fit together, or this machine."""
    problems = trainer_settings.problems(args, ranks)
    if args.method == "qlora":
        problems += adapters.check_quantization(ranks, args.strategy)
    if args.objective == "dpo" and args.packing:
        fix = "set packing to false, or objective to sft"
        problems.append(Problem("input packing", "true, with objective dpo", "false: pairs are not packed", fix))
    if args.method == "qlora" and args.precision == "float32":
        fix = "set precision to bfloat16, or to float16 on older GPUs"
        problems.append(Problem("input precision", "float32, with method qlora", "what is computed in", fix))
    if problems:
        raise InputError.of(problems)


def data(args: Namespace, tokenizer: Any, settings: TrainingArguments) -> tuple[Dataset, Dataset | None]:
    """Return the examples to train on, and the held-out ones. Raise InputError."""
    parts = records.with_held_out(records.read(args.data, "data"), args)
    needed = any(map(tokens.conversational, parts["data"].take(1)))
    tokens.set_chat_template(tokenizer, args.chat_template, needed=needed)
    result = {name: examples(part, name, args, tokenizer, settings) for name, part in parts.items()}
    return result["data"], result.get("validation_data")


def examples(part: Dataset, parameter: str, args: Namespace, tokenizer: Any, settings: TrainingArguments) -> Dataset:
    """Return tokens for supervised fine-tuning, or records as TRL expects preferences. Raise InputError."""
    columns = tokens.example_columns(part.column_names)
    is_preference = columns == tokens.PREFERENCE
    if is_preference != (args.objective == "dpo"):
        expected = "chosen and rejected for dpo; messages, text, or prompt and completion for sft"
        found = f"the columns {', '.join(part.column_names)} in {parameter}"
        raise bad_input("input objective", f"{args.objective}, and {found}", expected, "change one of both")
    tokenizing = tokens.Tokenizing(tokenizer, args.max_seq_length, args.completion_only_loss)

    def checked(record: Record, number: int) -> Record:
        tokenizing.preference(record, number)  # TRL's own messages name no record
        return tokens.with_prompt(record)

    # One rank of the instance writes the result, and the others read it.
    with settings.main_process_first(local=True, desc=f"reading {parameter}"):
        if is_preference:
            return records.convert(part, checked, ("prompt", *columns))
        result = records.convert(part, tokenizing, ("input_ids", "labels")).filter(tokens.scored)
    if not len(result):
        found = f"{args.max_seq_length}, after which no token of any record in {parameter} is scored"
        raise bad_input("input max_seq_length", found, "longer than the prompts", "make it larger")
    return result


def load(folder: ModelFolder, args: Namespace, ranks: runtime.Ranks) -> Any:
    """Load the base model: in float32 if its own weights are trained, otherwise in the precision of the training."""
    dtype = torch.float32 if args.method == "full" else getattr(torch, args.precision)
    options: dict[str, Any] = {}
    if args.method == "qlora":
        options["quantization_config"] = adapters.quantization(dtype)
    if args.strategy == "ddp" and ranks.device.type == "cuda":
        options["device_map"] = {"": ranks.device}
    return model_folder.load_causal(folder, dtype, **options)


def saved_precision(args: Namespace) -> str:
    """Return the precision of the weights that are written. DeepSpeed writes the weights of the forward pass, not its
    float32 copy."""
    return "float32" if args.method == "full" and args.strategy != "deepspeed" else str(args.precision)


def save(trainer: Trainer, folder: ModelFolder, tokenizer: Any, args: Namespace, ranks: runtime.Ranks) -> None:
    """Write the adapter and the MLflow model. A collective."""
    weights = args.model / WITHIN
    if args.method == "full":
        training.save_weights(trainer, weights)
    else:
        training.save_weights(trainer, args.adapter)
        if ranks.is_main and args.merge:
            merged(trainer, folder, args).save_pretrained(weights)
        elif ranks.is_main:
            shutil.copytree(folder.weights, weights, dirs_exist_ok=True)
            shutil.copytree(args.adapter, weights / ADAPTER, dirs_exist_ok=True)
    if ranks.is_main:
        tokenizer.save_pretrained(weights)
        packages = ["torch", "transformers", *([] if args.method == "full" or args.merge else ["peft"])]
        write_mlflow_model(args.model, LANGUAGE_MODEL, packages, GENERATION)
    ranks.barrier()


def merged(trainer: Trainer, folder: ModelFolder, args: Namespace) -> Any:
    """Return the base model with the adapter added to its weights. Called on rank 0 only."""
    if args.method == "lora" and args.strategy == "ddp":
        return trainer.accelerator.unwrap_model(trainer.model, keep_torch_compile=False).merge_and_unload()
    # The weights in memory are shards, or have four bits. The original ones are merged on the CPU.
    from transformers.integrations.deepspeed import unset_hf_deepspeed_config

    unset_hf_deepspeed_config()  # it would divide the weights among ranks that do not take part
    base = model_folder.load_causal(folder, getattr(torch, args.precision))
    return PeftModel.from_pretrained(base, args.adapter).merge_and_unload()


if __name__ == "__main__":
    runtime.main(train)
