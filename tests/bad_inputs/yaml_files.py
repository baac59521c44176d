"""Files that are not YAML, or are YAML that nobody can mean."""

import os
from pathlib import Path

from bad_inputs.row import Row

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
    "an empty file": _of("", "file.yml", "it is empty", "type: pipeline"),
    "a list": _of("- a\n- b\n", "file.yml", "it is a list", "a mapping of keys to values"),
    "two documents": _of("command: a\n---\ncommand: b\n", "file.yml:2", "it is not YAML", "single document"),
    "a key that is a number": _of("1: a\n", "file.yml:1", "key 1", 'put it in quotes: "1"'),
    "binary content": _of(b"\x00\x01\x02\x03", "file.yml", "it is not YAML", "character #x0000"),
    "no UTF-8": _of(b"command: \xff\xfe\n", "file.yml", "it is not UTF-8", "byte 10"),
    "a value that contains itself": _of("command: &a [*a]\n", "file.yml:1", "it contains itself", "values that end"),
    "3,000 brackets": _of("a: " + "[" * 3000 + "]" * 3000, "file.yml:1", "inside of each other", "100 levels"),
    "aliases of aliases": _of(BOMB, "file.yml:", "repeat values", "at most 50,000"),
    "a large file": _of(b"a: b\n# " + b"x" * (17 << 20), "file.yml", "larger than 16 MB"),
    "a pipe": Row("run pipe.yml", ("pipe.yml", "it is not a regular file", "a pipeline's file"), make=_fifo),
    "a component that is no YAML": Row(
        "run pipeline.yml",
        ("part.yml:1", "it is not YAML", "did not find expected node content"),
        files={"pipeline.yml": "type: pipeline\njobs: {a: {type: command, component: ./part.yml}}", "part.yml": "a: ["},
    ),
    "a schedule that is no YAML": Row(
        "schedules next 3 file.yml", ("file.yml:1", "it is not YAML"), files={"file.yml": "trigger: ["}
    ),
    "a component to check": Row(
        "check component.yaml", ("component.yaml:1", "it is not YAML"), files={"component.yaml": "a: ["}
    ),
    "a folder with a pipe": Row("check .", ("it contains no component, no job and no pipeline",), make=_fifo),
}
