"""select_new_data: what is new and what is held out, by content alone."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from allranks.errors import InputError
from allranks_steps.images import prepared_images as prepared

Importer = Callable[[str, str], Any]
CLASSES = ("cat", "dog")


@pytest.fixture
def script(code: Importer) -> Any:
    return code("select_new_data", "select_new_data")


@pytest.fixture
def selection(code: Importer) -> Any:
    return code("select_new_data", "selection")


def deliver(folder: Path, numbers: range, batch: str, label: str | None = None) -> None:
    """Images that come: number n has the same content whenever it comes, and is of class n % 2 or of another."""
    for number in numbers:
        place = folder / (label or CLASSES[number % 2]) / batch
        place.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (8, 8, 3), np.uint8)
        Image.fromarray(pixels).save(place / f"{number}.png")


class Recurrence:
    """One run of the component on a folder, in a folder of its own."""

    def __init__(self, script: Any, data: Path, place: Path, champion: Path | None = None, **settings: Any) -> None:
        shares = script.Shares(settings.get("validation", 0.1), settings.get("test", 0.2))
        came = script.arrivals.arrived_images(data, 8)
        self.selection = place / "selection"
        minimum = settings.get("minimum_new", 1)
        self.said = script.select_new_data(came, champion, shares, minimum, place / "images", self.selection)
        self.trained_on = set(json.loads((self.selection / "trained_on.json").read_text())["images"])
        splits = ("train", "validation", "test")
        self.images = {name: contents(place / "images" / f"{name}_pixels.npy") for name in splits}


def contents(file: Path) -> set[bytes]:
    return {image.tobytes() for image in np.load(file)}


def test_at_first_everything_is_new_and_is_divided_once(script: Any, tmp_path: Path) -> None:
    deliver(tmp_path / "data", range(200), "first")
    found = Recurrence(script, tmp_path / "data", tmp_path / "1")
    assert sum(map(len, found.images.values())) == len(set.union(*found.images.values())) == 200
    assert 20 < len(found.images["test"]) < 60
    assert len(found.images["train"]) == found.said["new"] == found.said["trained_on"] == len(found.trained_on)
    described = json.loads((tmp_path / "1/images/dataset.json").read_text())
    assert (described["classes"], described["shape"]) == (list(CLASSES), [3, 8, 8])


def test_then_only_what_the_champion_was_not_trained_on(script: Any, tmp_path: Path) -> None:
    data = tmp_path / "data"
    deliver(data, range(100), "first")
    first = Recurrence(script, data, tmp_path / "1")
    deliver(data, range(100, 150), "second")
    # What is moved, renamed or written again is not new.
    os.rename(data / "cat/first", data / "cat/moved")
    deliver(data, range(0, 100, 2), "copied")
    second = Recurrence(script, data, tmp_path / "2", first.selection)
    assert not second.images["train"] & set.union(*first.images.values())
    assert 25 < len(second.images["train"]) < 50
    assert first.images["test"] < second.images["test"]
    assert first.images["validation"] < second.images["validation"]
    assert first.trained_on < second.trained_on
    assert second.said["data_version"] != first.said["data_version"]


@pytest.mark.parametrize(("validation", "test"), [(0.1, 0.4), (0.4, 0.2), (0.05, 0.1)])
def test_what_was_trained_on_is_never_held_out_though_the_shares_change(
    script: Any, tmp_path: Path, validation: float, test: float
) -> None:
    deliver(tmp_path / "data", range(200), "first")
    first = Recurrence(script, tmp_path / "data", tmp_path / "1")
    shares = {"validation": validation, "test": test}
    second = Recurrence(script, tmp_path / "data", tmp_path / "2", first.selection, **shares)
    assert not first.images["train"] & (second.images["test"] | second.images["validation"])


def test_without_anything_new_there_is_no_training_image(script: Any, tmp_path: Path) -> None:
    deliver(tmp_path / "data", range(100), "first")
    first = Recurrence(script, tmp_path / "data", tmp_path / "1")
    second = Recurrence(script, tmp_path / "data", tmp_path / "2", first.selection)
    assert (second.said["new"], second.images["train"]) == (0, set())
    assert second.images["test"] == first.images["test"]
    assert (second.said["data_version"], second.trained_on) == (first.said["data_version"], first.trained_on)
    assert len(prepared.read(tmp_path / "2/images", "train")) == 0
    assert prepared.read_description(tmp_path / "2/images").counts["train"] == 0


def test_too_few_new_images_wait(script: Any, tmp_path: Path) -> None:
    deliver(tmp_path / "data", range(100), "first")
    first = Recurrence(script, tmp_path / "data", tmp_path / "1", minimum_new=1000)
    deliver(tmp_path / "data", range(100, 120), "second")
    second = Recurrence(script, tmp_path / "data", tmp_path / "2", first.selection, minimum_new=30)
    assert second.said["new"] == 0
    assert second.said["waiting"] > 0
    assert second.trained_on == first.trained_on
    third = Recurrence(script, tmp_path / "data", tmp_path / "3", second.selection, minimum_new=second.said["waiting"])
    assert third.said["new"] == second.said["waiting"]


def test_an_image_of_two_classes_is_left_out_until_one_is_taken_away(script: Any, tmp_path: Path) -> None:
    data = tmp_path / "data"
    deliver(data, range(100), "first")
    first = Recurrence(script, data, tmp_path / "1")
    deliver(data, range(0, 20, 2), "corrected", label="dog")
    second = Recurrence(script, data, tmp_path / "2", first.selection)
    assert (second.said["conflicting"], second.said["new"]) == (10, 0)
    for number in range(0, 20, 2):
        (data / f"cat/first/{number}.png").unlink()
    third = Recurrence(script, data, tmp_path / "3", first.selection)
    assert third.said["conflicting"] == 0
    assert 0 < third.said["new"] <= 10  # with another label it is new, unless it is held out
    assert third.images["train"] <= first.images["train"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data, champion: (data / "bird").mkdir() or deliver(data, range(9), "b", "bird"), "cat, dog. Register"),
        (lambda data, champion: champion.joinpath("trained_on.json").write_text("{"), "trained_on.json is damaged"),
        (lambda data, champion: champion.joinpath("trained_on.json").write_text('{"images": 3}'), "is damaged"),
        (lambda data, champion: (data / "mouse").mkdir(), "holds no image"),
    ],
    ids=["another class", "torn", "other content", "an empty class"],
)
def test_what_cannot_be_used_is_said(
    script: Any, tmp_path: Path, change: Callable[[Path, Path], Any], said: str
) -> None:
    deliver(tmp_path / "data", range(100), "first")
    first = Recurrence(script, tmp_path / "data", tmp_path / "1")
    change(tmp_path / "data", first.selection)
    with pytest.raises(InputError, match=said):
        Recurrence(script, tmp_path / "data", tmp_path / "2", first.selection)
    assert not (tmp_path / "2").exists()


def test_too_few_images_for_every_split_are_refused(script: Any, tmp_path: Path) -> None:
    deliver(tmp_path / "data", range(2), "first")
    with pytest.raises(InputError, match="none is for"):
        Recurrence(script, tmp_path / "data", tmp_path / "1", validation=0.01, test=0.01)


def test_the_digits_come_bit_by_bit_and_the_same_come_first(script: Any) -> None:
    some, more = (script.arrivals.arrived_digits(arrived).images for arrived in (0.2, 0.5))
    assert (len(some), len(more)) == (359, 898)
    assert [image.digest for image in some] == [image.digest for image in more[:359]]
    assert some[0].pixels().shape == (1, 8, 8)


def test_the_order_of_delivery_does_not_matter(selection: Any, script: Any, tmp_path: Path) -> None:
    for place, batches in (("a", (range(40), range(40, 80))), ("b", (range(40, 80), range(40)))):
        for batch, numbers in enumerate(batches):
            deliver(tmp_path / place / "data", numbers, str(batch))
    first, second = (Recurrence(script, tmp_path / place / "data", tmp_path / place) for place in "ab")
    assert first.said == second.said
    for file in ("images/train_pixels.npy", "images/test_labels.npy", "selection/trained_on.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
