"""prepare_images: three sources, and what it says of data that it cannot use."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import io
import os
import pickle
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from component_processes import execute
from PIL import Image

CLASSES = [b"airplane", b"automobile", b"bird", b"cat", b"deer", b"dog", b"frog", b"horse", b"ship", b"truck"]


@pytest.fixture
def preparation(code: Callable[[str, str], Any]) -> Any:
    return code("prepare_images", "preparation")


@pytest.fixture
def prepared(code: Callable[[str, str], Any]) -> Any:
    return code("prepare_images", "prepared_images")


def request(preparation: Any, **changes: Any) -> Any:
    """A request as component.py makes it of its defaults, with these changes."""
    settings: dict[str, Any] = {
        "source": "digits",
        "folder": None,
        "archive": None,
        "archive_url": "http://127.0.0.1:1/cifar-10-python.tar.gz",
        "archive_md5": "0" * 32,
        "image_size": 8,
        "validation_fraction": 0.2,
        "test_fraction": 0.2,
        "seed": 0,
    }
    return preparation.Request(**settings | changes)


# ---- the digits


def test_digits_are_divided_with_every_class_in_every_split(digits: Path, prepared: Any) -> None:
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
    prepared, splits = code("prepare_images", "prepared_images"), code("prepare_images", "splits")
    images = prepared.Images(np.arange(100).reshape(-1, 1, 1, 1), np.repeat([0, 1], 50))
    first, again, other = (
        splits.divide(images, [0.2], ("a", "b"), np.random.default_rng(seed))[0].pixels for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_no_image_is_in_two_splits_and_none_is_lost(code: Callable[[str, str], Any]) -> None:
    prepared, splits = code("prepare_images", "prepared_images"), code("prepare_images", "splits")
    labels = np.repeat([0, 1, 2], [5, 40, 7])
    images = prepared.Images(np.arange(len(labels)).reshape(-1, 1, 1, 1), labels)
    parts = splits.divide(images, [0.1, 0.3], ("a", "b", "c"), np.random.default_rng(0))
    assert sorted(int(pixel) for part in parts for pixel in part.pixels.ravel()) == list(range(len(labels)))
    assert [np.bincount(part.labels).tolist() for part in parts] == [[2, 24, 4], [1, 4, 1], [2, 12, 2]]


# ---- CIFAR-10


@pytest.fixture
def tarball(tmp_path: Path) -> Callable[..., tuple[Path, str]]:
    """Makes a small tarball as CIFAR-10's is, with members replaced or left out (None), and its checksum."""

    def make(members: Mapping[str, Any] | None = None) -> tuple[Path, str]:
        generator = np.random.default_rng(0)
        content: dict[str, Any] = {"batches.meta": {b"label_names": CLASSES}}
        for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
            pixels = generator.integers(0, 256, (20, 3072), dtype=np.uint8)
            content[name] = {b"data": pixels, b"labels": [*range(10), *range(10)]}
        file = tmp_path / "cifar.tar.gz"
        with tarfile.open(file, "w:gz") as archive:
            for name, value in (content | dict(members or {})).items():
                if value is not None:
                    data = pickle.dumps(value, protocol=4)
                    member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
        return file, hashlib.md5(file.read_bytes()).hexdigest()

    return make


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The folder over HTTP on a free port of this machine, and its address."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("by_url", [False, True], ids=["file", "url"])
def test_cifar10_keeps_its_own_test_set(
    preparation: Any, prepared: Any, tarball: Callable[..., tuple[Path, str]], tmp_path: Path, by_url: bool
) -> None:
    file, md5 = tarball()
    with served(tmp_path) if by_url else contextlib.nullcontext("") as address:
        place = {"archive_url": f"{address}/{file.name}"} if by_url else {"archive": file}
        preparation.prepare(request(preparation, source="cifar10", archive_md5=md5, **place), tmp_path / "out")
    description = prepared.read_description(tmp_path / "out")
    assert description.shape == (3, 32, 32)
    assert description.classes == tuple(name.decode() for name in CLASSES)
    assert description.counts == {"train": 80, "validation": 20, "test": 20}
    with tarfile.open(file) as archive:
        member = archive.extractfile("cifar-10-batches-py/test_batch")
        assert member is not None
        own = pickle.load(member)[b"data"].reshape(-1, 3, 32, 32)
    assert np.array_equal(prepared.read(tmp_path / "out", "test").pixels, own)


class Harmful:
    """A pickle that makes a folder when it is read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"data_batch_3": None}, "data_batch_3"),
        ({"test_batch": {b"data": np.zeros((2, 3072), np.uint8), b"labels": [0]}}, "labels that do not fit"),
        ({"test_batch": {b"data": np.zeros((1, 3072), np.uint8), b"labels": [10]}}, "labels that do not fit"),
        ({"test_batch": {b"data": np.zeros((2, 100), np.uint8), b"labels": [0, 1]}}, "reshape"),
        ({"test_batch": {b"labels": [0, 1]}}, "data"),
        ({"batches.meta": [1, 2]}, "indices"),
    ],
    ids=["missing batch", "too few labels", "unknown label", "other size", "no pixels", "no names"],
)
def test_a_tarball_that_is_not_cifar10_is_refused(
    preparation: Any,
    prepared: Any,
    tarball: Callable[..., tuple[Path, str]],
    tmp_path: Path,
    members: Mapping[str, Any],
    said: str,
) -> None:
    file, md5 = tarball(members)
    with pytest.raises(prepared.BadData, match="is not CIFAR-10's python version") as error:
        preparation.prepare(request(preparation, source="cifar10", archive=file, archive_md5=md5), tmp_path / "out")
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_pickle_that_would_run_code_is_refused(
    preparation: Any, prepared: Any, tarball: Callable[..., tuple[Path, str]], tmp_path: Path
) -> None:
    file, md5 = tarball({"data_batch_1": Harmful(tmp_path / "harm")})
    with pytest.raises(prepared.BadData, match=r"its pickle names posix\.mkdir"):
        preparation.prepare(request(preparation, source="cifar10", archive=file, archive_md5=md5), tmp_path / "out")
    assert not (tmp_path / "harm").exists()


def test_another_checksum_is_refused(
    preparation: Any, prepared: Any, tarball: Callable[..., tuple[Path, str]], tmp_path: Path
) -> None:
    file, md5 = tarball()
    with pytest.raises(prepared.BadData, match=rf"{md5}, expected {'0' * 32}"):
        preparation.prepare(request(preparation, source="cifar10", archive=file), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_no_tarball_is_refused(preparation: Any, prepared: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_bytes(b"<html>not found</html>")
    md5 = hashlib.md5(file.read_bytes()).hexdigest()
    with pytest.raises(prepared.BadData, match="is not CIFAR-10's python version"):
        preparation.prepare(request(preparation, source="cifar10", archive=file, archive_md5=md5), tmp_path / "out")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"archive": Path("/nowhere/cifar.tar.gz")}, "/nowhere/cifar.tar.gz is not a file"),
        ({"archive_url": "ftp://example.com/cifar.tar.gz"}, "is not an http(s) address"),
        ({"archive_url": "http://127.0.0.1:1/cifar.tar.gz"}, "cannot be downloaded"),
    ],
    ids=["no file", "other scheme", "no server"],
)
def test_a_tarball_that_cannot_be_had(
    preparation: Any, prepared: Any, tmp_path: Path, place: dict[str, Any], said: str
) -> None:
    with pytest.raises(prepared.BadData) as error:
        preparation.prepare(request(preparation, source="cifar10", **place), tmp_path / "out")
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()


def test_an_address_that_gives_no_file(preparation: Any, prepared: Any, tmp_path: Path) -> None:
    with served(tmp_path) as address, pytest.raises(prepared.BadData, match=r"cannot be downloaded.*404"):
        preparation.prepare(request(preparation, source="cifar10", archive_url=f"{address}/none"), tmp_path / "out")


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


def test_a_folder_gives_a_class_for_each_subfolder(
    preparation: Any, prepared: Any, photographs: Path, tmp_path: Path
) -> None:
    preparation.prepare(request(preparation, source="folder", folder=photographs), tmp_path / "out")
    description = prepared.read_description(tmp_path / "out")
    assert description.classes == ("dark", "light")
    assert description.shape == (3, 8, 8)
    assert description.counts == {"train": 8, "validation": 2, "test": 2}
    for split in prepared.SPLITS:
        images = prepared.read(tmp_path / "out", split)
        assert np.array_equal(images.pixels.mean(axis=(1, 2, 3)) > 127, images.labels == 1)


def test_what_was_in_the_output_before_is_replaced(
    preparation: Any, prepared: Any, photographs: Path, tmp_path: Path
) -> None:
    for size, output in ((16, "twice"), (8, "twice"), (8, "once")):
        settings = {"source": "folder", "folder": photographs, "image_size": size}
        preparation.prepare(request(preparation, **settings), tmp_path / output)
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
    preparation: Any,
    prepared: Any,
    photographs: Path,
    tmp_path: Path,
    harm: Callable[[Path], None],
    said: str,
) -> None:
    harm(photographs)
    with pytest.raises(prepared.BadData) as error:
        preparation.prepare(request(preparation, source="folder", folder=photographs), tmp_path / "out")
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("folder", "said"), [(None, "no `folder` is given"), (Path("/nowhere"), "/nowhere is not a folder")]
)
def test_no_folder(preparation: Any, prepared: Any, tmp_path: Path, folder: Path | None, said: str) -> None:
    with pytest.raises(prepared.BadData) as error:
        preparation.prepare(request(preparation, source="folder", folder=folder), tmp_path / "out")
    assert said in str(error.value)


# ---- the component as a process, and the folder that it writes


@pytest.mark.slow
def test_bad_data_ends_the_process_with_a_message_and_no_traceback(photographs: Path, tmp_path: Path) -> None:
    spoil(photographs)
    output = tmp_path / "images"
    output.mkdir()
    ended = execute("prepare_images", {"source": "folder", "folder": photographs}, {"images": output}, tmp_path)
    assert ended.codes == [2]
    assert f"prepare_images: {photographs}/dark/0.png cannot be read as an image" in ended.errors[0]
    assert "Traceback" not in ended.errors[0]
    assert list(output.iterdir()) == []


def test_a_disk_that_fills_up_leaves_nothing_half_written(
    prepared: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_a_folder_that_prepare_images_did_not_write(prepared: Any, tmp_path: Path, content: str | None) -> None:
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
def test_labels_that_are_no_classes_are_named(prepared: Any, labels: list[int], side: int, said: str) -> None:
    def images(labels: list[int], side: int = 2) -> Any:
        return prepared.Images(np.zeros((3, 1, side, side), np.uint8), np.array(labels, np.int64))

    train = images([0, 1, 1])
    description = prepared.describe("made", ("no", "yes"), {"train": train})
    prepared.check_labels(description, {"train": train, "validation": images([0, 0, 0])})
    with pytest.raises(prepared.BadData, match=said):
        prepared.check_labels(description, {"train": train, "test": images(labels, side)})
