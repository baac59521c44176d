"""Train an image classifier on all available ranks, from one process to many instances."""

import argparse
import shutil
from typing import Any

import initial_model
import numpy as np
import torch
from architecture import design, start_from
from mixing import Mixing, mix
from torch import Tensor, nn
from torch.nn import functional

from allranks import runtime
from allranks.runtime.output_room import full_output_refused
from allranks_steps.deepspeed_inputs import resolve_deepspeed_file
from allranks_steps.history import History, describe
from allranks_steps.images.classifier import Architecture, blocks
from allranks_steps.images.counting import count
from allranks_steps.images.image_data.augmentation import Augmentation
from allranks_steps.images.image_data.batches import Batch, Collate, ImageSamples, evaluation_loader, sampler
from allranks_steps.images.image_data.decoding import Decoder
from allranks_steps.images.image_data.images import ImageData, kind, open_data
from allranks_steps.images.saving import save
from allranks_steps.images.scores import scores
from allranks_steps.loop import Loop
from allranks_steps.messages import bad_input
from allranks_steps.models.mlmodel import is_placeholder
from allranks_steps.schedule import Schedule
from allranks_steps.training_settings import parameter_groups, settings, total_steps
from checks import check_batches, check_room, note_without_effect, steps_when_resumed


def train(ranks: runtime.Ranks) -> None:
    args = runtime.arguments()
    if "deepspeed" in args:  # in train_image_classifier_deepspeed
        args = resolve_deepspeed_file(args, runtime.argument_defaults().get, ranks.full_world_size)
    data = read(args)
    if not data.count("train"):
        pass_on(args, ranks)
        return
    initial = start_from(args)
    architecture = design(args, data, initial)
    torch.manual_seed(args.seed)
    model = architecture.build()
    if initial and initial_model.load(model, initial, data.classes) and ranks.is_main:
        print("the model to start from has other classes: its head is trained from the beginning", flush=True)
    # The same weights on every rank, and other random numbers for what is dropped.
    torch.manual_seed(args.seed + 1 + ranks.rank)
    parameter_count = sum(parameter.numel() for parameter in model.parameters())
    check_room(args, parameter_count, data.count("validation") > 0, ranks)
    check_batches(args, model, data.count("train"), ranks)
    note_without_effect(args, ranks)
    loader, collate = training_loader(args, data, architecture, ranks)
    total = total_steps(args, len(loader))
    mixing = Mixing(args.mixup_alpha, args.cutmix_alpha)

    if args.channels_last and args.strategy in ("ddp", "horovod"):  # the others keep contiguous shards of the weights
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    schedule = Schedule(args.lr_scheduler_type, total, args.warmup_steps or round(args.warmup_ratio * total))
    stage = args.deepspeed_stage if args.strategy == "deepspeed" else None
    chosen = settings(
        args, blocks(model), schedule, loader.sampler, sync_batchnorm=args.sync_batchnorm, deepspeed_stage=stage
    )
    training = ranks.strategy.prepare(model, optimizer(args, model), chosen, schedule)
    args.precision = training.precision  # what "auto" stands for here
    average = runtime.ExponentialMovingAverage(training, args.ema_decay, warm_up=True) if args.ema_decay else None
    history = History("image")
    parts: dict[str, Any] = {"training": training, "loader": loader, "history": history}
    if average:
        parts["average"] = average
    checkpoints = runtime.Checkpoints(
        args.checkpoints,
        ranks,
        parts,
        every_steps=args.save_steps,
        keep=args.save_total_limit,
        mode="max",  # of the validation accuracy
    )
    step = checkpoints.load(start_from=args.resume_from_checkpoint, start_from_name="input resume_from_checkpoint")
    if step and args.max_steps == -1:
        total = schedule.total = steps_when_resumed(args, step, total, loader, ranks)
    samples = min(loader.sampler.batch_size, data.count("train")) * args.gradient_accumulation_steps
    about = describe(args, ranks, "image", parameters=parameter_count, samples_per_step=samples)
    if ranks.is_main:
        name = architecture.config.model_type if initial else args.preset
        print(
            f"{name}: {parameter_count:,} parameters, {data.count('train'):,} images, {total} steps of "
            f"{samples} on {ranks.world_size} ranks by {args.strategy} in {args.precision}",
            flush=True,
        )
    images: Any = validation_loader(args, data, architecture, ranks)

    def loss(batch: Batch, step: int, passes: int) -> Tensor:
        pixels, target = collate.changed(batch), batch.labels
        if mixing.enabled:
            random = np.random.default_rng([args.seed, step, passes, ranks.rank])
            pixels, target = mix(pixels, target, mixing, len(data.classes), random)
        if args.channels_last:
            pixels = pixels.contiguous(memory_format=torch.channels_last)
        return functional.cross_entropy(training.model(pixels), target, label_smoothing=args.label_smoothing_factor)

    def is_due(step: int) -> bool:
        # Not at the very end of an epoch, but after its last step: a checkpoint in the middle of an accumulation would
        # lose its gradients.
        ends_epoch = loader.sampler.batches_left < args.gradient_accumulation_steps
        return images is not None and (
            step == total or bool(step % args.eval_steps == 0 if args.eval_steps else ends_epoch)
        )

    def evaluate() -> dict[str, float] | None:
        training.model.eval()
        counts = count(training.model, images, len(data.classes), ranks, checkpoints.interrupted)
        training.model.train()
        if counts is None:
            return None
        found = scores(counts)
        del found["count"]
        return found

    Loop(
        ranks,
        training,
        loader,
        history,
        checkpoints,
        total=total,
        samples_per_step=samples,
        logging_steps=args.logging_steps,
        loss=loss,
        is_due=is_due,
        evaluate=evaluate,
        metric="accuracy",
        average=average,
    ).run(step)

    weights = average.weights() if average else training.weights()
    measured_on = runtime.measured_on(ranks)
    if ranks.is_main:
        with full_output_refused("output history", args.history):
            history.write(args.history, about | measured_on)
        trained = architecture.build()
        trained.load_state_dict(weights)
        preset = initial.preset if initial else args.preset
        save(trained, args.model, architecture, channels=data.channels, classes=data.classes, preset=preset)
    ranks.barrier()


def read(args: argparse.Namespace) -> ImageData:
    """Open the data. Arrays are copied to a local disk, which an instance's ranks share; files are read where they are.

    Raise InputError."""
    folder = runtime.stage(args.data) if kind(args.data) == "arrays" else args.data
    return open_data(folder, window=args.shuffle_window)


def training_loader(
    args: argparse.Namespace, data: ImageData, architecture: Architecture, ranks: runtime.Ranks
) -> tuple[runtime.DataLoader, Collate]:
    """Return the loader of the training images, and the object that changes them on the device. Raise InputError."""
    augmentation = Augmentation(args.min_crop_scale, args.max_shift, args.horizontal_flip, args.auto_augment)
    decoder = create_decoder(data, architecture)
    collate = Collate(augmentation, crop=decoder is None, on_device=args.augment_on == "device")
    images = sampler(
        data.splits["train"],
        ranks,
        batch_size=args.per_device_train_batch_size * ranks.full_world_size,
        per_device_batch_size=args.per_device_train_batch_size,
        seed=args.seed,
        drop_last=args.dataloader_drop_last,
    )
    samples = ImageSamples(data.splits["train"], decoder, augmentation)
    loader = runtime.DataLoader(samples, images, num_workers=args.dataloader_num_workers, collate_fn=collate)
    return loader, collate


def validation_loader(
    args: argparse.Namespace, data: ImageData, architecture: Architecture, ranks: runtime.Ranks
) -> runtime.DataLoader | None:
    """Return the loader of the validation images, or None without any."""
    if not data.count("validation"):
        return None
    return evaluation_loader(
        data.splits["validation"],
        create_decoder(data, architecture),
        ranks,
        per_device_batch_size=args.per_device_eval_batch_size,
        num_workers=args.dataloader_num_workers,
    )


def create_decoder(data: ImageData, architecture: Architecture) -> Decoder | None:
    """Return the decoder of image files; None for arrays."""
    return None if data.kind == "arrays" else Decoder(architecture.image_size, data.channels)


def optimizer(args: argparse.Namespace, model: nn.Module) -> torch.optim.Optimizer:
    groups = parameter_groups(model, args.weight_decay)
    if args.optim == "sgd":
        return torch.optim.SGD(groups, lr=args.learning_rate, momentum=0.9, nesterov=True)
    return torch.optim.AdamW(groups, lr=args.learning_rate)


def pass_on(args: argparse.Namespace, ranks: runtime.Ranks) -> None:
    """Copy the initial model to the output, because there are no training images."""
    if not args.initial_model or is_placeholder(args.initial_model):
        found = f"there is no training image in {args.data}, and no model to start from"
        raise bad_input("input data", found, "images, or a model that can be passed on")
    runtime.StepTimes(ranks, sample="image").write(args.history, strategy=args.strategy, launcher=ranks.launcher)
    if ranks.is_main:
        with full_output_refused("output model", args.model):
            shutil.copytree(args.initial_model, args.model, dirs_exist_ok=True)
        args.checkpoints.mkdir(parents=True, exist_ok=True)
        print("there is no training image: the model is passed on as it is", flush=True)
    ranks.barrier()


if __name__ == "__main__":
    runtime.main(train, strategy=runtime.arguments().strategy)
