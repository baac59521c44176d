"""Trainings by train_image_classifier as real processes: on one rank and on two, resumed, evicted, with wrong data."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from component_processes import evaluate, folder_of, run_script, shard, train

from allranks.errors import InputError
from allranks.runtime.checkpoints import manifest

# Each starts trainings or imports the SDK in processes of its own: seconds apiece.
pytestmark = pytest.mark.slow

Importer = Callable[[str, str], Any]
DIGITS = tuple("0123456789")


def test_two_ranks_leave_a_model_and_checkpoints(trained: Path) -> None:
    assert any((trained / "checkpoints").iterdir())
    described = yaml.safe_load((trained / "model/MLmodel").read_text())
    metadata = described["metadata"]
    assert re.fullmatch("[0-9a-f]{16}", metadata["code"])
    assert metadata["classes"] == list(DIGITS)
    assert metadata["model"] == "resnet_micro"
    assert metadata["preprocessing"]["image_size"] == [8, 8]
    assert metadata["preprocessing"]["network_size"] == [16, 16]
    (pixels,) = json.loads(described["signature"]["inputs"])
    assert pixels["tensor-spec"] == {"dtype": "uint8", "shape": [-1, 1, 8, 8]}


def test_their_history_has_the_loss_and_the_pace_of_the_steps(trained: Path) -> None:
    history = json.loads((trained / "history").read_text())
    # 1259 images an epoch are 13 batches of 90, and one of 89.
    assert [point["step"] for point in history["points"]] == [1, *range(10, 84, 10), 84]
    assert history["points"][-1]["loss"] < history["points"][0]["loss"] / 2
    assert all(point["seconds"] > 0 for point in history["points"])
    assert (history["sample"], history["samples_per_step"]) == ("image", 90)
    assert (history["world_size"], history["instance_count"], history["strategy"]) == (2, 1, "ddp")


def test_one_process_goes_on_from_what_two_ranks_left(trained: Path, digits: Path, tmp_path: Path) -> None:
    """With batches of another size: what is left is one epoch of 8 batches, whatever the steps before."""
    settings = ["--preset", "resnet_micro", "--num_train_epochs", "7", "--per_device_train_batch_size", "160"]
    ended = train(digits, tmp_path, *settings, "--resume_from_checkpoint", str(trained / "checkpoints"))
    assert ended.codes == [0], ended.errors
    assert "another size than before: 92 steps in all instead of 56" in ended.errors[0]
    assert re.findall(r"step (\d+) of (\d+): validation", ended.output) == [("92", "92")]
    history = json.loads((tmp_path / "history").read_text())
    assert [history["points"][number]["step"] for number in (0, -1)] == [1, 92]
    assert (tmp_path / "model/MLmodel").is_file()


EVICTED_IN_VALIDATION = """
import os, signal
import train
from allranks import runtime

count = train.count

def evicted(model, loader, classes, ranks, interrupted):
    if ranks.rank == 1:
        os.kill(os.getpid(), signal.SIGTERM)
    return count(model, loader, classes, ranks, interrupted)

train.count = evicted
runtime.main(train.train, strategy="fsdp")
"""


@pytest.mark.recipe
def test_a_sharded_training_that_is_evicted_in_a_validation_repeats_it(
    on_one_rank: Callable[..., None], trained: Path, digits: Path, tmp_path: Path
) -> None:
    """From the weights of another, with memory in channels_last and inputs that CPUs ignore."""
    script = tmp_path / "evicted.py"
    script.write_text(EVICTED_IN_VALIDATION)
    settings = ["--strategy", "fsdp", "--preset", "resnet_micro", "--max_steps", "3", "--eval_steps", "1"]
    settings += ["--initial_model", str(trained / "model"), "--learning_rate", "0.0001"]
    settings += ["--channels_last", "True", "--tf32", "True", "--offload", "True", "--save_total_limit", "1"]
    settings += ["--per_device_eval_batch_size", "16", "--ema_decay", "0.5"]
    spec = folder_of("train_image_classifier") / "component.yaml"
    arguments = ["--spec", str(spec), *places(digits, tmp_path), *settings]
    ended = run_script("train_image_classifier", *arguments, script=script, folder=tmp_path, ranks=2)
    assert ended.codes == [143, 143], ended.errors
    assert "tf32 and offload: no effect" in ended.errors[0]
    assert "validation accuracy" not in ended.output
    assert metrics(tmp_path / "checkpoints") == {1: None}

    ended = train(digits, tmp_path, *settings, ranks=2)
    assert ended.codes == [0, 0], ended.errors
    printed = re.findall(r"step (\d) of 3: validation accuracy (\S+)", ended.output)
    accuracies = {int(step): float(accuracy) for step, accuracy in printed}
    assert list(accuracies) == [1, 2, 3]
    assert min(accuracies.values()) > 0.8
    best = max(accuracies, key=lambda step: (accuracies[step], step))
    expected = {step: pytest.approx(accuracy, abs=1e-4) for step, accuracy in accuracies.items() if step in (best, 3)}
    assert metrics(tmp_path / "checkpoints") == expected
    with pytest.raises(InputError, match="input initial_model: a resnet_micro"):
        on_one_rank("train_image_classifier", "train", *places(digits, tmp_path / "other"), *settings, "--preset",
                    "convnextv2_micro", "--strategy", "ddp")  # fmt: skip


def metrics(checkpoints: Path) -> dict[int, float | None]:
    """The metrics of the complete checkpoints by their steps."""
    return {entry.step: entry.manifest.metric for entry in manifest.complete(checkpoints) if entry.manifest}


@pytest.mark.recipe
def test_a_folder_of_transformers_is_fine_tuned_with_a_new_head(digits: Path, tmp_path: Path) -> None:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=16,
        patch_size=8,
        num_channels=1,
        num_labels=3,
    )
    pretrained = ViTForImageClassification(config)
    pretrained.save_pretrained(tmp_path / "pretrained")
    (tmp_path / "pretrained/preprocessor_config.json").write_text('{"image_mean": [0.25], "image_std": [0.5]}')
    options = ["--learning_rate", "0.0000001", "--max_steps", "1", "--pretrained_model", str(tmp_path / "pretrained")]
    ended = train(digits, tmp_path, *options)
    assert ended.codes == [0], ended.errors
    assert "its head is trained from the beginning" in ended.output
    from allranks.runtime.metrics.tracking import mlflow_pytorch

    model = mlflow_pytorch().load_model(str(tmp_path / "model"))
    assert model(torch.zeros(3, 1, 8, 8, dtype=torch.uint8)).shape == (3, 10)
    weights = model.state_dict()
    torch.testing.assert_close(weights["mean"], torch.full((1, 1, 1), 255 * 0.25))
    name = "vit.embeddings.patch_embeddings.projection.weight"
    torch.testing.assert_close(weights[f"network.{name}"], pretrained.state_dict()[name], atol=1e-5, rtol=0)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Colour images of several sizes and two classes, whose names have dots."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("photographs")
    random = np.random.default_rng(0)
    for number in range(60):
        split, label = ("train", "validation", "test")[min(2, number // 24)], number % 2
        file = folder / split / f"class.{label}" / f"image.{number}.v1.{'jpg' if number % 3 else 'png'}"
        file.parent.mkdir(parents=True, exist_ok=True)
        height, width = random.integers(20, 60, 2)
        pixels = random.integers(0, 80, (height, width, 3)) + np.array([160, 0, 0])[:: 1 if label else -1]
        Image.fromarray(pixels.astype(np.uint8)).save(file)
    return folder


@pytest.mark.recipe
def test_image_files_and_their_shards_train_with_every_option(photographs: Path, tmp_path: Path) -> None:
    """Two ranks stream shards with a worker each; the model then scores files as it does shards."""
    ended = shard(photographs, tmp_path / "shards", tmp_path / "sharding", "--samples_per_shard", "5")
    assert ended.codes == [0], ended.errors
    options = ["--preset", "resnet_micro", "--image_size", "16", "--learning_rate", "0.01", "--num_train_epochs", "2"]
    options += ["--per_device_train_batch_size", "4", "--gradient_accumulation_steps", "2", "--max_grad_norm", "1"]
    options += ["--ema_decay", "0.5", "--label_smoothing_factor", "0.1", "--mixup_alpha", "0.1", "--cutmix_alpha", "1"]
    options += ["--min_crop_scale", "0.5", "--horizontal_flip", "True", "--auto_augment", "trivialaugment"]
    options += ["--augment_on", "device", "--precision", "bfloat16", "--channels_last", "True", "--shuffle_window", "4"]
    options += ["--lr_scheduler_type", "linear", "--dataloader_num_workers", "1", "--eval_steps", "2"]
    ended = train(tmp_path / "shards", tmp_path, *options, ranks=2)
    assert ended.codes == [0, 0], ended.errors
    # 24 images are 3 batches an epoch, and 2 of them a step.
    assert re.findall(r"step (\d+) of 3: validation accuracy", ended.output) == ["2", "3"]
    described = yaml.safe_load((tmp_path / "model/MLmodel").read_text())
    assert described["metadata"]["classes"] == ["class.0", "class.1"]
    scores = []
    for name, data in (("files", photographs), ("shards", tmp_path / "shards")):
        ended = evaluate(data, tmp_path / "model", tmp_path / name, "--per_device_eval_batch_size", "7")
        assert ended.codes == [0], ended.errors
        metrics = json.loads((tmp_path / name / "metrics/metrics.json").read_text())
        scores.append({key: metrics[key] for key in ("count", "accuracy", "macro_f1")})
        assert metrics["loss"] > 0
    assert scores[0] == scores[1]
    assert scores[0]["count"] == 12


def test_without_an_image_and_without_a_model_there_is_nothing_to_train(
    code: Importer, on_one_rank: Callable[..., None], digits: Path, tmp_path: Path
) -> None:
    prepared = code("prepare_images", "allranks_steps.images.prepared_images")
    splits = {name: prepared.read(digits, name) for name in prepared.SPLITS}
    splits["train"] = splits["train"][:0]
    prepared.write(tmp_path / "data", prepared.describe("digits", DIGITS, splits), splits)
    code("get_champion", "allranks_steps.models.mlmodel").write_placeholder(
        tmp_path / "none", "nothing is registered yet"
    )
    words = [*places(tmp_path / "data", tmp_path), "--initial_model", str(tmp_path / "none")]
    with pytest.raises(InputError, match="no model to start from"):
        on_one_rank("train_image_classifier", "train", *words)
    assert not (tmp_path / "model").exists()


def places(data: Path, folder: Path) -> list[str]:
    """The options of a training's input and outputs."""
    outputs = [f"--{name}={folder / name}" for name in ("model", "checkpoints", "history")]
    return [f"--data={data}", *outputs]
