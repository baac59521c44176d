"""The settings of Transformers' Trainer for the inputs that every fine-tuning has."""

from argparse import Namespace
from typing import Any

import torch

from allranks import runtime
from allranks.contract import world
from allranks.errors import Problem
from allranks.runtime.output_room import outputs_of_training, require_room
from allranks.runtime.strategies import deepspeed_config, deepspeed_file
from allranks.runtime.strategies.deepspeed_config import SCHEDULE_PARAMETERS
from allranks_steps.deepspeed_inputs import resolve_deepspeed_file
from allranks_steps.messages import bad_input

FLOAT32_BYTES = 4
CHECKPOINT_VALUES = 3
"""Values in a checkpoint for each trained weight: the weight and Adam's two moments, in float32."""

_GATHER = "stage3_gather_16bit_weights_on_model_save"


def resolved(ranks: runtime.Ranks) -> Namespace:
    """Return the inputs with the values of DeepSpeed's file, and the resolved precision. Raise InputError."""
    args = resolve_deepspeed_file(runtime.arguments(), runtime.argument_defaults().get, ranks.world_size)
    if args.precision == "auto":
        file = deepspeed_file.read(args.deepspeed, "input deepspeed")
        stage = args.deepspeed_stage if args.strategy == "deepspeed" else None
        args.precision = deepspeed_config.automatic_for_deepspeed(file, stage, ranks.device)
    return args


def problems(args: Namespace, ranks: runtime.Ranks) -> list[Problem]:
    """Return the problems of inputs that this machine, or another input, does not allow."""
    found = []
    on_cpu = ranks.device.type == "cpu"
    if args.strategy != "ddp" and on_cpu:
        # Accelerate 1.15 trains by DistributedDataParallel instead, and reports nothing.
        expected = "ddp, the only strategy of Transformers' Trainer on CPUs"
        found.append(Problem("input strategy", f"{args.strategy} without GPUs", expected, "choose a size with GPUs"))
    if args.precision == "float16" and on_cpu:
        fix = "choose float32 or bfloat16"
        found.append(Problem("input precision", "float16 without GPUs", "a precision that CPUs have", fix))
    if args.precision == "bfloat16" and not on_cpu and not torch.cuda.is_bf16_supported(including_emulation=False):
        name = torch.cuda.get_device_name(ranks.device)
        found.append(Problem("input precision", f"bfloat16 on {name}", "a GPU that has it", "choose float16"))
    if args.max_steps == 0:
        fix = "leave it out to train by num_train_epochs"
        found.append(Problem("input max_steps", "0", "a positive number, or -1", fix))
    if ranks.device.type == "cuda" and ranks.device.index != ranks.local_rank:
        fix = "use a size with a GPU for each rank, or hide the GPUs"
        found.append(Problem("GPUs", "several ranks on one GPU", "a GPU for each rank", fix))
    if args.validation_data is not None and args.validation_fraction:
        fix = "set validation_fraction to 0, or leave validation_data out"
        found.append(Problem("input validation_fraction", "a held-out file as well", "one of both", fix))
    return found


def keywords(args: Namespace, ranks: runtime.Ranks) -> dict[str, Any]:
    """Return the keyword arguments of TrainingArguments. Raise InputError for a DeepSpeed file that cannot be used."""
    return {
        "output_dir": str(args.checkpoints),
        "num_train_epochs": args.num_train_epochs,
        "max_steps": args.max_steps,
        "per_device_train_batch_size": args.per_device_train_batch_size,
        "per_device_eval_batch_size": args.per_device_eval_batch_size,
        "gradient_accumulation_steps": args.gradient_accumulation_steps,
        "learning_rate": args.learning_rate,
        "lr_scheduler_type": args.lr_scheduler_type,
        "warmup_steps": args.warmup_steps,
        "weight_decay": args.weight_decay,
        "max_grad_norm": args.max_grad_norm,
        "bf16": args.precision == "bfloat16",
        "fp16": args.precision == "float16",
        "torch_compile": args.compile,
        "activation_checkpointing": args.activation_checkpointing and args.strategy != "fsdp",
        "use_cpu": ranks.device.type == "cpu",
        "fsdp": True if args.strategy == "fsdp" else None,
        "fsdp_config": _fsdp(args) if args.strategy == "fsdp" else None,
        "deepspeed": _deepspeed(args) if args.strategy == "deepspeed" else None,
        "ddp_find_unused_parameters": False,
        # The last examples of an epoch that do not fill a step are left out: padding would repeat others.
        "dataloader_drop_last": True,
        "dataloader_num_workers": args.dataloader_num_workers,
        "dataloader_persistent_workers": args.dataloader_num_workers > 0,
        "dataloader_pin_memory": ranks.device.type == "cuda",
        "logging_steps": args.logging_steps,
        "logging_first_step": True,
        "eval_strategy": "steps" if args.eval_steps and _has_validation(args) else "no",
        "eval_steps": args.eval_steps or None,
        "save_strategy": "steps",
        "save_steps": args.save_steps,
        # The callback removes old checkpoints, once a new one is known to be complete.
        "save_total_limit": None,
        "seed": args.seed,
        "disable_tqdm": True,
        "report_to": [],
        **(_adam(args) if args.strategy == "deepspeed" else {}),
    }


def check_world(world_size: int, ranks: runtime.Ranks) -> None:
    """Raise InputError if the Trainer would not train on all ranks together, or with the full batch."""
    world.require_all(runtime.detect())
    if world_size != ranks.world_size:
        raise bad_input(
            f"rank {ranks.rank} of {ranks.world_size} (launcher {ranks.launcher})",
            f"Transformers would train {'alone' if world_size == 1 else f'on {world_size} ranks'}",
            f"one training on {ranks.world_size} ranks",
            "leave ACCELERATE_USE_CPU to allranks, or set it to true where there are no GPUs",
        )


def check_room(args: Namespace, weights: int, trained: int, ranks: runtime.Ranks) -> None:
    """Raise InputError if the outputs have no room for the model and its checkpoints. A collective.

    weights: bytes of the weights of the model that is written
    trained: number of weights that are trained
    """
    checkpoint = CHECKPOINT_VALUES * FLOAT32_BYTES * trained
    require_room(outputs_of_training(args.model, weights, args.checkpoints, checkpoint, args.save_total_limit), ranks)


def step_size(args: Namespace, ranks: runtime.Ranks) -> int:
    """Return the number of examples of one step over all ranks."""
    return int(args.per_device_train_batch_size * args.gradient_accumulation_steps * ranks.world_size)


def _has_validation(args: Namespace) -> bool:
    return args.validation_data is not None or args.validation_fraction > 0


def _fsdp(args: Namespace) -> dict[str, Any]:
    return {
        "version": 2,
        "reshard_after_forward": True,
        "cpu_offload": args.offload,
        "activation_checkpointing": args.activation_checkpointing,
        "state_dict_type": "FULL_STATE_DICT",
    }


def _deepspeed(args: Namespace) -> dict[str, Any]:
    """Return DeepSpeed's configuration. Keys that are not in the file are "auto": the values of TrainingArguments.

    Raise InputError.
    """
    file = deepspeed_file.read(args.deepspeed, "input deepspeed")
    zero = file.section("zero_optimization") | {"stage": args.deepspeed_stage}
    if args.deepspeed_stage == 3 and not zero.setdefault(_GATHER, True):
        expected = "true, or the weights could not be written as one model"
        raise file.error(f"zero_optimization.{_GATHER}", "false", expected, "set it to true, or leave it out")
    if file.section("torch_autocast").get("enabled") is True:
        raise file.error("torch_autocast", "enabled", "bf16 or fp16, which Transformers' Trainer has", "use bf16")
    if args.offload:
        for key in ("offload_optimizer", "offload_param")[: 2 if args.deepspeed_stage == 3 else 1]:
            zero[key] = {"pin_memory": True} | deepspeed_config.offloaded(file, key)
    automatic = {
        "bf16": {"enabled": "auto"},
        "fp16": {"enabled": "auto"},
        "gradient_clipping": "auto",
        "gradient_accumulation_steps": "auto",
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
    }
    sections: dict[str, Any] = {}
    if optimizer := file.section("optimizer"):
        sections["optimizer"] = optimizer | {"params": {"lr": "auto"} | (optimizer.get("params") or {})}
    if scheduler := file.section("scheduler"):
        missing = dict.fromkeys(SCHEDULE_PARAMETERS.get(scheduler.get("type", ""), ()), "auto")
        sections["scheduler"] = scheduler | {"params": missing | (scheduler.get("params") or {})}
    return automatic | dict(file.content) | sections | {"zero_optimization": zero}


def _adam(args: Namespace) -> dict[str, Any]:
    """Return Adam's settings in DeepSpeed's file that are not inputs, as keyword arguments of TrainingArguments."""
    optimizer = deepspeed_file.read(args.deepspeed, "input deepspeed").section("optimizer")
    params = optimizer.get("params") or {}
    found: dict[str, Any] = {}
    if isinstance(betas := params.get("betas"), list) and len(betas) == 2:
        found |= {"adam_beta1": betas[0], "adam_beta2": betas[1]}
    if isinstance(epsilon := params.get("eps"), (int, float)):
        found["adam_epsilon"] = epsilon
    return found
