"""prepare_table: sources, columns as numbers, splits, and what a rank reads of them."""

import json
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from component_processes import folder_of

from allranks.errors import InputError
from allranks.runtime import arguments
from allranks_steps.tables import prepared_table

Importer = Callable[[str, str], Any]

COUNT = 600


@pytest.fixture
def preparation(code: Importer) -> Any:
    return code("prepare_table", "prepare_table")


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


def request(output: Path, **changed: Any) -> Namespace:
    """The arguments of the program for the people, with these changes."""
    spec = folder_of("prepare_table") / "component.yaml"
    base = arguments(spec, ["--source", "folder", "--label_column", "answer", "--table", str(output)])
    base.row_count, base.feature_count, base.seed = 100, 6, 3
    base.validation_fraction = base.test_fraction = 0.2
    return Namespace(**{**vars(base), **changed})


def rows_of(folder: Path, split: str) -> pa.Table:
    return pq.read_table(folder / split)


def test_texts_become_numbers_and_every_row_is_in_one_split(preparation: Any, people: Path, tmp_path: Path) -> None:
    output = tmp_path / "table"
    chosen = request(output, folder=people, weight_column="weight", categorical_columns="branch")
    description = preparation.prepare(chosen)
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
        preparation.prepare(request(tmp_path / name, folder=people, seed=seed))
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
    description = preparation.prepare(request(tmp_path / "table", source=source, label_column="ignored"))
    assert (description.task, description.classes, len(description.features)) == (task, classes, features)
    assert json.loads((tmp_path / "table/table.json").read_text())["label"] == "label"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"label_column": "price"}, "input label_column: there is no column 'price'"),
        ({"weight_column": "mass"}, "input weight_column: there is no column 'mass'"),
        ({"task": "regression"}, "'answer' has texts"),
        ({"ignored_columns": "id, city,age,branch,weight"}, "no column is left"),
        ({"folder": None}, "input folder: it is not given, and source is 'folder'"),
        ({"validation_fraction": 0.0001}, "no row is in the validation split"),
    ],
)
def test_what_cannot_be_prepared_leaves_nothing(
    preparation: Any, people: Path, tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    output = tmp_path / "table"
    with pytest.raises(InputError) as error:
        preparation.prepare(request(output, **{"folder": people, **changed}))
    assert said in str(error.value)
    assert not list(output.rglob("*")) if output.exists() else True


@pytest.mark.parametrize("world_size", [1, 2, 3, 7])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_ranks_read_every_row_once_from_files_of_any_size(tmp_path: Path, kind: str, world_size: int) -> None:
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
    shares = [prepared_table.read_share(rows, ["b", "a"], rank, world_size, "input data") for rank in range(world_size)]
    assert [value for share in shares for value in share["a"].to_pylist()] == list(range(start))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert shares[0].column_names == ["b", "a"]


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file that ends with"):
        prepared_table.open_files(tmp_path)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "b.parquet")
    with pytest.raises(InputError, match="Parquet and CSV"):
        prepared_table.open_files(tmp_path)
