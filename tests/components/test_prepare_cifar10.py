"""prepare_images with CIFAR-10: a tarball from a file or a server, whose pickles are read without running them."""

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
from image_preparation import Prepare, prepare

import bounded
from allranks_steps.images import prepared_images as prepared

__all__ = ["prepare"]

CLASSES = [b"airplane", b"automobile", b"bird", b"cat", b"deer", b"dog", b"frog", b"horse", b"ship", b"truck"]


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
            bounded.join(thread)


@pytest.mark.parametrize("by_url", [False, True], ids=["file", "url"])
def test_cifar10_keeps_its_own_test_set(
    prepare: Prepare, tarball: Callable[..., tuple[Path, str]], tmp_path: Path, by_url: bool
) -> None:
    file, md5 = tarball()
    with served(tmp_path) if by_url else contextlib.nullcontext("") as address:
        place = {"archive_url": f"{address}/{file.name}"} if by_url else {"archive": file}
        prepare(source="cifar10", archive_md5=md5, **place, images=tmp_path / "out")
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
    prepare: Prepare,
    tarball: Callable[..., tuple[Path, str]],
    tmp_path: Path,
    members: Mapping[str, Any],
    said: str,
) -> None:
    file, md5 = tarball(members)
    with pytest.raises(prepared.BadData, match="is not CIFAR-10's python version") as error:
        prepare(source="cifar10", archive=file, archive_md5=md5, images=tmp_path / "out")
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_pickle_that_would_run_code_is_refused(
    prepare: Prepare, tarball: Callable[..., tuple[Path, str]], tmp_path: Path
) -> None:
    file, md5 = tarball({"data_batch_1": Harmful(tmp_path / "harm")})
    with pytest.raises(prepared.BadData, match=r"its pickle names posix\.mkdir"):
        prepare(source="cifar10", archive=file, archive_md5=md5, images=tmp_path / "out")
    assert not (tmp_path / "harm").exists()


def test_another_checksum_is_refused(
    prepare: Prepare, tarball: Callable[..., tuple[Path, str]], tmp_path: Path
) -> None:
    file, md5 = tarball()
    with pytest.raises(prepared.BadData, match=rf"{md5}, expected {'0' * 32}"):
        prepare(source="cifar10", archive=file, archive_md5="0" * 32, images=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_no_tarball_is_refused(prepare: Prepare, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_bytes(b"<html>not found</html>")
    md5 = hashlib.md5(file.read_bytes()).hexdigest()
    with pytest.raises(prepared.BadData, match="is not CIFAR-10's python version"):
        prepare(source="cifar10", archive=file, archive_md5=md5, images=tmp_path / "out")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"archive": Path("/nowhere/cifar.tar.gz")}, "/nowhere/cifar.tar.gz is not a file"),
        ({"archive_url": "ftp://example.com/cifar.tar.gz"}, "is not an http(s) address"),
        ({"archive_url": "http://127.0.0.1:1/cifar.tar.gz"}, "cannot be downloaded"),
    ],
    ids=["no file", "other scheme", "no server"],
)
def test_a_tarball_that_cannot_be_had(prepare: Prepare, tmp_path: Path, place: dict[str, Any], said: str) -> None:
    with pytest.raises(prepared.BadData) as error:
        prepare(source="cifar10", **place, images=tmp_path / "out")
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()


def test_an_address_that_gives_no_file(prepare: Prepare, tmp_path: Path) -> None:
    with served(tmp_path) as address, pytest.raises(prepared.BadData, match=r"cannot be downloaded.*404"):
        prepare(source="cifar10", archive_url=f"{address}/none", images=tmp_path / "out")
