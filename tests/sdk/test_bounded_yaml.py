import io
import os
import threading
from pathlib import Path

import pytest
import yaml

from allranks.errors import InputError
from allranks.sdk import bounded_yaml
from allranks.sdk.session import session


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb: [x, {c: d}]\n", {"a": 1, "b": ["x", {"c": "d"}]}),
        ("a: &a {b: 1}\nc: *a\nd: {<<: *a, e: 2}\n", {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}}),
        ("", None),
    ],
)
def test_ordinary_files_are_read(text: str, value: object) -> None:
    assert bounded_yaml.load(text) == bounded_yaml.load(io.StringIO(text)) == value


def test_a_pipeline_of_10_000_steps_is_within_the_bounds() -> None:
    step = "{command: echo, environment: e, type: command, inputs: {a: 1, b: 2}, outputs: {c: {type: uri_file}}}"
    text = "jobs:\n" + "".join(f"  s{number}: {step}\n" for number in range(10_000))
    bounded_yaml.check(text)


@pytest.mark.parametrize(
    "text",
    [
        "&a [*a]",
        "a: &a {b: {c: *a}}",
        "[" * 101 + "]" * 101,
        "a: &a [" + "x, " * 1000 + "]\nb: [" + "*a, " * 100 + "]\n",
        "[" + "x, " * 500_001 + "]",
    ],
    ids=["itself", "itself deeper", "levels", "aliases", "values"],
)
def test_limits(text: str) -> None:
    with pytest.raises(bounded_yaml.UnboundedError) as error:
        bounded_yaml.load(text)
    assert error.value.problem_mark is not None
    assert error.value.note


def test_the_sdk_reads_yaml_with_the_same_limits() -> None:
    with session(), pytest.raises(bounded_yaml.UnboundedError):
        yaml.safe_load("&a [*a]")


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yml")
    errors: list[OSError] = []

    def read() -> None:
        try:
            bounded_yaml.read(tmp_path / "pipe.yml")
        except OSError as error:
            errors.append(error)

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    reading.join(10)
    assert [error.strerror for error in errors] == ["it is not a regular file"]


@pytest.mark.parametrize(
    ("content", "where", "found"),
    [
        (b"a: [", "file.yml:1", "it is not YAML"),
        (b"a: \xff", "file.yml", "byte 4 is 0xff"),
        (b"a: &a [*a]", "file.yml:1:8", "it contains itself"),
    ],
)
def test_problems_name_the_place(
    content: bytes, where: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.yml").write_bytes(content)
    with pytest.raises(InputError) as error:
        bounded_yaml.read_values(tmp_path / "file.yml")
    (problem,) = error.value.problems
    assert problem.where == where
    assert found in problem.found
    assert problem.expected
    assert problem.fix
