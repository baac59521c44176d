"""Train an image classifier with Lightning, which starts the processes of each instance, or under any other launch."""

from __future__ import annotations

import argparse
import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from place import STARTED, Place, find

from allranks.runtime import arguments, clean_exit, detect, prepare_libraries, stage
from allranks_steps.images.prepared_images import read_checked
from allranks_steps.messages import bad_input, first_line
from checks import PRECISIONS, check_device, steps

if TYPE_CHECKING:
    import lightning
    from recorder import Recorder

TIMEOUT = timedelta(minutes=10)
"""Time limit for waiting on the other ranks."""


def train(args: argparse.Namespace, place: Place) -> None:
    # Imported here, since Lightning reads the launch's variables on import.
    import lightning
    import torch
    from data import PreparedImages
    from lightning.pytorch.plugins.environments import LightningEnvironment
    from module import ImageClassification
    from recorder import Checkpointing, Recorder
    from room import RoomCheck, Trainer

    from allranks.runtime.strategies.preparation import automatic_precision
    from allranks_steps.images.classifier import Architecture, blocks
    from allranks_steps.images.presets import configuration, network_size
    from allranks_steps.images.saving import save
    from allranks_steps.schedule import Schedule

    # Now, since Lightning removes the launch's variables at the end of the training.
    launcher = "lightning" if place.per_node else detect().launcher
    on_gpu = torch.cuda.device_count() >= place.devices
    if args.precision == "auto":
        args.precision = automatic_precision(torch.device("cuda" if on_gpu else "cpu"))
    check_device(args, on_gpu=on_gpu)
    description, (images, validation) = read_checked(stage(args.data), "train", "validation")
    world_size = place.instance_count * place.devices
    in_epoch, total = steps(args, len(images), world_size)
    channels, height, width = description.shape
    size = network_size(args.preset, args.image_size, (height, width))
    config = configuration(args.preset, size, channels, description.classes)
    architecture = Architecture(config, size, (height, width), description.mean, description.std)

    lightning.seed_everything(args.seed, verbose=False)
    classifier = architecture.build()
    warmup_steps = args.warmup_steps or round(args.warmup_ratio * total)
    schedule = Schedule(args.lr_scheduler_type, total, warmup_steps)
    module = ImageClassification(classifier, len(description.classes), args, schedule)
    samples = args.per_device_train_batch_size * world_size * args.gradient_accumulation_steps
    recorder = Recorder(args.logging_steps, samples)
    trainer = Trainer(
        accelerator="gpu" if on_gpu else "cpu",
        devices=place.devices,
        num_nodes=place.instance_count,
        strategy=strategy(args.strategy, blocks(classifier), on_gpu=on_gpu),
        # Otherwise Lightning would use mpirun's variables, and a rendezvous hostname that may not resolve.
        plugins=[LightningEnvironment()],
        precision=PRECISIONS[args.precision],
        max_epochs=-(-total // in_epoch),
        max_steps=total,
        accumulate_grad_batches=args.gradient_accumulation_steps,
        gradient_clip_val=args.max_grad_norm or None,
        callbacks=[RoomCheck(args), recorder, Checkpointing(args.checkpoints, args.save_steps, args.save_total_limit)],
        use_distributed_sampler=False,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    prepared = PreparedImages(
        images, validation, args, rank=trainer.global_rank, world_size=world_size, pin_memory=on_gpu
    )
    start = last(args.checkpoints, args.resume_from_checkpoint)
    if start is not None:
        check_fits(start, module)
    if args.compile:
        module.compile()
    fit(trainer, module, prepared, recorder, args.checkpoints, start)
    if "validation_accuracy" not in trainer.callback_metrics:  # all steps were done before this attempt
        trainer.validate(module, prepared, verbose=False)
    weights = trainer.strategy.lightning_module_state_dict()
    if trainer.is_global_zero:
        trained = architecture.build()
        prefix = "classifier."
        trained.load_state_dict(
            {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
        )
        # As train_image_classifier writes it, which takes such a model as its initial_model.
        save(trained, args.model, architecture, channels=channels, classes=description.classes, preset=args.preset)
        recorder.write(
            args.history,
            strategy=f"Lightning {args.strategy}",
            launcher=launcher,
            world_size=world_size,
            instance_count=place.instance_count,
            device="cuda" if on_gpu else "cpu",
            parameters=sum(parameter.numel() for parameter in trained.parameters()),
            samples_per_step=samples,
        )
        accuracy = float(trainer.callback_metrics["validation_accuracy"])
        instances = f"{place.instance_count} instance{'s' * (place.instance_count != 1)}"
        print(f"{world_size} ranks on {instances}: validation accuracy {accuracy:.4f}", flush=True)
    trainer.strategy.barrier()
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def fit(
    trainer: lightning.Trainer, module: Any, prepared: Any, recorder: Recorder, checkpoints: Path, start: Path | None
) -> None:
    """Train, from the checkpoint `start` if there is one. Raise Evicted after a checkpoint."""
    from allranks.runtime import EVICTED

    code = 1
    try:
        trainer.fit(module, prepared, ckpt_path=start)
        code = 0
    except SystemExit as ended:
        if ended.code == EVICTED:
            code = EVICTED
            trainer.save_checkpoint(checkpoints / "last.ckpt")
            trainer.strategy.barrier()
        raise
    finally:
        recorder.close(code)


def strategy(name: str, block_classes: tuple[type, ...], *, on_gpu: bool) -> Any:
    """Return Lightning's strategy."""
    from lightning.pytorch.strategies import DDPStrategy, FSDPStrategy

    if name == "fsdp":
        return FSDPStrategy(auto_wrap_policy=set(block_classes), state_dict_type="full", timeout=TIMEOUT)
    return DDPStrategy(process_group_backend="nccl" if on_gpu else "gloo", timeout=TIMEOUT)


def last(folder: Path, start_from: Path | None) -> Path | None:
    """Return the last checkpoint of an evicted training, else of another one; None without any."""
    for place in (folder, start_from):
        if place is not None and (place / "last.ckpt").exists():
            return place / "last.ckpt"
    if start_from is not None:
        found, expected = f"{start_from} holds no last.ckpt", "the output `checkpoints` of train_lightning"
        raise bad_input("input resume_from_checkpoint", found, expected)
    return None


def check_fits(checkpoint: Path, module: Any) -> None:
    """Raise InputError if a checkpoint cannot be read, or is of another model."""
    import torch

    where = "input resume_from_checkpoint"
    expected = "a checkpoint of the same preset, of images of the same classes and shape"
    try:
        content = torch.load(checkpoint, map_location="cpu", mmap=True)
        saved = {name: tuple(value.shape) for name, value in content["state_dict"].items()}
    except Exception as error:  # of torch, of the zip file or of the pickle
        found = f"{checkpoint} cannot be read: {first_line(error)}"
        raise bad_input(where, found, "a whole checkpoint") from None
    own = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    other = sorted(name for name in {**saved, **own} if saved.get(name) != own.get(name))
    if other:
        name = other[0]
        shapes = f"{saved.get(name, 'missing')} in it and {own.get(name, 'missing')} in the model"
        raise bad_input(where, f"{checkpoint} does not fit: {name} is {shapes}", expected)


def main() -> None:
    try:
        args = arguments()
        place = find(args.devices, args.num_nodes)
        if place.per_node:
            os.environ[STARTED] = str(place.instance_count)
        prepare_libraries(per_node=place.per_node)
        train(args, place)
        code = 0
    except BaseException as error:
        code = clean_exit.record(error)
    clean_exit.leave(code)


if __name__ == "__main__":
    main()
