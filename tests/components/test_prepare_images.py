"""prepare_images: the digits, a folder of images, and what it says of data that it cannot use."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from component_processes import folder_of
from PIL import Image

from allranks.runtime import arguments
from allranks_steps.images import prepared_images as prepared

Prepare = Callable[..., Any]


@pytest.fixture
def prepare(code: Callable[[str, str], Any]) -> Prepare:
    """Runs prepare_images on inputs that are not the defaults, and returns the description."""

    def run(**changes: Any) -> Any:
        argv = [
            f"--{name}={value}" for name, value in ({"image_size": 8, "validation_fraction": 0.2} | changes).items()
        ]
        spec = folder_of("prepare_images") / "component.yaml"
        return code("prepare_images", "prepare_images").prepare(arguments(spec, argv))

    return run


# ---- the digits


def test_digits_are_divided_with_every_class_in_every_split(digits: Path) -> None:
    description = prepared.read_description(digits)
    splits = {name: prepared.read(digits, name) for name in prepared.SPLITS}
    assert description.shape == (1, 8, 8)
    assert description.classes == tuple("0123456789")
    assert description.counts == {name: len(images) for name, images in splits.items()}
    assert sum(description.counts.values()) == 1797
    for images in splits.values():
        assert images.pixels.dtype == np.uint8
        assert images.pixels.shape == (len(images), 1, 8, 8)
        shares = np.bincount(images.labels, minlength=10) / len(images)
        assert shares.min() > 0.08
        assert shares.max() < 0.12
    train = splits["train"].pixels / 255
    assert description.mean == pytest.approx([train.mean()])
    assert description.std == pytest.approx([train.std()])


def test_the_seed_decides_the_division(code: Callable[[str, str], Any]) -> None:
    splits = code("prepare_images", "prepare_images")
    images = prepared.Images(np.arange(100).reshape(-1, 1, 1, 1), np.repeat([0, 1], 50))
    first, again, other = (
        splits.divide(images, [0.2], ("a", "b"), np.random.default_rng(seed))[0].pixels for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_no_image_is_in_two_splits_and_none_is_lost(code: Callable[[str, str], Any]) -> None:
    splits = code("prepare_images", "prepare_images")
    labels = np.repeat([0, 1, 2], [5, 40, 7])
    images = prepared.Images(np.arange(len(labels)).reshape(-1, 1, 1, 1), labels)
    parts = splits.divide(images, [0.1, 0.3], ("a", "b", "c"), np.random.default_rng(0))
    assert sorted(int(pixel) for part in parts for pixel in part.pixels.ravel()) == list(range(len(labels)))
    assert [np.bincount(part.labels).tolist() for part in parts] == [[2, 24, 4], [1, 4, 1], [2, 12, 2]]


# ---- a folder of images


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """Two classes of six images each, of several sizes, formats and colour modes, with things that are no images."""
    folder = tmp_path / "photographs"
    shapes = [("RGB", (20, 10), "png"), ("L", (8, 8), "jpg"), ("RGBA", (5, 30), "png"), ("P", (9, 9), "gif")]
    for label, shade in (("dark", 0), ("light", 255)):
        (folder / label / "more").mkdir(parents=True)
        for number in range(6):
            mode, size, suffix = shapes[number % len(shapes)]
            image = Image.new("RGB", size, (shade,) * 3).convert(mode)
            image.save(folder / label / ("more" if number == 5 else ".") / f"{number}.{suffix}")
    (folder / "dark" / ".DS_Store").write_bytes(b"")
    (folder / "dark" / "notes.txt").write_text("taken at night")
    (folder / ".cache").mkdir()
    return folder


def test_a_folder_gives_a_class_for_each_subfolder(prepare: Prepare, photographs: Path, tmp_path: Path) -> None:
    prepare(source="folder", folder=photographs, images=tmp_path / "out")
    description = prepared.read_description(tmp_path / "out")
    assert description.classes == ("dark", "light")
    assert description.shape == (3, 8, 8)
    assert description.counts == {"train": 8, "validation": 2, "test": 2}
    for split in prepared.SPLITS:
        images = prepared.read(tmp_path / "out", split)
        assert np.array_equal(images.pixels.mean(axis=(1, 2, 3)) > 127, images.labels == 1)


def test_what_was_in_the_output_before_is_replaced(prepare: Prepare, photographs: Path, tmp_path: Path) -> None:
    for size, output in ((16, "twice"), (8, "twice"), (8, "once")):
        settings = {"source": "folder", "folder": photographs, "image_size": size}
        prepare(images=tmp_path / output, **settings)
    once, twice = (prepared.read(tmp_path / output, "test").pixels for output in ("once", "twice"))
    assert np.array_equal(once, twice)
    assert sorted(file.name for file in (tmp_path / "twice").iterdir()) == [
        "dataset.json",
        *(f"{split}_{part}.npy" for split in sorted(prepared.SPLITS) for part in ("labels", "pixels")),
    ]


def empty(folder: Path) -> None:
    for file in (folder / "dark").rglob("*.*"):
        file.unlink()


def spoil(folder: Path) -> None:
    (folder / "dark/0.png").write_bytes(b"not an image")


def cut(folder: Path) -> None:
    file = folder / "light/1.jpg"
    file.write_bytes(file.read_bytes()[:200])


def leave_one_class(folder: Path) -> None:
    (folder / "light").rename(folder.parent / "light")


def leave_two_images(folder: Path) -> None:
    for file in sorted((folder / "dark").rglob("*.*"))[3:]:
        if file.is_file():
            file.unlink()


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (empty, "holds no image"),
        (spoil, "0.png cannot be read as an image"),
        (cut, "1.jpg cannot be read as an image"),
        (leave_one_class, "has 1 sub-folder(s)"),
        (leave_two_images, "class 'dark' has 2 images, too few"),
    ],
    ids=["empty class", "no image", "torn image", "one class", "too few images"],
)
def test_a_folder_that_cannot_be_used(
    prepare: Prepare,
    photographs: Path,
    tmp_path: Path,
    harm: Callable[[Path], None],
    said: str,
) -> None:
    harm(photographs)
    with pytest.raises(prepared.BadData) as error:
        prepare(source="folder", folder=photographs, images=tmp_path / "out")
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("folder", "said"), [(None, "no `folder` is given"), (Path("/nowhere"), "/nowhere is not a folder")]
)
def test_no_folder(prepare: Prepare, tmp_path: Path, folder: Path | None, said: str) -> None:
    with pytest.raises(prepared.BadData) as error:
        prepare(source="folder", images=tmp_path / "out", **({"folder": folder} if folder else {}))
    assert said in str(error.value)


# ---- the folder that it writes


def test_a_disk_that_fills_up_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = prepared.Images(np.zeros((2, 1, 2, 2), np.uint8), np.array([0, 1]))
    splits = dict.fromkeys(prepared.SPLITS, images)
    save = np.save

    def fail(file: Path, values: Any) -> None:
        if "test" in file.name:
            raise OSError(28, "No space left on device")
        save(file, values)

    monkeypatch.setattr(np, "save", fail)
    with pytest.raises(OSError, match="No space left"):
        prepared.write(tmp_path / "out", prepared.describe("digits", ("0", "1"), splits), splits)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("content", [None, "{", '{"source": "digits"}', "[]"])
def test_a_folder_that_prepare_images_did_not_write(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "dataset.json").write_text(content)
    with pytest.raises(prepared.BadData, match=r"dataset\.json"):
        prepared.read_description(tmp_path)
    with pytest.raises(prepared.BadData, match="train split cannot be read"):
        prepared.read(tmp_path, "train")


@pytest.mark.parametrize(
    ("labels", "side", "said"),
    [
        ([0, 1, 2], 2, "the test split has the label 2, but dataset.json lists 2 classes, 0 to 1"),
        ([-1, 0, 1], 2, "the test split has the label -1"),
        ([0, 1], 2, r"pixels of shape \(3, 1, 2, 2\) and labels of shape \(2,\)"),
        ([0, 1, 1], 3, r"pixels of shape \(3, 1, 3, 3\)"),
    ],
)
def test_labels_that_are_no_classes_are_named(labels: list[int], side: int, said: str) -> None:
    def images(labels: list[int], side: int = 2) -> Any:
        return prepared.Images(np.zeros((3, 1, side, side), np.uint8), np.array(labels, np.int64))

    train = images([0, 1, 1])
    description = prepared.describe("made", ("no", "yes"), {"train": train})
    prepared.check_labels(description, {"train": train, "validation": images([0, 0, 0])})
    with pytest.raises(prepared.BadData, match=said):
        prepared.check_labels(description, {"train": train, "test": images(labels, side)})
