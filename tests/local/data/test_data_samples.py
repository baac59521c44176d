"""What a sample keeps of a folder and of a table."""

from pathlib import Path

import pytest

from allranks.errors import InputError
from allranks.local.data import samples

IMAGES = [f"images/{number:03}.png" for number in range(200)]

FOLDERS: dict[str, tuple[list[str], str, list[str]]] = {
    "a percentage": (IMAGES, "1%", [IMAGES[0], IMAGES[100]]),
    "a number": (IMAGES, "4", IMAGES[::50]),
    "more than there are": (IMAGES, "1000", IMAGES),
    "one of each suffix at least": ([*IMAGES, "labels.json"], "1%", [IMAGES[0], IMAGES[100], "labels.json"]),
    "few tables, of which rows are kept": (["test.csv", "train.csv"], "10%", ["test.csv", "train.csv"]),
    "many tables": ([f"{number}.parquet" for number in range(9)], "40%", [f"{n}.parquet" for n in (0, 3, 5, 7)]),
}


@pytest.mark.parametrize(("names", "text", "kept"), FOLDERS.values(), ids=FOLDERS)
def test_files_are_evenly_spaced(names: list[str], text: str, kept: list[str]) -> None:
    sample = samples.parse(text)
    assert sample is not None
    assert samples.choose(names, sample) == kept


TABLES: dict[str, tuple[str, str, str, str]] = {
    "csv": ("t.csv", 'a,b\n1,"x\ny"\n2,z\n3,z\n4,"x\ny"\n', "50%", 'a,b\n1,"x\ny"\n3,z\n'),
    "rows of csv": ("t.tsv", "a\n1\n2\n3\n", "1", "a\n1\n"),
    "json lines": ("t.jsonl", '{"a": 1}\r\n{"a": 2}\r\n', "1", '{"a": 1}\r\n'),
    "another file": ("t.bin", "1\n2\n", "1%", "1\n2\n"),
}


@pytest.mark.parametrize(("name", "text", "sample", "kept"), TABLES.values(), ids=TABLES)
def test_rows_are_evenly_spaced(tmp_path: Path, name: str, text: str, sample: str, kept: str) -> None:
    (tmp_path / name).write_bytes(text.encode())
    amount = samples.parse(sample)
    assert amount is not None
    path, _ = samples.make(tmp_path / name, amount, tmp_path / "samples")
    assert path.name == name
    assert path.read_bytes() == kept.encode()
    assert samples.make(tmp_path / name, amount, tmp_path / "samples")[0] == path


def test_a_folder_with_a_table_of_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    source = tmp_path / "source"
    (source / "images").mkdir(parents=True)
    parquet.write_table(pyarrow.table({"id": list(range(1000))}), source / "t.parquet", row_group_size=300)
    for name in IMAGES:
        (source / name).touch()
    amount = samples.parse("1%")
    assert amount is not None
    path, what = samples.make(source, amount, tmp_path / "samples")
    assert parquet.read_table(path / "t.parquet")["id"].to_pylist() == list(range(0, 1000, 100))
    assert sorted(each.name for each in (path / "images").iterdir()) == ["000.png", "100.png"]
    assert what == "sample 1%: 3 of 201 files"


@pytest.mark.parametrize("text", ["0%", "101%", "1.5", "0", "-1", "many"])
def test_what_is_no_sample(text: str) -> None:
    with pytest.raises(InputError, match="such as 1%"):
        samples.parse(text)
