"""Low-rank adapters: configuration, quantization, and the number of trained weights."""

import importlib.util
from argparse import Namespace
from typing import Any

import torch
from peft import LoraConfig
from torch import nn
from transformers import BitsAndBytesConfig
from transformers.pytorch_utils import Conv1D

from allranks import runtime
from allranks.errors import Problem
from allranks_steps.messages import bad_input

ALL_LINEAR = "all-linear"


def config(args: Namespace) -> LoraConfig:
    """Return PEFT's configuration of LoRA (Hu et al. 2021, arXiv:2106.09685)."""
    names = _names(args.target_modules)
    return LoraConfig(
        r=args.lora_r,
        lora_alpha=args.lora_alpha,
        lora_dropout=args.lora_dropout,
        target_modules=ALL_LINEAR if names == [ALL_LINEAR] else names,
        task_type="CAUSAL_LM",
    )


def check(target_modules: str, model: Any) -> None:
    """Raise InputError if the model has no linear layer of a given name. target_modules: the input"""
    # GPT-2 has the other kind.
    layers = {name for name, module in model.named_modules() if isinstance(module, (nn.Linear, Conv1D))}
    names = [name for name in _names(target_modules) if name != ALL_LINEAR]
    unknown = [name for name in names if not any(f".{layer}".endswith(f".{name}") for layer in layers)]
    if unknown:
        found = f"{', '.join(unknown)}, which this model does not have"
        known = ", ".join(sorted({layer.rpartition(".")[2] for layer in layers}))
        expected = f"{ALL_LINEAR}, or names among {known}"
        raise bad_input("input target_modules", found, expected, "correct the names")


def quantization(dtype: torch.dtype) -> BitsAndBytesConfig:
    """Return the configuration of QLoRA (Dettmers et al. 2023, arXiv:2305.14314): NF4, quantized twice."""
    return BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=dtype
    )


def check_quantization(ranks: runtime.Ranks, strategy: str) -> list[Problem]:
    """Return the problem if QLoRA cannot run here."""
    missing = []
    if ranks.device.type != "cuda":
        missing.append("a GPU for each rank")
    if importlib.util.find_spec("bitsandbytes") is None:
        missing.append("the package bitsandbytes")
    if strategy == "fsdp":
        missing.append("strategy ddp or deepspeed")
    if not missing:
        return []
    fix = "set method to lora, or choose a size and an environment with both"
    return [Problem("input method", "qlora", f"qlora needs {' and '.join(missing)}", fix)]


def trained_share(model: nn.Module) -> tuple[int, int]:
    """Return the number of trained weights, and of all weights, also if they are sharded."""
    # ZeRO 3 leaves an empty tensor in place of a parameter, with the real size beside it.
    sizes = [(getattr(weights, "ds_numel", weights.numel()), weights.requires_grad) for weights in model.parameters()]
    return sum(size for size, trained in sizes if trained), sum(size for size, _ in sizes)


def _names(target_modules: str) -> list[str]:
    return [name.strip() for name in target_modules.split(",")]
