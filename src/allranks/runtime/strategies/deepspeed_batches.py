"""The batch sizes of a training under DeepSpeed, of which each follows from the others."""

from __future__ import annotations

from allranks.runtime.strategies.deepspeed_file import DeepSpeedFile


def batches(file: DeepSpeedFile, steps: int | None, batch_size: int | None, world_size: int) -> tuple[int, int | None]:
    """Return the backward passes per step, and the samples of a rank in each of them; None if they are not known.

    steps, batch_size: the same as settings, which the file must agree with; None: the file's

    Raise InputError for a number that cannot be, and if the file contradicts a setting or the number of ranks.
    """
    for key in ("gradient_accumulation_steps", "train_micro_batch_size_per_gpu", "train_batch_size"):
        number = file.content.get(key)
        if number not in (None, "auto") and (type(number) is not int or number < 1):
            raise file.error(key, repr(number), 'a whole number, at least 1, or "auto"')
    key = "gradient_accumulation_steps"
    steps = file.agree(key, steps, key, file.content.get(key))
    key = "train_micro_batch_size_per_gpu"
    batch_size = file.agree("per_device_train_batch_size", batch_size, key, file.content.get(key))
    total = file.content.get("train_batch_size")
    if total is None or total == "auto":
        return steps or 1, batch_size
    if steps is None:
        steps = total // (batch_size * world_size) if batch_size else 1
    if batch_size is None:
        batch_size = total // (steps * world_size)
    if batch_size * steps * world_size != total or not total:
        raise file.error(
            "train_batch_size",
            f"{total}, on {world_size} ranks",
            f"train_micro_batch_size_per_gpu {batch_size} x gradient_accumulation_steps {steps} x {world_size} ranks",
            'set train_batch_size to "auto", or change the number of ranks',
        )
    return steps, batch_size
