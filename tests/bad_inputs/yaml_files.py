"""Files that are not YAML, or are YAML that nobody can mean."""

from __future__ import annotations

import os
from pathlib import Path

from bad_inputs.row import Row, job

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)


def _fifo(folder: Path) -> None:
    os.mkfifo(folder / "pipe.yml")


def _of(text: str | bytes, *said: str) -> Row:
    return Row("run file.yml", said, files={"file.yml": text})


ROWS = {
    "an open bracket": _of("command: [echo\nenvironment: x\n", "file.yml:2", "it is not YAML", "expected"),
    "an open quote": _of('command: "echo\n', "file.yml:1", "it is not YAML", "quoted scalar"),
    "a tab": _of("type: pipeline\njobs:\n\ta: 1\n", "file.yml:3", "it is not YAML", "token"),
    "wrong indentation": _of("command: echo\n  environment: x\n", "file.yml:2", "it is not YAML"),
    "an empty file": _of("", "file.yml", "it is empty", "type: pipeline"),
    "comments alone": _of("# nothing\n", "file.yml", "it is empty"),
    "a list": _of("- a\n- b\n", "file.yml", "it is a list", "a mapping of keys to values"),
    "a text": _of("hello\n", "file.yml", "it is a single value", "a mapping of keys to values"),
    "two documents": _of("command: a\n---\ncommand: b\n", "file.yml:2", "it is not YAML", "single document"),
    "a key that is a number": _of("1: a\n", "file.yml:1", "key 1", 'put it in quotes: "1"'),
    "a key that is a list": _of("[a, b]: c\n", "file.yml:1:1", "it is not YAML", "unhashable key"),
    "binary content": _of(b"\x00\x01\x02\x03", "file.yml", "it is not YAML", "character #x0000"),
    "no UTF-8": _of(b"command: \xff\xfe\n", "file.yml", "it is not UTF-8", "byte 10"),
    "UTF-16": _of("command: echo".encode("utf-16"), "file.yml", "it is not UTF-8", "save it as UTF-8"),
    "a control character": _of('command: "a\x07"\n', "file.yml", "it is not YAML", "character #x0007", "position 11"),
    "an unknown alias": _of("command: *nothing\n", "file.yml:1", "undefined alias"),
    "a value that contains itself": _of("command: &a [*a]\n", "file.yml:1", "it contains itself", "values that end"),
    "3,000 brackets": _of("a: " + "[" * 3000 + "]" * 3000, "file.yml:1", "inside of each other", "100 levels"),
    "100,000 brackets": _of("a: " + "[" * 100_000, "file.yml:1", "inside of each other", "100 levels"),
    "aliases of aliases": _of(BOMB, "file.yml:", "repeat values", "at most 50,000"),
    "an unknown tag": _of("command: !python/object:os.system x\n", "file.yml:1", "it is not YAML", "tag"),
    "a date that is none": _of("command: 2024-13-45\n", "file.yml", "month must be in 1..12"),
    "a large file": _of(b"a: b\n# " + b"x" * (17 << 20), "file.yml", "larger than 16 MB"),
    "a pipe": Row("run pipe.yml", ("pipe.yml", "it is not a regular file", "a pipeline's file"), make=_fifo),
    "a device": Row("run /dev/null", ("/dev/null", "it is not a regular file", "a pipeline's file")),
    "a component that is no YAML": Row(
        "run pipeline.yml",
        ("part.yml:1", "it is not YAML", "did not find expected node content"),
        files={"pipeline.yml": "type: pipeline\njobs: {a: {type: command, component: ./part.yml}}", "part.yml": "a: ["},
    ),
    "a component that contains itself": Row(
        "run pipeline.yml",
        ("part.yml:1", "it contains itself"),
        files={
            "pipeline.yml": "type: pipeline\njobs: {a: {type: command, component: ./part.yml}}",
            "part.yml": "a: &a [*a]",
        },
    ),
    "an environment that contains itself": Row(
        "run file.yml",
        ("env.yml", "contains itself"),
        files={"file.yml": job(environment="file:./env.yml"), "env.yml": "a: &a [*a]"},
    ),
    "a schedule that is no YAML": Row(
        "schedules next 3 file.yml", ("file.yml:1", "it is not YAML"), files={"file.yml": "trigger: ["}
    ),
    "a schedule of aliases": Row("schedules next 3 file.yml", ("file.yml:", "repeat values"), files={"file.yml": BOMB}),
    "a component to check": Row(
        "check component.yaml", ("component.yaml:1", "it is not YAML"), files={"component.yaml": "a: ["}
    ),
    "a component of aliases to check": Row(
        "check component.yaml", ("component.yaml", "repeat values"), files={"component.yaml": BOMB}
    ),
    "a folder with a pipe": Row("check .", ("it contains no component, no job and no pipeline",), make=_fifo),
}
