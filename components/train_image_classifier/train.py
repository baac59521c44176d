"""Train an image classifier on the ranks that there are: one process alone, or many on many instances."""

from __future__ import annotations

import argparse
import hashlib
import math
import shutil
import tempfile
from pathlib import Path

import no_model
import numpy as np
import torch
import torch.distributed as dist
from augmentation import Augmentation, draw, move
from network import NETWORKS, ImageClassifier
from prepared_images import BadData, Description, Images, read, read_description
from torch import Tensor, nn
from torch.nn import functional

from allranks import runtime
from allranks.errors import InputError, Problem
from allranks.runtime.mlflow_pytorch import installed_requirements, mlflow_pytorch

LOG_EVERY = 10
"""Steps between two points of the loss curve, each of which costs an all-reduce of the loss."""


def train(ranks: runtime.Ranks) -> None:
    args = arguments()
    description, images, validation = data(args.data)
    if not len(images):
        pass_on(args, ranks)
        return
    torch.manual_seed(args.seed)
    network = NETWORKS[args.network](description.shape, len(description.classes))
    model = ImageClassifier(network, description.mean, description.std)
    if args.start_from and not no_model.stands_in(args.start_from):
        start(model, args.start_from, description)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, weight_decay=args.weight_decay)
    training = ranks.strategy.prepare(model, optimizer)
    sampler = runtime.ResumableSampler(len(images), ranks, batch_size=args.batch_size, seed=args.seed)
    augmentation = Augmentation(args.max_shift, args.mirror)
    times = runtime.StepTimes(ranks, sample="image")

    checkpoints = runtime.Checkpoints(
        args.checkpoints,
        ranks,
        {"training": training, "sampler": sampler},
        every_steps=args.checkpoint_every,
    )
    step = checkpoints.load(start_from=args.resume_from)
    total = args.epochs * len(sampler)
    ranks.metrics.log_params({name: value for name, value in vars(args).items() if not isinstance(value, Path)})

    for epoch in range(sampler.epoch, args.epochs):
        moves = draw(augmentation, len(images), seed=args.seed, epoch=epoch)
        training.model.train()
        for indices in times.track(sampler.epoch_batches()):
            rate = learning_rate(args.learning_rate, step, total)
            for group in training.optimizer.param_groups:
                group["lr"] = rate
            pixels, labels = batch(images, indices)
            scores = training.model(move(pixels, moves, torch.tensor(indices)).to(ranks.device))
            loss = sampler.weight * functional.cross_entropy(scores, labels.to(ranks.device))
            training.backward(loss)
            training.step()
            step += 1
            if step % LOG_EVERY == 0 or step == total:
                values = {"train_loss": ranks.mean(loss), "learning_rate": rate}
                ranks.metrics.log(values, step=step, total=total, epoch=epoch)
            checkpoints.save_if_due(step)
        accuracy = correct_fraction(training.model, validation, args.batch_size, ranks)
        ranks.metrics.log({"validation_accuracy": accuracy}, step=step, total=total, epoch=epoch)
        if ranks.is_main:
            print(f"epoch {epoch + 1} of {args.epochs}: validation accuracy {accuracy:.4f}", flush=True)

    checkpoints.save(step)
    if args.history:
        times.write(args.history, strategy=args.strategy, launcher=ranks.launcher)
    weights = training.weights()
    if ranks.is_main:
        trained = ImageClassifier(
            NETWORKS[args.network](description.shape, len(description.classes)), description.mean, description.std
        )
        trained.load_state_dict(weights)
        save(trained, description, args.model)
    ranks.barrier()


def data(source: Path) -> tuple[Description, Images, Images]:
    """Return the description, the training set and the validation set, from a copy that an instance's ranks share."""
    try:
        folder = runtime.stage(source)
        return read_description(folder), read(folder, "train"), read(folder, "validation")
    except BadData as error:
        raise InputError(Problem("input data", str(error))) from None


def start(model: nn.Module, folder: Path, description: Description) -> None:
    """Load the weights of an MLflow model, including its normalisation, into the model.

    Raise InputError if it is not a model, or has other classes or another network.
    """
    flavour = mlflow_pytorch()
    from mlflow.models import get_model_info

    where = "input start_from"
    if not (folder / "MLmodel").is_file():
        raise InputError(Problem(where, f"{folder} holds no file MLmodel", "the output `model` of a training"))
    try:
        about = get_model_info(str(folder))
    except Exception as error:  # of MLflow or of its YAML parser
        found = f"{folder / 'MLmodel'} cannot be read: {first_line(error)}"
        raise InputError(Problem(where, found, "the output `model` of a training")) from error
    if "pytorch" not in about.flavors:
        kinds = ", ".join(kind for kind in about.flavors if kind != "python_function") or "another kind"
        raise InputError(Problem(where, f"a model of the flavor {kinds}", "the output `model` of a training"))
    classes = (about.metadata or {}).get("classes")
    if classes != list(description.classes):
        fix = "train a model of other classes from the beginning: leave start_from out"
        raise InputError(Problem(where, f"its classes are {classes}", f"those of the data, {description.classes}", fix))
    try:
        weights = flavour.load_model(str(folder)).state_dict()
    except Exception as error:  # loading runs code of the model
        raise InputError(Problem(where, f"{folder} cannot be loaded: {first_line(error)}", "a whole model")) from error
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        fix = "give the network and the images that it was trained with, or leave start_from out"
        raise InputError(
            Problem(where, f"its weights do not fit: {error}", "a model of the same network", fix)
        ) from None


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def pass_on(args: argparse.Namespace, ranks: runtime.Ranks) -> None:
    """Write the model to start from as the output, unchanged, because there is no training image."""
    if not args.start_from or no_model.stands_in(args.start_from):
        found = f"there is no training image in {args.data}, and no model to start from"
        raise InputError(Problem("input data", found, "images, or a model that can be passed on"))
    if args.history:
        runtime.StepTimes(ranks, sample="image").write(args.history, strategy=args.strategy, launcher=ranks.launcher)
    if ranks.is_main:
        shutil.copytree(args.start_from, args.model, dirs_exist_ok=True)
        args.checkpoints.mkdir(parents=True, exist_ok=True)
        print("there is no training image: the model is passed on as it is", flush=True)
    ranks.barrier()


def batch(images: Images, indices: list[int]) -> tuple[Tensor, Tensor]:
    """Return pixels (len(indices), channels, height, width) uint8 and labels (len(indices),)."""
    return torch.from_numpy(np.take(images.pixels, indices, axis=0)), torch.from_numpy(np.take(images.labels, indices))


def learning_rate(peak: float, step: int, total: int) -> float:
    """Return the learning rate: linear warm-up over the first tenth of the steps, then cosine decay to 0. It depends on
    the step alone, so that a resumed training has nothing to restore."""
    warm_up = max(1, total // 10)
    if step < warm_up:
        return peak * (step + 1) / warm_up
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1, total - warm_up)))


@torch.no_grad()
def correct_fraction(model: nn.Module, images: Images, batch_size: int, ranks: runtime.Ranks) -> float:
    """Return the fraction of correctly classified images, each rank scoring its own part. A collective.

    The ranks of a sharded model communicate in every forward pass, so all make the same number of passes. A rank
    without images left runs on one that does not count.
    """
    model.eval()
    correct = torch.zeros((), dtype=torch.int64, device=ranks.device)
    own = range(ranks.rank, len(images), ranks.world_size)
    longest = range(0, len(images), ranks.world_size)
    for start in range(0, len(longest), batch_size):
        pixels, labels = batch(images, list(own[start : start + batch_size]) or [0])
        matches = model(pixels.to(ranks.device)).argmax(dim=1) == labels.to(ranks.device)
        correct += matches.sum() if start < len(own) else 0
    dist.all_reduce(correct)
    return int(correct) / len(images)


def save(model: nn.Module, description: Description, folder: Path) -> None:
    """Write the model in MLflow's format, as a graph with its weights, which loads without this code."""
    flavour = mlflow_pytorch()
    from mlflow.models import infer_signature

    model = model.cpu().eval()
    example = np.zeros((2, *description.shape), dtype=np.uint8)
    with torch.no_grad():
        signature = infer_signature(example, model(torch.from_numpy(example)).numpy())
    with tempfile.TemporaryDirectory() as temporary, installed_requirements():
        flavour.save_model(
            model,
            temporary,
            signature=signature,
            input_example=example,
            serialization_format="pt2",
            pip_requirements=[f"torch=={torch.__version__.partition('+')[0]}", f"numpy=={np.__version__}"],
            metadata={"classes": list(description.classes), "code": code_digest()},
        )
        # The output folder may exist: the platform creates it, and an earlier attempt may have written to it.
        shutil.copytree(temporary, folder, dirs_exist_ok=True)


def code_digest() -> str:
    """Return a digest of the training's Python code: its own files and the included ones."""
    folder = Path(__file__).parent
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(f"{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def arguments() -> argparse.Namespace:
    """Parse the inputs and outputs that component.yaml describes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--resume_from", type=Path)
    parser.add_argument("--start_from", type=Path)
    parser.add_argument("--network", choices=sorted(NETWORKS), default="cnn")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=0.004)
    parser.add_argument("--weight_decay", type=float, default=0.01)
    parser.add_argument("--max_shift", type=int, default=1)
    parser.add_argument("--mirror", type=lambda text: text.lower() == "true", default=False)
    parser.add_argument("--checkpoint_every", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--strategy", default="ddp")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--checkpoints", type=Path, required=True)
    parser.add_argument("--history", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    runtime.main(train, strategy=arguments().strategy)
