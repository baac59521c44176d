"""train_image_classifier: the parts of the training, and trainings as real processes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from component_processes import train

# Each starts trainings or imports the SDK in processes of its own: seconds apiece.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("image classifiers")]

Importer = Callable[[str, str], Any]


@pytest.fixture
def augmentation(code: Importer) -> Any:
    return code("train_image_classifier", "augmentation")


@pytest.mark.parametrize("name", ["cnn", "mlp"])
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 17, 32)], ids=str)
def test_every_network_scores_every_class(code: Importer, name: str, shape: tuple[int, int, int]) -> None:
    network = code("train_image_classifier", "network")
    model = network.ImageClassifier(network.NETWORKS[name](shape, 7), mean=[0.5] * shape[0], std=[0.2] * shape[0])
    assert model(torch.randint(0, 256, (4, *shape), dtype=torch.uint8)).shape == (4, 7)


def test_the_model_normalises_by_itself(code: Importer) -> None:
    network = code("train_image_classifier", "network")
    model = network.ImageClassifier(torch.nn.Flatten(), mean=[0.2, 0.6], std=[0.1, 0.5])
    pixels = torch.tensor([51, 102, 153, 255], dtype=torch.uint8).reshape(1, 2, 1, 2)
    torch.testing.assert_close(model(pixels), torch.tensor([[0.0, 2.0, 0.0, 0.8]]))


def test_an_image_is_shifted_and_then_mirrored(augmentation: Any) -> None:
    moves = augmentation.draw(augmentation.Augmentation(max_shift=2, mirror=True), 50, seed=3, epoch=1)
    pixels = torch.randint(0, 256, (50, 3, 7, 6), dtype=torch.uint8)
    moved = augmentation.move(pixels, moves, torch.arange(50))
    assert set(moves.shifts.unique().tolist()) == {-2, -1, 0, 1, 2}
    assert 0 < int(moves.mirrored.sum()) < 50
    padded = torch.nn.functional.pad(pixels, (2, 2, 2, 2))
    for index in range(50):
        down, right = moves.shifts[index].tolist()
        expected = padded[index, :, 2 + down : 9 + down, 2 + right : 8 + right]
        assert torch.equal(moved[index], expected.flip(2) if moves.mirrored[index] else expected)


def test_an_image_moves_alike_in_whichever_batch_it_comes(augmentation: Any) -> None:
    moves = augmentation.draw(augmentation.Augmentation(max_shift=3, mirror=True), 10, seed=0, epoch=4)
    pixels = torch.randint(0, 256, (10, 1, 8, 8), dtype=torch.uint8)
    order = torch.randperm(10)
    together = augmentation.move(pixels[order], moves, order)
    for place, index in enumerate(order):
        assert torch.equal(together[place], augmentation.move(pixels[index][None], moves, index[None])[0])


def test_without_augmentation_nothing_moves(augmentation: Any) -> None:
    moves = augmentation.draw(augmentation.Augmentation(max_shift=0, mirror=False), 4, seed=0, epoch=0)
    pixels = torch.randint(0, 256, (4, 3, 8, 8), dtype=torch.uint8)
    assert torch.equal(augmentation.move(pixels, moves, torch.arange(4)), pixels)


@pytest.mark.parametrize("total", [1, 2, 10, 1000])
def test_the_learning_rate_rises_to_its_peak_and_falls(code: Importer, total: int) -> None:
    learning_rate = code("train_image_classifier", "train").learning_rate
    rates = [learning_rate(0.1, step, total) for step in range(total)]
    top = rates.index(max(rates))
    assert max(rates) == pytest.approx(0.1)
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert min(rates) > 0


def test_two_ranks_leave_a_model_and_checkpoints(trained: Path) -> None:
    names = [file.name for file in sorted((trained / "checkpoints").iterdir())]
    assert names == ["step_000000050", "step_000000090"]
    described = yaml.safe_load((trained / "model/MLmodel").read_text())
    code = described["metadata"].pop("code")
    assert re.fullmatch("[0-9a-f]{16}", code)
    assert described["metadata"] == {"classes": list("0123456789")}
    (pixels,) = json.loads(described["signature"]["inputs"])
    assert pixels["tensor-spec"] == {"dtype": "uint8", "shape": [-1, 1, 8, 8]}


def test_their_history_has_the_pace_of_every_step(trained: Path) -> None:
    history = json.loads((trained / "history").read_text())
    assert [point["step"] for point in history["points"]] == list(range(10, 100, 10))
    # 1259 images an epoch are 14 batches of 89, and one of 13.
    assert sum(point["samples"] * 10 for point in history["points"]) == pytest.approx(6 * 1259)
    assert all(point["seconds"] > 0 for point in history["points"])
    assert (history["sample"], history["world_size"], history["instance_count"]) == ("image", 2, 1)


def test_a_folder_without_images_ends_every_rank_with_a_message(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    ended = train(tmp_path / "data", tmp_path)
    assert ended.codes == [2]
    assert "holds no dataset.json" in ended.errors[0]
    assert "Traceback" not in ended.errors[0]
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
def test_one_process_goes_on_from_what_two_ranks_left(trained: Path, digits: Path, tmp_path: Path) -> None:
    settings = ["--network", "mlp", "--epochs", "7", "--batch_size", "89"]
    ended = train(digits, tmp_path, *settings, "--resume_from", str(trained / "checkpoints"))
    assert ended.codes == [0], ended.errors
    assert "epoch 7 of 7" in ended.output
    assert "epoch 6 of 7" not in ended.output
    assert (tmp_path / "checkpoints/step_000000105/manifest.json").is_file()
    assert (tmp_path / "model/MLmodel").is_file()


@pytest.mark.slow
def test_a_training_starts_from_a_model_and_not_from_one_of_another_network(
    trained: Path, digits: Path, tmp_path: Path
) -> None:
    settings = ["--epochs", "1", "--learning_rate", "0.000001", "--start_from", str(trained / "model")]
    ended = train(digits, tmp_path, "--network", "mlp", *settings)
    assert ended.codes == [0], ended.errors
    (accuracy,) = re.findall(r"epoch 1 of 1: validation accuracy (\S+)", ended.output)
    assert float(accuracy) > 0.9  # which one epoch at this rate does not reach from random weights
    ended = train(digits, tmp_path / "other", "--network", "cnn", *settings)
    assert ended.codes == [2]
    assert "input start_from" in ended.errors[0]
    assert "Traceback" not in ended.errors[0]


def test_without_an_image_and_without_a_model_there_is_nothing_to_train(
    code: Importer, digits: Path, tmp_path: Path
) -> None:
    prepared = code("prepare_images", "prepared_images")
    splits = {name: prepared.read(digits, name) for name in prepared.SPLITS}
    splits["train"] = splits["train"][:0]
    prepared.write(tmp_path / "data", prepared.describe("digits", tuple("0123456789"), splits), splits)
    code("get_champion", "no_model").write(tmp_path / "none", "nothing is registered yet")
    ended = train(tmp_path / "data", tmp_path, "--start_from", str(tmp_path / "none"))
    assert ended.codes == [2]
    assert "no model to start from" in ended.errors[0]
    assert not (tmp_path / "model").exists()
