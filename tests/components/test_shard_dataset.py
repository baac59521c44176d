"""shard_dataset: WebDataset shards that depend on the data and the seed alone."""

import hashlib
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from component_processes import shard

from allranks.errors import InputError

pytestmark = pytest.mark.slow


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_one_rank_and_three_write_the_same_shards_of_prepared_images(digits: Path, tmp_path: Path) -> None:
    options = ["--samples_per_shard", "250", "--seed", "3"]
    for ranks in (1, 3):
        ended = shard(digits, tmp_path / f"shards{ranks}", tmp_path / f"run{ranks}", *options, ranks=ranks)
        assert ended.codes == [0] * ranks, ended.errors
    found = content(tmp_path / "shards1")
    assert found == content(tmp_path / "shards3")
    index = json.loads(found.pop("index.json"))
    assert index["samples"] == json.loads((digits / "dataset.json").read_text())["counts"]
    assert (index["classes"], index["channels"], index["size"]) == (list("0123456789"), 1, [8, 8])
    assert {entry["file"] for entry in index["shards"]} == set(found)
    for entry in index["shards"]:
        assert entry["bytes"] == len(found[entry["file"]])
        assert entry["sha256"] == hashlib.sha256(found[entry["file"]]).hexdigest()
        with tarfile.open(tmp_path / "shards1" / entry["file"]) as tar:
            assert len(tar.getnames()) == 3 * entry["samples"] <= 3 * 250


@pytest.fixture
def shard_here(on_one_rank: Callable[..., None], tmp_path: Path) -> Callable[[], None]:
    """Writes shards of the folder data, in this process."""
    words = (f"--data={tmp_path / 'data'}", f"--shards={tmp_path / 'shards'}")
    return lambda: on_one_rank("shard_dataset", "shard_dataset", *words)


def test_files_of_any_kind_are_samples_by_their_names_up_to_the_first_dot(
    shard_here: Callable[[], None], tmp_path: Path
) -> None:
    import webdataset

    files = {"a/x.1.txt": b"1", "a/x.json": b"{}", "b/x.txt": b"2", "b/y.v2.bin": b"3", "b/.hidden": b"", "b/none": b""}
    for name, text in files.items():
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_bytes(text)
    shard_here()
    samples = list(webdataset.WebDataset(str(tmp_path / "shards/train-000000.tar"), shardshuffle=False))
    found = [{key: value for key, value in sample.items() if not key.startswith("__")} for sample in samples]
    assert sorted(found, key=str) == sorted(
        [
            {"1.txt": b"1", "json": b"{}"},
            {"txt": b"2", "json": b'{"name": "b/x"}'},
            {"v2.bin": b"3", "json": b'{"name": "b/y"}'},
        ],
        key=str,
    )


def test_a_damaged_image_is_named_and_an_interrupted_run_is_repeated(
    shard_here: Callable[[], None], tmp_path: Path
) -> None:
    from PIL import Image

    for name in ("a", "b"):
        (tmp_path / "data/train" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "data/train" / name / "image.png")
    whole = (tmp_path / "data/train/a/image.png").read_bytes()
    (tmp_path / "data/train/b/image.png").write_bytes(whole[:40])
    with pytest.raises(InputError, match=f"{tmp_path}/data/train/b/image.png cannot be read as an image"):
        shard_here()
    assert not (tmp_path / "shards/index.json").exists()

    (tmp_path / "data/train/b/image.png").write_bytes(whole)
    shard_here()
    assert sorted(content(tmp_path / "shards")) == ["index.json", "train-000000.tar"]
    with pytest.raises(InputError, match=r"output shards: .* is not empty"):
        shard_here()
