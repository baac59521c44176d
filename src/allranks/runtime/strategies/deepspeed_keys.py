"""Keys of DeepSpeed's configuration: https://www.deepspeed.ai/docs/config-json/ and deepspeed.runtime.config."""

from __future__ import annotations

from difflib import get_close_matches
from types import NoneType
from typing import Any

from allranks.errors import InputError, Problem
from allranks.runtime.strategies.deepspeed_file import DeepSpeedFile

RESOLVED = frozenset(
    {
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "gradient_accumulation_steps",
        "gradient_clipping",
        "optimizer",
        "scheduler",
        "fp16",
        "bf16",
        "torch_autocast",
        "zero_optimization",
    }
)
"""Keys that must agree with the training's settings."""

PASSED_ON = frozenset(
    {
        "communication_data_type",
        "prescale_gradients",
        "gradient_predivide_factor",
        "gradient_allreduce_op",
        "disable_allgather",
        "managed_gradient_accumulation",
        "disable_python_gc",
        "zero_allow_untested_optimizer",
        "zero_force_ds_cpu_optimizer",
        "steps_per_print",
        "wall_clock_breakdown",
        "memory_breakdown",
        "dump_state",
        "log_level",
        "timers",
        "flops_profiler",
        "comms_logger",
        "tensorboard",
        "wandb",
        "csv_monitor",
        "comet",
        "aio",
    }
)
"""Keys that DeepSpeed's engine reads by itself."""

_LOADER = "the training loop has its own loader"
_CHECKPOINTS = "runtime.Checkpoints saves the training"
_REMOVED = "DeepSpeed has removed it"
_MODEL = "a model must be written for it"
REFUSED = {
    "activation_checkpointing": "it configures DeepSpeed's own function, which models must call: use the setting"
    " activation_checkpointing",
    "amp": _REMOVED + ": use bf16, fp16 or torch_autocast",
    "autotuning": "DeepSpeed's launcher starts the trials: use the component autotune_deepspeed",
    "checkpoint": _CHECKPOINTS,
    "compile": "it configures engine.compile, which is not called: use the setting compile",
    "compression_training": _REMOVED,
    "curriculum_learning": _LOADER,
    "data_efficiency": _LOADER,
    "data_types": "it selects optimizers whose state the checkpoints do not have",
    "dataloader_drop_last": _LOADER,
    "datastates": _CHECKPOINTS,
    "eigenvalue": _REMOVED,
    "elasticity": _REMOVED,
    "expert_parallel": _MODEL,
    "graph_harvesting": _REMOVED,
    "hybrid_engine": "it is for models that generate text while they train",
    "nebula": _CHECKPOINTS,
    "pipeline": _MODEL,
    "progressive_layer_drop": _REMOVED,
    "quantize_training": _REMOVED,
    "seq_parallel_communication_data_type": _MODEL,
    "sequence_parallel_size": _MODEL,
    "sparse_attention": _REMOVED,
    "sparse_gradients": _REMOVED,
    "tensor_parallel": _MODEL,
    "use_data_before_expert_parallelism": _MODEL,
    "use_node_local_storage": _CHECKPOINTS,
    "weight_quantization": "it is for inference",
}
"""Keys that would have no effect in a training loop, or a wrong one, with the reason."""

_SHARDS = "the checkpoints do not have shards of this kind"
REFUSED_ZERO = {
    "zenflow": _SHARDS,
    "zero_hpz_partition_size": _SHARDS,
    "zero_quantized_weights": _SHARDS,
    "zero_quantized_nontrainable_weights": _SHARDS,
    "zero_quantized_gradients": _SHARDS,
}
"""The same for keys of zero_optimization."""


def reject(file: DeepSpeedFile) -> None:
    """Raise InputError for keys of the file that DeepSpeed does not have, or that a training cannot honour."""
    problems = []
    for key, value in file.content.items():
        if key in REFUSED and _enabled(value) and not _of_a_trial(key, value):
            problems.append(_refused(file, key, REFUSED[key]))
        elif key not in RESOLVED | PASSED_ON | REFUSED.keys():
            close = get_close_matches(key, RESOLVED | PASSED_ON, 1)
            fix = f"use {close[0]}" if close else "leave it out"
            problems.append(Problem(f"{file.path}, key {key}", "not a key of DeepSpeed's", "a known key", fix))
    if file.content.get("managed_gradient_accumulation") is False:
        reason = "the training counts the backward passes of a step"
        problems.append(_refused(file, "managed_gradient_accumulation", reason, found="false"))
    zero = file.section("zero_optimization")
    for key, reason in REFUSED_ZERO.items():
        if _enabled(zero.get(key)) and not (key == "zero_hpz_partition_size" and zero[key] == 1):
            problems.append(_refused(file, f"zero_optimization.{key}", reason))
    for key in ("offload_optimizer", "offload_param"):
        section = zero.get(key)
        if not isinstance(section, (dict, NoneType)):
            raise file.error(f"zero_optimization.{key}", repr(section), "an object", f'write {{"device": {section!r}}}')
        device = (section or {}).get("device")
        if device not in (None, "cpu", "none", "auto"):
            problems.append(_refused(file, f"zero_optimization.{key}.device", _SHARDS, found=str(device)))
    if problems:
        raise InputError.of(problems)


def passed_on(file: DeepSpeedFile) -> dict[str, Any]:
    """Return the keys and values that DeepSpeed's engine reads by itself."""
    return {key: value for key, value in file.content.items() if key in PASSED_ON or _of_a_trial(key, value)}


def _of_a_trial(key: str, value: Any) -> bool:
    """Whether DeepSpeed's autotuner has written a key: the engine measures some steps and ends the process."""
    return key == "autotuning" and isinstance(value, dict) and bool({"metric_path", "model_info_path"} & value.keys())


def _enabled(value: Any) -> bool:
    """Whether a key has an effect: a section without `enabled` does."""
    if isinstance(value, dict):
        return value.get("enabled", True) not in (None, False, "auto")
    return value not in (None, False, "auto")


def _refused(file: DeepSpeedFile, key: str, reason: str, found: str = "set") -> Problem:
    return Problem(f"{file.path}, key {key}", found, f"a file without it: {reason}", "leave it out")
