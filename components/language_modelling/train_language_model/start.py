"""Resolve the inputs of a training, and create its model."""

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import presets
from safetensors import SafetensorError
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from transformers import LlamaConfig

from allranks import runtime
from allranks.errors import InputError, Problem
from allranks_steps.deepspeed_inputs import resolve_deepspeed_file
from allranks_steps.messages import bad_input
from allranks_steps.text import model_folder
from allranks_steps.text.llama import Llama
from allranks_steps.text.prepared_text import Description

DEFAULTS = {
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "max_grad_norm": 1.0,
    "precision": "auto",
}
"""Defaults of inputs without a default in the component, because DeepSpeed's file may set them."""


def config(args: Namespace, data: Description, tokenizer: Tokenizer) -> LlamaConfig:
    """Return the configuration of the model to train. Raise InputError.

    data, tokenizer: of the prepared text
    """
    if args.initial_model is None:
        return presets.config(args, data.vocabulary_size, data.end)
    folder = model_folder.find(args.initial_model, "initial_model")
    found, own = model_folder.read_config(folder), model_folder.read_tokenizer(folder)
    if found.model_type != "llama":
        fix = "give a model of the type llama"
        raise bad_input("input initial_model", f"the model_type is {found.model_type}", "llama", fix)
    problems = [
        Problem(
            f"input {name}",
            f"{getattr(args, name)}, and {getattr(found, key)} in initial_model",
            "the dimensions of the initial model",
            f"omit {name}",
        )
        for name, key in presets.KEYS.items()
        if getattr(args, name) not in (None, getattr(found, key))
    ]
    if found.vocab_size != data.vocabulary_size or own.get_vocab() != tokenizer.get_vocab():
        problems.append(
            Problem(
                "input initial_model",
                f"{found.vocab_size} tokens; the data has another tokenizer, with {data.vocabulary_size}",
                "text that was prepared with the model's tokenizer",
                "give prepare_text the model's tokenizer.json as its tokenizer",
            )
        )
    if problems:
        raise InputError.of(problems)
    return found


def build(config: LlamaConfig, initial_model: Path | None) -> Callable[[], Llama]:
    """Return a function that builds the model, with the weights of the initial model if there is one.

    Raise InputError if they cannot be read.
    """
    if initial_model is None:
        return lambda: Llama(config)
    folder = model_folder.find(initial_model, "initial_model").weights
    weights: dict[str, Tensor] = {}
    try:
        for file in sorted(folder.glob("*.safetensors")):
            weights |= load_file(file)  # mapped, so that the ranks of an instance share its pages
        if config.tie_word_embeddings:
            weights = {"lm_head.weight": weights["model.embed_tokens.weight"], **weights}
    except (OSError, SafetensorError, KeyError) as error:
        raise _unusable(f"the weights in {folder} are damaged: {error}") from None

    def built() -> Llama:
        model = Llama(config)
        try:
            model.load_state_dict(weights)
        except RuntimeError as error:
            raise _unusable(" ".join(str(error).split())[:300]) from None
        return model

    return built


def _unusable(found: str) -> InputError:
    return bad_input("input initial_model", found, "the output `model` of a training", "train it again")


def resolved(args: Namespace, world_size: int) -> Namespace:
    """Return the inputs with the values of DeepSpeed's file, and with defaults for missing inputs.

    Raise InputError.
    """
    args = resolve_deepspeed_file(args, runtime.argument_defaults().get, world_size)
    defaults = DEFAULTS | {"learning_rate": presets.PRESETS[args.model_size].learning_rate}
    if args.strategy == "deepspeed":
        defaults["deepspeed_stage"] = 2
    missing = {name: value for name, value in defaults.items() if getattr(args, name) is None}
    return Namespace(**{**vars(args), **missing})


def check_resumed(step: int, total: int, max_steps: int) -> None:
    """Raise InputError if the training resumes after its last step. max_steps: the input"""
    if step > total:
        where = "input max_steps" if max_steps > 0 else "input num_train_epochs"
        found = f"{total} steps, and the checkpoint to resume from has {step}"
        raise bad_input(where, found, f"at least {step} steps", "train longer, or start without checkpoints")
