"""What an MLTable makes of files: each key of its schema is applied, or refused."""

from pathlib import Path
from typing import Any

import pytest

from allranks.local.parallel import tables
from allranks.plan import mltable

pytestmark = pytest.mark.slow  # pandas takes a second to import

pandas = pytest.importorskip("pandas")

CSV = "- read_delimited: {support_multi_line: true}\n"
AS_TEXT = "- read_delimited: {infer_column_types: false, support_multi_line: true}\n"
FILES = {
    "2023/01/a.csv": "n,ok,day,name\n3,yes,2020-01-02,x\n,no,2021-03-04,\n",
    "2024/02/b.csv": 'n,ok,day,name\n4,YES,2020-01-02,"x,\ny"\n5,maybe,,NA\n',
}


def table(
    folder: Path,
    transformations: str,
    files: dict[str, Any] | None = None,
    pattern: str = "**/*.*",
    partition_keys: tuple[str, ...] = (),
) -> Any:
    for name, content in (FILES if files is None else files).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "MLTable").write_text(f"paths: [{{pattern: '{pattern}'}}]\ntransformations:\n{transformations}")
    found = mltable.read(folder)
    assert found is not None
    settings = {"partition_keys": partition_keys, "mini_batch_size": 1 << 30}
    data = tables.Data({"inputs": [[str(folder), found.paths, found.transformations]], **settings})
    ((items, _),) = data.split()
    return data.mini_batch(items)


def values(frame: Any) -> dict[str, list[Any]]:
    """Return the columns of a table, with None for what is missing."""
    return {
        name: [None if pandas.isna(value) else str(value) if hasattr(value, "year") else value for value in frame[name]]
        for name in frame.columns
    }


N = [3, None, 4, 5]
NAMES = ["x", None, "x,\ny", "NA"]
DAYS = ["2020-01-02 00:00:00", "2021-03-04 00:00:00", "2020-01-02 00:00:00", None]
TEXTS = ["2020-01-02", "2021-03-04", "2020-01-02", None]
TIMES = "- convert_column_types: [{columns: day, column_type: {datetime: {formats: ['%d/%m/%Y', '%Y-%m-%d']}}}]\n"
BOOLEAN = (
    "- convert_column_types: [{columns: ok, column_type: {boolean: {true_values: 'yes', false_values: ['no']%s}}}]\n"
)
ROWS = {
    "types": (CSV, {"n": N, "ok": ["yes", "no", "YES", "maybe"], "day": TEXTS, "name": NAMES}),
    "no types": (AS_TEXT, {"n": ["3", None, "4", "5"], "day": TEXTS}),
    "empty texts": (
        "- read_delimited: {empty_as_string: true, infer_column_types: false}\n",
        {"n": ["3", "", "4", "5"], "name": ["x", "", "x,\ny", "NA"]},
    ),
    "path": (
        "- read_delimited: {include_path_column: true, path_column: Path}\n",
        {"Path": ["2023/01/a.csv"] * 2 + ["2024/02/b.csv"] * 2, "n": N},
    ),
    "int": (
        AS_TEXT + "- convert_column_types: [{columns: [n, name], column_type: int}]\n",
        {"n": N, "name": [None] * 4},
    ),
    "float": (AS_TEXT + "- convert_column_types: [{columns: n, column_type: float}]\n", {"n": [3.0, None, 4.0, 5.0]}),
    "string": (CSV + "- convert_column_types: [{columns: day, column_type: string}]\n", {"n": N}),
    "boolean": (AS_TEXT + BOOLEAN % "", {"ok": [True, False, True, None]}),
    "boolean or true": (AS_TEXT + BOOLEAN % ", mismatch_as: 'true'", {"ok": [True, False, True, True]}),
    "boolean or false": (AS_TEXT + BOOLEAN % ", mismatch_as: false", {"ok": [True, False, True, False]}),
    "datetime": (CSV + TIMES, {"day": DAYS}),
    "filter": (CSV + '- filter: \'col("n") > 3 and not (col("name") == "NA")\'\n', {"n": [4]}),
    "filter without what is missing": (CSV + '- filter: \'col("n") != 4 or col("n") - 1 == 3\'\n', {"n": [3, 4, 5]}),
    "filter by time": (CSV + TIMES + "- filter: 'col(\"day\") >= datetime(2021, 1, 1)'\n", {"name": [None]}),
    "keep": (CSV + "- keep_columns: [name, nothing, n]\n", {"n": N, "name": NAMES}),
    "drop": (CSV + "- drop_columns: day\n- drop_columns: [nothing, ok]\n", {"n": N, "name": NAMES}),
    "skip and take": (CSV + "- skip: 1\n- take: 2\n", {"n": [None, 4]}),
    "sample of all": (CSV + "- take_random_sample: {probability: 1}\n", {"n": N}),
    "folders": (
        CSV + "- extract_columns_from_partition_format: {partition_format: '/{year}/{month}/{file}.csv'}\n",
        {"year": ["2023", "2023", "2024", "2024"], "file": ["a", "a", "b", "b"]},
    ),
    "folders as a time": (
        CSV + "- extract_columns_from_partition_format: {partition_format: '{when:yyyy/MM}/{file}.csv'}\n",
        {"when": ["2023-01-01 00:00:00"] * 2 + ["2024-02-01 00:00:00"] * 2, "n": N},
    ),
}


@pytest.mark.parametrize(("transformations", "expected"), ROWS.values(), ids=ROWS)
def test_rows(tmp_path: Path, transformations: str, expected: dict[str, list[Any]]) -> None:
    found = values(table(tmp_path, transformations))
    if "Path" in found:
        assert next(iter(found)) == "Path"
        found["Path"] = [str(Path(path).relative_to(tmp_path)) for path in found["Path"]]
    assert {name: found[name] for name in expected} == expected
    if "keep_columns" in transformations or "drop_columns" in transformations:
        assert found.keys() == expected.keys()


HEADERS = {
    "no_header": {"Column1": ["a", "1", "b", "3"], "Column2": ["b", "2", "c", "4"]},
    "from_first_file": {"a": [1, "b", "3"], "b": [2, "c", "4"]},
    "all_files_same_headers": {"a": [1, 3], "b": [2, 4]},
    "all_files_different_headers": {"a": [1, None], "b": [2, 3], "c": [None, 4]},
}


@pytest.mark.parametrize(("header", "expected"), HEADERS.items(), ids=HEADERS)
def test_headers(tmp_path: Path, header: str, expected: dict[str, list[Any]]) -> None:
    files = {"1.csv": "a,b\n1,2\n", "2.csv": "b,c\n3,4\n"}
    assert values(table(tmp_path, f"- read_delimited: {{header: {header}}}\n", files)) == expected


@pytest.mark.parametrize(
    ("name", "encoding"),
    [("utf8", "utf-8"), ("'utf8 bom'", "utf-8-sig"), ("iso-8859-1", "latin-1"), ("utf16", "utf-16"),
     ("windows1252", "cp1252")],
)  # fmt: skip
@pytest.mark.parametrize("reader", ["delimited", "json_lines"])
def test_encodings(tmp_path: Path, reader: str, name: str, encoding: str) -> None:
    text = "n;m\né;ü\n" if reader == "delimited" else '{"n": "é"}\n'
    delimiter = ", delimiter: ;" if reader == "delimited" else ""
    frame = table(tmp_path, f"- read_{reader}: {{encoding: {name}{delimiter}}}\n", {"x.txt": text.encode(encoding)})
    assert list(frame["n"]) == ["é"]


def test_a_delimiter_of_several_characters(tmp_path: Path) -> None:
    frame = table(tmp_path, "- read_delimited: {delimiter: '||'}\n", {"x.csv": "n||m\n1||2\n"})
    assert values(frame) == {"n": [1], "m": [2]}


def test_lines_of_json(tmp_path: Path) -> None:
    files = {"x.jsonl": '{"a": 1, "b": {"c": 2}}\nbroken\n\n{"a": 2, "d": "2020-01-02"}\n'}
    dropped = "- read_json_lines: {invalid_lines: drop, include_path_column: true}\n"
    found = values(table(tmp_path, dropped, files))
    assert found.pop("Path") == [str(tmp_path / "x.jsonl")] * 2
    assert found == {"a": [1, 2], "b": [{"c": 2}, None], "d": [None, "2020-01-02"]}
    with pytest.raises(tables.DataError, match=r"x.jsonl cannot be read: JSONDecodeError"):
        table(tmp_path, "- read_json_lines\n", files)


def test_parquet_with_its_path(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pandas.DataFrame({"n": [1, 2]}).to_parquet(tmp_path / "x.parquet")
    found = values(table(tmp_path, "- read_parquet: {include_path_column: true}\n", {}))
    assert found == {"Path": [str(tmp_path / "x.parquet")] * 2, "n": [1, 2]}


def test_a_sample_is_the_same_in_each_process(tmp_path: Path) -> None:
    files = {"x.csv": "n\n" + "".join(f"{n}\n" for n in range(1000))}
    first, again = (table(tmp_path, CSV + "- take_random_sample: {probability: 0.3}\n", files) for _ in range(2))
    assert list(first["n"]) == list(again["n"])
    assert 200 < len(first) < 400


def test_what_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(tables.DataError, match="filter fails: UndefinedVariableError: "):
        table(tmp_path, CSV + "- filter: 'col(\"nothing\") > 1'\n")
    with pytest.raises(tables.DataError, match=r"partition key town is not a column; the columns are n, ok, day, name"):
        table(tmp_path, CSV, partition_keys=("town",))
    with pytest.raises(tables.DataError, match=r"x.csv cannot be read: EmptyDataError: "):
        table(tmp_path, CSV, {"x.csv": ""}, "x.csv")


REFUSED = {
    "delta lake": (
        "[read_delta_lake: {version_as_of: 1}]",
        "read_delta_lake is not applied by the local engine; it app",
    ),
    "misspelt": (
        "[read_delimited: {delimeter: ','}]",
        "read_delimited: delimeter is not applied by the local engine; did you mean d",
    ),
    "encoding": ("[read_delimited: {encoding: utf7}]", "read_delimited: encoding: 'utf7' is not one of ['utf8'"),
    "no formats": (
        "[read_parquet, convert_column_types: [{columns: n, column_type: {datetime: {}}}]]",
        "column_type: datetime: 'formats' is a required property",
    ),
    "filter": (
        "[read_parquet, filter: 'col(\"n\").is_null()']",
        'filter: col("n").is_null() is not applied by the local',
    ),
    "count": ("[read_parquet, take: many]", "take: 'many' is not of type 'integer'"),
    "without rows": ("[take: 5]", "take is not applied by the local engine here; it applies one read_ transformation"),
    "read twice": ("[read_parquet, read_delimited]", "read_delimited is not applied by the local engine here"),
    "nothing": ("[{}]", "should be non-empty"),
    "other key": ("[]\nquery_source: {handler: x}", "query_source is not applied by the local engine"),
}


@pytest.mark.parametrize(("text", "found"), REFUSED.values(), ids=REFUSED)
def test_another_key_or_value_is_refused_by_name(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "MLTable").write_text(f"paths: [{{file: x}}]\ntransformations: {text}\n")
    with pytest.raises(OSError, match="MLTable: ") as refused:
        mltable.read(tmp_path)
    assert found in str(refused.value)
    assert "\n" not in str(refused.value)


def test_keys_that_change_no_rows_are_read(tmp_path: Path) -> None:
    more = "$schema: x\ntype: mltable\nmetadata: {a: 1}\ntraits: {index_columns: [n]}\n"
    (tmp_path / "MLTable").write_text(
        f"{more}paths: [{{folder: ./}}]\ntransformations:\n- read_delimited: {{partition_size: 20971520}}\n"
    )
    assert mltable.read(tmp_path) is not None
