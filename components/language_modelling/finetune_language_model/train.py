"""Fine-tune a causal language model with Transformers, PEFT and TRL, on the ranks that there are."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

import adapters
import torch
from datasets import Dataset
from peft import PeftModel
from trainers import preference, supervised
from transformers import PrinterCallback, Trainer, TrainingArguments

from allranks import runtime
from allranks.errors import InputError, Problem
from allranks.runtime.output_room import full_output_refused
from allranks_steps.finetuning import causal_model, progress, records, saving, tokens, trainer_settings
from allranks_steps.finetuning.base_model import ADAPTER, ModelFolder, check_fit, find, read_config, read_tokenizer

SERVED_BY = Path(__file__).parent / "served_language_model.py"

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def train(ranks: runtime.Ranks) -> None:
    args = trainer_settings.resolved(parser(), ranks)
    check(args, ranks)
    folder = find(args.base_model, "base_model")
    config = read_config(folder)
    causal_model.check_kind(folder, config)
    tokenizer = read_tokenizer(folder)
    check_fit(folder, config, tokenizer, args.max_seq_length)

    settings = trainer_settings.keywords(args, ranks)
    # Before the model is loaded: with ZeRO 3 its weights are then divided among the ranks as they are read.
    plain = TrainingArguments(**settings)
    trainer_settings.check_world(plain.world_size, ranks)
    examples, held_out = data(args, tokenizer, plain)
    model = load(folder, args, ranks)
    adapter = adapters.Adapter(args.lora_r, args.lora_alpha, args.lora_dropout, args.target_modules)
    if args.method != "full":
        adapters.check(adapter, model)

    watcher = progress.Progress(ranks, args.save_total_limit)
    common: dict[str, Any] = {
        "settings": settings,
        "max_length": args.max_seq_length,
        "peft_config": None if args.method == "full" else adapter.config(),
        "callbacks": [watcher],
    }
    if args.objective == "dpo":
        trainer = preference(model, tokenizer, examples, held_out, beta=args.beta, **common)
    else:
        trainer = supervised(model, tokenizer, examples, held_out, packing=args.packing, **common)
    trainer.remove_callback(PrinterCallback)
    if len(trainer.train_dataset) < (needed := trainer_settings.step_size(args, ranks)):
        what = "packed sequences" if args.packing else "examples"
        raise records.too_few(len(trainer.train_dataset), needed, what)
    about = describe(args, ranks, trainer)
    weights = about["parameters"] * DTYPES[saved_precision(args)].itemsize
    trainer_settings.check_room(args, weights, about["trained_parameters"], ranks)

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
        save(trainer, folder, tokenizer, args, ranks)


def check(args: argparse.Namespace, ranks: runtime.Ranks) -> None:
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


def data(args: argparse.Namespace, tokenizer: Any, settings: TrainingArguments) -> tuple[Dataset, Dataset | None]:
    """Return the examples to train on, and the held-out ones. Raise InputError."""
    own = records.read(args.data, "data")
    other: Dataset | None = None
    if args.validation_data is not None:
        other = records.read(args.validation_data, "validation_data")
    elif args.validation_fraction:
        own, other = records.split(own, args.validation_fraction, args.seed)
    parts = {"data": own} if other is None else {"data": own, "validation_data": other}
    tokens.set_chat_template(tokenizer, args.chat_template, needed=any(map(tokens.conversational, own.take(1))))
    result = {name: examples(part, name, args, tokenizer, settings) for name, part in parts.items()}
    return result["data"], result.get("validation_data")


def examples(
    part: Dataset, parameter: str, args: argparse.Namespace, tokenizer: Any, settings: TrainingArguments
) -> Dataset:
    """Return tokens for supervised fine-tuning, or records as TRL expects preferences. Raise InputError."""
    columns = tokens.columns_of(part.column_names)
    is_preference = columns == tokens.PREFERENCE
    if is_preference != (args.objective == "dpo"):
        expected = "chosen and rejected for dpo; messages, text, or prompt and completion for sft"
        found = f"the columns {', '.join(part.column_names)} in {parameter}"
        raise InputError(Problem("input objective", f"{args.objective}, and {found}", expected, "change one of both"))
    tokenizing = tokens.Tokenizing(tokenizer, args.max_seq_length, args.completion_only_loss)

    def checked(record: tokens.Record, number: int) -> tokens.Record:
        tokenizing.preference(record, number)  # TRL's own messages name no record
        return tokens.with_prompt(record)

    # One rank of the instance writes the result, and the others read it.
    with settings.main_process_first(local=True, desc=f"reading {parameter}"):
        if is_preference:
            return records.convert(part, checked, ("prompt", *columns))
        result = records.convert(part, tokenizing, ("input_ids", "labels")).filter(tokens.scored)
    if not len(result):
        found = f"{args.max_seq_length}, after which no token of any record in {parameter} is scored"
        raise InputError(Problem("input max_seq_length", found, "longer than the prompts", "make it larger"))
    return result


def load(folder: ModelFolder, args: argparse.Namespace, ranks: runtime.Ranks) -> Any:
    """Load the base model: in float32 if its own weights are trained, otherwise in the precision of the training."""
    dtype = torch.float32 if args.method == "full" else DTYPES[args.precision]
    options: dict[str, Any] = {}
    if args.method == "qlora":
        options["quantization_config"] = adapters.quantization(dtype)
    if args.strategy == "ddp" and ranks.device.type == "cuda":
        options["device_map"] = {"": ranks.device}
    return causal_model.load(folder, dtype, **options)


def describe(args: argparse.Namespace, ranks: runtime.Ranks, trainer: Trainer) -> dict[str, Any]:
    """Print and log what is trained, and return what a history says about its training."""
    trained, total = adapters.trained_share(trainer.model)
    per_step = trainer_settings.step_size(args, ranks)
    about = {
        "strategy": args.strategy,
        "deepspeed_stage": args.deepspeed_stage if args.strategy == "deepspeed" else None,
        "launcher": ranks.launcher,
        "world_size": ranks.world_size,
        "parameters": total,
        "trained_parameters": trained,
        "tokens_per_step": per_step * args.max_seq_length,
        "sample": "example",
        "samples_per_step": per_step,
    }
    ranks.metrics.log_params(about | {name: value for name, value in vars(args).items() if not isinstance(value, Path)})
    if ranks.is_main:
        share = f"{trained:,} of {total:,} weights ({trained / total:.2%})"
        print(f"{args.objective} trains {share} by {args.method} on {ranks.world_size} ranks", flush=True)
    return about


def saved_precision(args: argparse.Namespace) -> str:
    """Return the precision of the weights that are written. DeepSpeed writes those of a step, not its float32 copy."""
    return "float32" if args.method == "full" and args.strategy != "deepspeed" else str(args.precision)


def save(trainer: Trainer, folder: ModelFolder, tokenizer: Any, args: argparse.Namespace, ranks: runtime.Ranks) -> None:
    """Write the adapter and the MLflow model. A collective. No rank holds a second copy of weights on its device."""
    weights = saving.weights_folder(args.model)
    if args.method == "full":
        trainer.save_model(str(weights))
    else:
        trainer.save_model(str(args.adapter))
        (args.adapter / "training_args.bin").unlink(missing_ok=True)
        if ranks.is_main and args.merge:
            merged(trainer, folder, args).save_pretrained(weights)
        elif ranks.is_main:
            shutil.copytree(folder.weights, weights, dirs_exist_ok=True)
            shutil.copytree(args.adapter, weights / ADAPTER, dirs_exist_ok=True)
    if ranks.is_main:
        tokenizer.save_pretrained(weights)
        saving.write_mlflow_model(args.model, SERVED_BY, signature(), packages(args))
    ranks.barrier()


def merged(trainer: Trainer, folder: ModelFolder, args: argparse.Namespace) -> Any:
    """Return the base model with the adapter added to its weights. Called on rank 0 alone."""
    if args.method == "lora" and args.strategy == "ddp":
        return trainer.accelerator.unwrap_model(trainer.model, keep_torch_compile=False).merge_and_unload()
    # The weights in memory are shards, or have four bits: take the original ones, on the CPU.
    from transformers.integrations.deepspeed import unset_hf_deepspeed_config

    unset_hf_deepspeed_config()  # it would divide the weights among ranks that do not take part
    base = causal_model.load(folder, DTYPES[args.precision])
    return PeftModel.from_pretrained(base, args.adapter).merge_and_unload()


def signature() -> Any:
    """Return the signature of the served model."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema

    texts = Schema([ColSpec("string")])
    params = [
        ParamSpec("max_new_tokens", "long", 128),
        ParamSpec("temperature", "double", 0.0),
        ParamSpec("top_p", "double", 1.0),
        ParamSpec("seed", "long", 0),
        ParamSpec("chat", "boolean", True),
    ]
    return ModelSignature(inputs=texts, outputs=texts, params=ParamSchema(params))


def packages(args: argparse.Namespace) -> list[str]:
    """Return the packages that serving the model needs."""
    needed = ["torch", "transformers"]
    return needed if args.method == "full" or args.merge else [*needed, "peft"]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the inputs and outputs that component.yaml describes."""
    parser = argparse.ArgumentParser(description=__doc__)
    trainer_settings.add_arguments(parser)
    parser.add_argument("--chat_template", type=Path)
    parser.add_argument("--objective", choices=["sft", "dpo"], default="sft")
    parser.add_argument("--method", choices=["full", "lora", "qlora"], default="lora")
    parser.add_argument("--lora_r", type=int, default=8)
    parser.add_argument("--lora_alpha", type=float, default=16.0)
    parser.add_argument("--lora_dropout", type=float, default=0.0)
    parser.add_argument("--target_modules", default=adapters.ALL_LINEAR)
    parser.add_argument("--merge", type=trainer_settings.boolean, default=True)
    parser.add_argument("--packing", type=trainer_settings.boolean, default=False)
    parser.add_argument("--completion_only_loss", type=trainer_settings.boolean, default=True)
    parser.add_argument("--beta", type=float, default=0.1)
    parser.add_argument("--adapter", type=Path, required=True)
    return parser


if __name__ == "__main__":
    runtime.main(train)
