"""A step's program gets its arguments from its component's spec."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from allranks import runtime
from allranks.contract import report
from allranks.errors import InputError
from pipeline_files import write

SPEC = """\
name: train
is_deterministic: true
something_new: {of: [a, later, version]}
inputs:
  data: {type: uri_folder, mode: ro_mount}
  start: {type: mlflow_model, optional: true}
  model: {type: string, enum: [small, none, large], default: none}
  steps: {type: integer, min: -1, max: 100, default: 8, something_new: 1}
  rate: {type: number, min: 1e-8, max: 1.0, default: 1}
  dropout: {type: number, min: 0.0, optional: true}
  mirrored: {type: boolean, default: false}
  level: {type: integer, enum: [0, 2, 3], default: 2}
  title: {type: string, optional: true}
  note: string
outputs:
  trained: {type: mlflow_model}
  score: {type: number, is_control: true}
command: >-
  PYTHONUNBUFFERED=1 torchrun --nproc-per-node 2 train.py --data ${{inputs.data}}
  $[[--initial-model "${{ inputs.start }}"]]
  --preset ${{inputs.model}} --max_steps=${{inputs.steps}} --learning_rate ${{inputs.rate}}
  $[[--dropout ${{inputs.dropout}}]] --flip ${{inputs.mirrored}} --level ${{inputs.level}}
  $[[--title '${{inputs.title}}']] --note '${{inputs.note}}'
  --launch mpi --quick --spec variant/component.yaml
  --model ${{outputs.trained}} --score "${{outputs.score}}"
"""
DEFAULTS = {
    "data": None,
    "initial_model": None,
    "preset": "none",
    "max_steps": 8,
    "learning_rate": 1.0,
    "dropout": None,
    "flip": False,
    "level": 2,
    "title": None,
    "note": None,
    "launch": "mpi",
    "quick": False,
    "model": None,
    "score": None,
}
REQUIRED = ("--data", "in", "--note", "", "--model", "out/model", "--score", "out/score")
UNKNOWN = "the program's arguments: {!r} is unknown\n  expected: an option of the command in {{spec}}\n  fix: {}"
PATHS = {"data": Path("in"), "note": "", "model": Path("out/model"), "score": Path("out/score")}


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return write(tmp_path, "component.yaml", SPEC)


def given(values: dict[str, Any]) -> dict[str, tuple[type, Any]]:
    return {name: (type(value), value) for name, value in values.items()}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {}),
        (["--preset", "large", "--max_steps", "-1", "--level", "3"], {"preset": "large", "max_steps": -1, "level": 3}),
        (["--learning_rate=1e-3", "--dropout", "0"], {"learning_rate": 0.001, "dropout": 0.0}),
        (["--flip", "True"], {"flip": True}),
        (["--flip", "false"], {"flip": False}),
        (["--title", "--preset"], {"title": "--preset"}),
        (["--title=a=b"], {"title": "a=b"}),
        (["--initial-model", "runs/1", "--quick"], {"initial_model": Path("runs/1"), "quick": True}),
        (["--launch", "torchrun"], {"launch": "torchrun"}),
        (["--spec", "elsewhere/component.yaml"], {}),
    ],
)
def test_values_have_the_types_of_the_inputs(spec: Path, words: list[str], expected: dict[str, Any]) -> None:
    args = runtime.arguments(spec, [*REQUIRED, *words])
    assert given(vars(args)) == given(DEFAULTS | PATHS | expected)


def test_the_defaults_by_option(spec: Path) -> None:
    assert given(dict(runtime.argument_defaults(spec))) == given(DEFAULTS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max_steps", "2.5"], "input steps: '2.5'\n  expected: a whole number, at least -1 and at most 100"),
        (["--max_steps", "101"], "input steps: 101\n  expected: a whole number, at least -1 and at most 100"),
        (["--learning_rate", "0"], "input rate: 0\n  expected: a number, at least 1e-08 and at most 1"),
        (["--dropout", "nan"], "input dropout: nan\n  expected: a number, at least 0"),
        (["--preset", "medium"], "input model: 'medium'\n  expected: one of small, none, large"),
        (["--level", "1"], "input level: '1'\n  expected: one of 0, 2, 3"),
        (["--flip", "yes"], "input mirrored: 'yes'\n  expected: True or False"),
        (["--flip", "--level", "3"], "input mirrored: no value after --flip\n  expected: True or False"),
        (["--initial-model"], "input start: no value after --initial-model\n  expected: a path"),
        (
            ["--presets", "small"],
            UNKNOWN.format("--presets", "did you mean --preset?"),
        ),
        (
            ["xyz"],
            UNKNOWN.format("xyz", "remove it, or add it to the command of component.yaml"),
        ),
        (
            ["--level", "x", "--flip", "y"],
            "input level: 'x'\n  expected: one of 0, 2, 3\ninput mirrored: 'y'\n  expected: True or False",
        ),
    ],
)
def test_arguments_that_do_not_match_the_spec(spec: Path, words: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        runtime.arguments(spec, [*REQUIRED, *words])
    assert str(caught.value) == message.format(spec=spec)


def test_missing_arguments_are_listed(spec: Path) -> None:
    with pytest.raises(InputError) as caught:
        runtime.arguments(spec, ["--note", "n"])
    found = [(problem.where, problem.found) for problem in caught.value.problems]
    names = [("input data", "data"), ("output trained", "model"), ("output score", "score")]
    assert found == [(where, f"--{name} is missing") for where, name in names]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("a: [", "while parsing"),
        ("[]", "it has no command"),
        ("command: [python]", "it has no command"),
    ],
)
def test_a_spec_that_cannot_be_read(tmp_path: Path, text: str | None, message: str) -> None:
    spec = tmp_path / "component.yaml"
    if text is not None:
        spec.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        runtime.arguments(spec, [])
    assert caught.value.problems[0].where == str(spec)


PROGRAM = """\
from allranks.runtime import arguments
import json, sys
args = arguments()
assert "torch" not in sys.modules
print(json.dumps(vars(args)))
import bad
"""
SMALL = "inputs: {{x: {{type: integer, max: {limit}}}}}\ncommand: python train.py --x ${{{{inputs.x}}}}\n"


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the program in another folder than its own."""
    environ = {**os.environ, report.VARIABLE: str(folder / "report")}
    command = [sys.executable, *words]
    return subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("launcher", [(), ("-m", "allranks.runtime")])
def test_a_program_reads_the_spec_beside_it_and_ends_with_one_message(
    tmp_path: Path, launcher: tuple[str, ...]
) -> None:
    write(tmp_path, "code/component.yaml", SMALL.format(limit=5))
    write(tmp_path, "code/variant/component.yaml", SMALL.format(limit=7))
    write(tmp_path, "code/bad.py", "from allranks.errors import *\nraise InputError(Problem('input x', 'too few'))")
    script = (*launcher, write(tmp_path, "code/train.py", PROGRAM).relative_to(tmp_path).as_posix())
    for words, output, errors in (
        (["--x", "6"], None, "input x: 6\n  expected: a whole number, at most 5\n"),
        (["--spec", "variant/component.yaml", "--x", "6"], {"x": 6}, "input x: too few\n"),
        (["--spec", "variant/component.yaml", "--x", "8"], None, "input x: 8\n  expected: a whole number, at most 7\n"),
    ):
        (tmp_path / "report").unlink(missing_ok=True)
        ended = run(tmp_path, *script, *words)
        assert (ended.returncode, ended.stderr) == (2, errors)
        assert (json.loads(ended.stdout) if ended.stdout else None) == output
        events, _ = report.read(tmp_path / "report")
        assert [(event.type, event.message) for event in events] == [("allranks.errors.InputError", errors.strip())]


def test_other_exceptions_keep_their_traceback(tmp_path: Path) -> None:
    write(tmp_path, "component.yaml", SMALL.format(limit=5))
    write(tmp_path, "bad.py", "1 / 0")
    ended = run(tmp_path, write(tmp_path, "train.py", PROGRAM).name, "--x", "1")
    assert ended.returncode == 1
    assert "Traceback" in ended.stderr
    assert "ZeroDivisionError" in ended.stderr


def test_without_pyyaml_the_message_names_it(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    write(spec.parent, "other.yaml", SPEC)  # not read yet
    with pytest.raises(InputError, match="add pyyaml to the environment"):
        runtime.arguments(spec.parent / "other.yaml", [])
