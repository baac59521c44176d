"""Train an image classifier on the ranks that there are: one process alone, or many on many instances."""

from __future__ import annotations

import argparse
import resource
import shutil
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import initial_model
import no_model
import numpy as np
import parameters
import torch
from classifier import ImageClassifier, blocks, build, has_batch_norm
from history import History
from image_data.augmentation import Augmentation
from image_data.batches import Collate, ImageSamples, evaluation_loader, sampler
from image_data.decoding import Decoder
from image_data.images import ImageData
from image_data.open_data import kind, open_data
from initial_model import InitialModel
from mixing import Mixing, mix
from prepared_images import BadData
from presets import configuration, labels, network_size
from saving import save
from schedule import schedule
from torch import nn
from torch.nn import functional
from transformers import PretrainedConfig
from validation import validate

from allranks import runtime
from allranks.errors import InputError, Problem


@dataclass(frozen=True)
class Architecture:
    """What the model is built from.

    config:       of the network
    network_size: height and width inside of the network
    image_size:   height and width of the pixels that the model takes
    mean, std:    that images are normalised with
    """

    config: PretrainedConfig
    network_size: tuple[int, int]
    image_size: tuple[int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def build(self) -> ImageClassifier:
        """Return a model with random weights."""
        return build(
            self.config, self.mean, self.std, network_size=self.network_size, image_size=self.image_size
        )


def train(ranks: runtime.Ranks) -> None:
    args = parameters.arguments()
    parameters.check(args)
    data = read(args)
    if not data.count("train"):
        pass_on(args, data, ranks)
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
    check_room(args, parameter_count, ranks)

    files = data.kind != "arrays"
    augmentation = Augmentation(args.min_crop_scale, args.max_shift, args.horizontal_flip, args.auto_augment)
    decoder = Decoder(architecture.image_size, data.channels) if files else None
    collate = Collate(augmentation, crop=not files, on_device=args.augment_on == "device")
    images = sampler(
        data.splits["train"],
        ranks,
        batch_size=args.per_device_train_batch_size * ranks.world_size,
        seed=args.seed,
        drop_last=args.dataloader_drop_last,
    )
    loader = runtime.DataLoader(
        ImageSamples(data.splits["train"], decoder, augmentation),
        images,
        num_workers=args.dataloader_num_workers,
        collate_fn=collate,
    )
    check_batches(args, model, data.count("train"), ranks)
    validation = None
    if data.count("validation"):
        validation = evaluation_loader(
            data.splits["validation"],
            decoder,
            ranks,
            per_device_batch_size=args.per_device_eval_batch_size,
            num_workers=args.dataloader_num_workers,
        )
    mixing = Mixing(args.mixup_alpha, args.cutmix_alpha)

    if args.channels_last:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    total = args.max_steps
    if total == -1:
        total = max(1, args.num_train_epochs * len(loader) // args.gradient_accumulation_steps)
    warmup_steps = args.warmup_steps or round(args.warmup_ratio * total)
    training = ranks.strategy.prepare(
        model,
        optimizer(args, model),
        settings(args, model),
        schedule(args.lr_scheduler_type, total, warmup_steps),
    )
    average = runtime.ExponentialMovingAverage(training, args.ema_decay, warm_up=True) if args.ema_decay else None
    history = History()
    parts = {"training": training, "loader": loader, "history": history}
    checkpoints = runtime.Checkpoints(
        args.checkpoints,
        ranks,
        parts | ({"average": average} if average else {}),
        every_steps=args.save_steps,
        keep=args.save_total_limit,
    )
    step = checkpoints.load(start_from=args.resume_from_checkpoint)
    samples_per_step = min(images.batch_size, data.count("train")) * args.gradient_accumulation_steps
    about = {
        "strategy": args.strategy,
        "launcher": ranks.launcher,
        "world_size": ranks.world_size,
        "parameters": parameter_count,
        "sample": "image",
        "samples_per_step": samples_per_step,
    }
    ranks.metrics.log_params(about | {name: value for name, value in vars(args).items() if not isinstance(value, Path)})
    if ranks.is_main:
        print(
            f"{args.preset}: {parameter_count:,} parameters, {data.count('train'):,} images, {total} steps of "
            f"{samples_per_step} on {ranks.world_size} ranks by {args.strategy}",
            flush=True,
        )

    evaluated = step

    def evaluate(epoch: int) -> None:
        nonlocal evaluated
        if validation is None or step == evaluated:
            return
        evaluated = step
        with history.paused(), average.averaged() if average else nullcontext():
            figures = validate(training.model, validation, ranks)
        ranks.metrics.log(
            {f"validation_{name}": value for name, value in figures.items()}, step=step, total=total, epoch=epoch
        )
        if ranks.is_main:
            print(f"step {step} of {total}: validation accuracy {figures['accuracy']:.4f}", flush=True)

    started = time.time()
    loss_of_step, passes = torch.zeros((), device=ranks.device), 0
    training.model.train()
    while step < total and (args.max_steps != -1 or loader.epoch < args.num_train_epochs):
        epoch = loader.epoch
        for batch in loader:
            pixels, target = collate.changed(batch), batch.labels
            if mixing.enabled:
                random = np.random.default_rng([args.seed, step, passes, ranks.rank])
                pixels, target = mix(pixels, target, mixing, len(data.classes), random)
            if args.channels_last:
                pixels = pixels.contiguous(memory_format=torch.channels_last)
            scores = training.model(pixels)
            loss = functional.cross_entropy(scores, target, label_smoothing=args.label_smoothing_factor)
            loss = loader.weight * loss
            training.backward(loss)
            loss_of_step += loss.detach()
            passes += 1
            if not training.step():
                continue
            step += 1
            if average:
                average.update()
            history.count(samples_per_step)
            if step % args.logging_steps == 0 or step == total:
                mean = ranks.mean(loss_of_step / passes)
                point = history.add(step, mean, peak_memory(ranks))
                figures = {
                    "train_loss": mean,
                    "learning_rate": training.optimizer.param_groups[0]["lr"],
                    "images_per_second": point.samples / point.seconds,
                    "step_seconds": point.seconds,
                }
                ranks.metrics.log(figures, step=step, total=total, epoch=epoch)
            loss_of_step.zero_()
            passes = 0
            with history.paused():
                checkpoints.save_if_due(step)
            if args.eval_steps and step % args.eval_steps == 0:
                evaluate(epoch)
            if step == total:
                break
        if not args.eval_steps:
            evaluate(epoch)

    checkpoints.save(step)
    weights = average.weights() if average else training.weights()
    measured_on = runtime.measured_on(ranks) | {"started": started, "ended": time.time()}
    if ranks.is_main:
        history.write(args.history, about | measured_on)
        trained = architecture.build()
        trained.load_state_dict(weights)
        preprocessing = {
            "image_size": list(architecture.image_size),
            "network_size": list(architecture.network_size),
            "mean": list(architecture.mean),
            "std": list(architecture.std),
        }
        name = initial.preset if initial else args.preset
        save(
            trained,
            args.model,
            config=architecture.config,
            pixels=(data.channels, *architecture.image_size),
            about={"classes": list(data.classes), "model": name, "preprocessing": preprocessing},
        )
    ranks.barrier()


def read(args: argparse.Namespace) -> ImageData:
    """Open the data. Arrays are copied to a local disk, which an instance's ranks share; files are read where they are.

    Raise InputError."""
    try:
        folder = runtime.stage(args.data) if kind(args.data) == "arrays" else args.data
        return open_data(folder, window=args.shuffle_window)
    except BadData as error:
        raise InputError(Problem("input data", str(error))) from None


def start_from(args: argparse.Namespace) -> InitialModel | None:
    """Return the model to start from, None without one. Raise InputError if it is none, or another than the preset."""
    if args.pretrained_model:
        return initial_model.of_transformers(args.pretrained_model)
    if not args.initial_model or no_model.stands_in(args.initial_model):
        return None
    found = initial_model.of_mlflow(args.initial_model)
    if found.preset not in (None, args.preset):
        raise InputError(
            Problem(
                where=found.where,
                found=f"a {found.preset}, and the input model is {args.preset}",
                expected="the same model",
                fix=f"set model to {found.preset}, or leave initial_model out",
            )
        )
    return found


def design(args: argparse.Namespace, data: ImageData, initial: InitialModel | None) -> Architecture:
    """Return the architecture of the model. Raise InputError if it does not fit the images."""
    mean, std = data.mean, data.std
    if initial is None:
        size = network_size(args.preset, args.image_size, data.size)
        config = configuration(args.preset, size, data.channels, data.classes, args.drop_path_rate)
    else:
        own = (args.image_size, args.image_size) if args.image_size else None
        size = own or initial.size or data.size or (224, 224)
        config = initial_model.configuration(
            initial, classes=data.classes, channels=data.channels, size=size, labels=labels(data.classes)
        )
        if args.drop_path_rate is not None:
            config.drop_path_rate = args.drop_path_rate
        mean, std = initial.mean or mean, initial.std or std
    return Architecture(config, size, data.size or size, mean, std)


def check_room(args: argparse.Namespace, parameter_count: int, ranks: runtime.Ranks) -> None:
    """Raise InputError if the disk of the outputs has no room for them."""
    # float32 weights, and with AdamW two more numbers for each in a checkpoint, of which one more than the limit exist
    # while one is written.
    needed = 4 * parameter_count * (1 + 3 * (args.save_total_limit + 1))
    existing = next(folder for folder in (args.checkpoints, *args.checkpoints.absolute().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if ranks.any_rank(ranks.is_main and free < needed):
        found = f"{free / 2**30:.1f} GiB are free, and the checkpoints and the model need {needed / 2**30:.1f} GiB"
        raise InputError(Problem("output checkpoints", found, fix="use a larger disk, or a smaller save_total_limit"))


def check_batches(args: argparse.Namespace, model: nn.Module, count: int, ranks: runtime.Ranks) -> None:
    """Raise InputError if there are fewer images than ranks, or a batch too small for batch normalization."""
    if count < ranks.world_size:
        found = f"{count} training images for {ranks.world_size} ranks"
        raise InputError(Problem("input data", found, "at least one for each rank", "use fewer ranks"))
    batch_size = args.per_device_train_batch_size * ranks.world_size
    last = 0 if args.dataloader_drop_last else count % batch_size
    smallest = min(args.per_device_train_batch_size, last // ranks.world_size if last else batch_size)
    if has_batch_norm(model) and smallest < 2 and not args.sync_batchnorm:
        where = "dataloader_drop_last" if args.per_device_train_batch_size > 1 else "per_device_train_batch_size"
        raise InputError(
            Problem(
                where=f"input {where}",
                found=f"a batch of {smallest} on a rank, for a model with batch normalization",
                expected="at least 2 images",
                fix="set dataloader_drop_last, another per_device_train_batch_size, or a model without it (convnextv2, "
                "vit, swin)",
            )
        )


def settings(args: argparse.Namespace, model: nn.Module) -> runtime.TrainingSettings:
    """Return the settings of the strategy. Raise InputError.

    With a file of DeepSpeed, an input at its default leaves the choice to the file."""
    file = args.deepspeed is not None
    return runtime.TrainingSettings(
        gradient_accumulation_steps=args.gradient_accumulation_steps,
        max_grad_norm=None if file and args.max_grad_norm == 0 else args.max_grad_norm,
        precision=None if file and args.precision == "float32" else args.precision,
        tf32=args.tf32,
        compile=args.compile,
        blocks=blocks(model),
        activation_checkpointing=args.activation_checkpointing,
        sync_batchnorm=args.sync_batchnorm,
        zero_stage=args.zero_stage if args.strategy == "deepspeed" and not (file and args.zero_stage == 2) else None,
        offload=args.offload,
        deepspeed_config=args.deepspeed,
    )


def optimizer(args: argparse.Namespace, model: nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer. Biases and the weights of normalization have no weight decay."""
    decayed = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in model.parameters() if parameter.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": args.weight_decay}, {"params": others, "weight_decay": 0.0}]
    if args.optim == "sgd":
        return torch.optim.SGD(groups, lr=args.learning_rate, momentum=0.9, nesterov=True)
    return torch.optim.AdamW(groups, lr=args.learning_rate)


def peak_memory(ranks: runtime.Ranks) -> float:
    """Return this rank's peak memory in MiB: allocated on its GPU, or of its CPU process."""
    if ranks.device.type == "cuda":
        return torch.cuda.max_memory_allocated(ranks.device) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def pass_on(args: argparse.Namespace, data: ImageData, ranks: runtime.Ranks) -> None:
    """Write the model to start from as the output, unchanged, because there is no training image."""
    if not args.initial_model or no_model.stands_in(args.initial_model):
        found = f"there is no training image in {args.data}, and no model to start from"
        raise InputError(Problem("input data", found, "images, or a model that can be passed on"))
    runtime.StepTimes(ranks, sample="image").write(args.history, strategy=args.strategy, launcher=ranks.launcher)
    if ranks.is_main:
        shutil.copytree(args.initial_model, args.model, dirs_exist_ok=True)
        args.checkpoints.mkdir(parents=True, exist_ok=True)
        print("there is no training image: the model is passed on as it is", flush=True)
    ranks.barrier()


if __name__ == "__main__":
    runtime.main(train, strategy=parameters.arguments().strategy)
