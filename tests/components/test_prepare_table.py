"""prepare_table: sources, columns as numbers, splits, and what a rank reads of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

Importer = Callable[[str, str], Any]

COUNT = 600


@pytest.fixture
def preparation(code: Importer) -> Any:
    return code("prepare_table", "preparation")


@pytest.fixture
def prepared_table(code: Importer) -> Any:
    return code("prepare_table", "allranks_steps.tables.prepared_table")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A folder of two CSV files: texts, numbers with gaps, weights, and a label of texts."""
    folder = tmp_path / "people"
    folder.mkdir()
    rows = [
        {
            "id": index,
            "city": ["Oslo", "Bern", ""][index % 3],
            "age": None if index % 7 == 0 else index % 90,
            "branch": index % 4,
            "weight": 1 + index % 2,
            "answer": "yes" if index % 5 else "no",
        }
        for index in range(COUNT)
    ]
    for part in range(2):
        table = pa.Table.from_pylist(rows[part::2])
        pa.csv.write_csv(table, folder / f"{part}.csv")
    return folder


def request(preparation: Any, **changed: Any) -> Any:
    base = preparation.Request(
        source="folder",
        folder=None,
        label="answer",
        weight="",
        categorical=(),
        ignored=(),
        task="classification",
        rows=100,
        features=6,
        validation_fraction=0.2,
        test_fraction=0.2,
        seed=3,
    )
    return replace(base, **changed)


def rows_of(folder: Path, split: str) -> pa.Table:
    return pq.read_table(folder / split)


def test_texts_become_numbers_and_every_row_is_in_one_split(preparation: Any, people: Path, tmp_path: Path) -> None:
    chosen = request(preparation, folder=people, weight="weight", categorical=("branch",), ignored=())
    output = tmp_path / "table"
    description = preparation.prepare(chosen, output)
    assert description.features == ("id", "city", "age", "branch")
    assert description.classes == ("no", "yes")
    assert description.categories == {"city": ("", "Bern", "Oslo"), "branch": ()}
    assert sum(description.counts.values()) == COUNT
    everything = pa.concat_tables([rows_of(output, split) for split in ("train", "validation", "test")]).to_pylist()
    assert sorted(row["id"] for row in everything) == list(range(COUNT))
    for row in everything:
        index = row["id"]
        assert row["city"] == [2, 1, 0][index % 3]
        assert row["age"] == (None if index % 7 == 0 else index % 90)
        assert row["answer"] == (1 if index % 5 else 0)
        assert row["weight"] == 1 + index % 2
    train = rows_of(output, "train")["id"].to_pylist()
    assert train != sorted(train), "ranks get consecutive rows, so they are in a random order"
    assert {split: rows_of(output, split).num_rows for split in description.counts} == description.counts


def test_the_same_seed_gives_the_same_files(preparation: Any, people: Path, tmp_path: Path) -> None:
    contents = []
    for name, seed in (("first", 3), ("again", 3), ("other", 4)):
        preparation.prepare(request(preparation, folder=people, seed=seed), tmp_path / name)
        contents.append([file.read_bytes() for file in sorted((tmp_path / name).rglob("*.*"))])
    first, again, other = contents
    assert len(first) == 4
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("source", "task", "classes", "features"),
    [
        ("breast_cancer", "classification", ("malignant", "benign"), 30),
        ("digits", "classification", tuple("0123456789"), 64),
        ("diabetes", "regression", (), 10),
        ("make_classification", "classification", ("0", "1"), 6),
        ("make_regression", "regression", (), 6),
    ],
)
def test_scikit_learns_tables(
    preparation: Any, tmp_path: Path, source: str, task: str, classes: tuple[str, ...], features: int
) -> None:
    description = preparation.prepare(request(preparation, source=source, label="ignored"), tmp_path / "table")
    assert (description.task, description.classes, len(description.features)) == (task, classes, features)
    assert json.loads((tmp_path / "table/table.json").read_text())["label"] == "label"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"label": "price"}, "label: there is no column 'price'"),
        ({"weight": "mass"}, "weight_column: there is no column 'mass'"),
        ({"task": "regression"}, "has texts. Set task to classification"),
        ({"ignored": ("id", "city", "age", "branch", "weight")}, "no column is left"),
        ({"folder": None}, "no `folder` is given"),
        ({"validation_fraction": 0.0001}, "no row is in the validation split"),
    ],
)
def test_what_cannot_be_prepared_leaves_nothing(
    preparation: Any, prepared_table: Any, people: Path, tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    output = tmp_path / "table"
    with pytest.raises(prepared_table.BadTable) as error:
        preparation.prepare(request(preparation, **{"folder": people, **changed}), output)
    assert said in str(error.value)
    assert not list(output.rglob("*")) if output.exists() else True


@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_ranks_read_every_row_once_from_files_of_any_size(
    prepared_table: Any, tmp_path: Path, kind: str, world_size: int
) -> None:
    start = 0
    for part, count in enumerate((5, 0, 17, 1)):
        table = pa.table({"a": list(range(start, start + count)), "b": [0.5] * count, "unused": ["x"] * count})
        if kind == "csv":
            if count:
                pa.csv.write_csv(table, tmp_path / f"{part}.csv")
        else:
            pq.write_table(table, tmp_path / f"{part}.parquet", row_group_size=4)
        start += count
    rows = prepared_table.open_files(tmp_path)
    shares = [prepared_table.read_share(rows, ["b", "a"], rank, world_size) for rank in range(world_size)]
    assert [value for share in shares for value in share["a"].to_pylist()] == list(range(start))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert shares[0].column_names == ["b", "a"]


def test_a_folder_without_tables_is_refused(prepared_table: Any, tmp_path: Path) -> None:
    with pytest.raises(prepared_table.BadTable, match="no file that ends with"):
        prepared_table.open_files(tmp_path)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "b.parquet")
    with pytest.raises(prepared_table.BadTable, match="Parquet and CSV"):
        prepared_table.open_files(tmp_path)
