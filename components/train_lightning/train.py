"""Train an image classifier with Lightning: one process an instance, which starts the rest, or any other launch."""

from __future__ import annotations

import argparse
import json
import os
from datetime import timedelta
from pathlib import Path

from place import STARTED, Place, find
from prepared_images import BadData, Description, Images, read, read_description

from allranks.errors import InputError, Problem
from allranks.runtime import clean_exit, failure, prepare_libraries, stage

LOG_EVERY = 10
"""Steps between two points of the loss curve."""

TIMEOUT = timedelta(minutes=10)
"""Time limit for waiting on the other ranks."""


def train(args: argparse.Namespace, place: Place) -> None:
    # Imported here, since Lightning reads the launch's variables on import.
    import lightning
    import torch
    from lightning.pytorch.callbacks import ModelCheckpoint
    from lightning.pytorch.plugins.environments import LightningEnvironment
    from lightning.pytorch.strategies import DDPStrategy
    from module import Figures, ImageClassification
    from network import NETWORKS, ImageClassifier

    description, images, validation = data(args.data)
    world_size = place.instance_count * place.devices
    if args.batch_size % world_size:
        found = f"{args.batch_size} for {world_size} ranks"
        raise InputError(Problem("batch_size", found, f"a multiple of {world_size}", "set batch_size to one"))
    lightning.seed_everything(args.seed, verbose=False)
    network = NETWORKS[args.network](description.shape, len(description.classes))
    module = ImageClassification(ImageClassifier(network, description.mean, description.std), args.learning_rate)
    on_gpu = torch.cuda.device_count() >= place.devices
    figures = Figures(LOG_EVERY)
    trainer = lightning.Trainer(
        accelerator="gpu" if on_gpu else "cpu",
        devices=place.devices,
        num_nodes=place.instance_count,
        strategy=DDPStrategy(process_group_backend="nccl" if on_gpu else "gloo", timeout=TIMEOUT),
        # Otherwise Lightning would use mpirun's variables, and a rendezvous hostname that may not resolve.
        plugins=[LightningEnvironment()],
        max_epochs=args.epochs,
        callbacks=[figures, ModelCheckpoint(args.checkpoints, save_last=True, save_top_k=1)],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    share = args.batch_size // world_size
    try:
        trainer.fit(
            module, loader(images, share, shuffle=True), loader(validation, share), ckpt_path=last(args.checkpoints)
        )
    except BaseException:
        figures.close("FAILED")
        raise
    figures.close("FINISHED")
    if trainer.is_global_zero:
        accuracy = float(trainer.callback_metrics["validation_accuracy"])
        instances = f"{place.instance_count} instance{'s' * (place.instance_count != 1)}"
        print(f"{world_size} ranks on {instances}: validation accuracy {accuracy:.4f}", flush=True)
        args.model.mkdir(parents=True, exist_ok=True)
        torch.save(module.classifier.state_dict(), args.model / "classifier.pt")
        about = {"network": args.network, "classes": list(description.classes), "validation_accuracy": accuracy}
        (args.model / "classifier.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    trainer.strategy.barrier()
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def data(source: Path) -> tuple[Description, Images, Images]:
    """Return the description, the training set and the validation set, from a copy that an instance's ranks share."""
    try:
        folder = stage(source)
        return read_description(folder), read(folder, "train"), read(folder, "validation")
    except BadData as error:
        raise InputError(Problem("input data", str(error))) from None


def loader(images: Images, batch_size: int, *, shuffle: bool = False) -> object:
    """Return a plain DataLoader. Lightning adds a sampler that distributes the images over the ranks."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    pixels, labels = torch.tensor(images.pixels), torch.tensor(images.labels)
    return DataLoader(TensorDataset(pixels, labels), batch_size=batch_size, shuffle=shuffle)


def last(folder: Path) -> Path | None:
    """Return the last checkpoint of an evicted training, None if there is none."""
    file = folder / "last.ckpt"
    return file if file.is_file() else None


def arguments() -> argparse.Namespace:
    """Parse the inputs and outputs that component.yaml describes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--devices", type=int, help="processes on each instance; by default those that are there")
    parser.add_argument("--num_nodes", type=int, help="instances; by default those of the launch")
    parser.add_argument("--network", choices=["cnn", "mlp"], default="cnn")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=0.004)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--checkpoints", type=Path, required=True)
    return parser.parse_args()


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
        code = failure.record(error)
    clean_exit.leave(code)


if __name__ == "__main__":
    main()
