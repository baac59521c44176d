"""Commands that are one Python program are recognized, with what it is started with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from allranks.contract.expanded_command import PythonProgram, python_program

BASH = shutil.which("bash") or "/bin/bash"
PYTHON = Path(sys.executable)
SEEN = """
import json, os, sys
print(json.dumps([sys.argv, sys.orig_argv, sys.executable, dict(os.environ), __package__]))
"""


def environment(**variables: str) -> dict[str, str]:
    # Python itself sets LC_CTYPE in the C locale.
    return {
        "LANG": "C.UTF-8",
        "PATH": f"{PYTHON.parent}:/usr/bin:/bin",
        "DATA": "/data/a",
        "MORE": "--x 1",
        **variables,
    }


def recognized(command: str, folder: Path, **variables: str) -> PythonProgram | None:
    return python_program(BASH, command, environment(**variables), str(folder), PYTHON)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(SEEN)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(SEEN)
    for name, first in (("own", f"#!{PYTHON}"), ("by_env", "#!/usr/bin/env python3"), ("other", "#!/bin/sh")):
        (tmp_path / name).write_text(f"{first}\n{SEEN}")
        (tmp_path / name).chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "variables"),
    [
        ("python train.py --data $DATA", {}),
        ("python3 -u train.py $MORE \\\n  --name 'a b'\n", {}),
        (f"{PYTHON} train.py", {"SHLVL": "4"}),
        ("OMP_NUM_THREADS=3 A=$DATA python train.py", {}),
        ("exec python ./train.py", {}),
        ("env B=1 python train.py", {}),
        ("python -m package one two", {}),
        ("./own --x", {}),
        ("./by_env --x", {}),
    ],
)
def test_a_program_sees_the_same_as_under_bash(command: str, variables: dict[str, str], folder: Path) -> None:
    found = recognized(command, folder, **variables)
    assert found is not None
    output = subprocess.run(
        [BASH, "-c", command], cwd=folder, env=environment(**variables), capture_output=True, text=True, check=True
    ).stdout
    argv, original, _, environ, _ = json.loads(output)
    program = ["-m", found.module] if found.module else [found.script]
    assert argv[1:] == list(found.arguments)
    assert original == [found.executable_name, *found.options, *program, *found.arguments]
    by_shell = ("PWD", "SHLVL") if found.variables.get("_") else ("PWD", "SHLVL", "_")
    seen = {name: value for name, value in environ.items() if name not in by_shell or name in variables}
    assert seen == environment(**variables) | dict(found.variables)


@pytest.mark.parametrize("name", ["torchrun", "mldesigner"])
def test_a_console_script_of_the_environment_is_recognized(name: str, folder: Path) -> None:
    found = recognized(f"{name} --nproc-per-node 2 train.py", folder)
    assert found is not None
    assert found.script == str(PYTHON.parent / name)
    assert found.arguments == ("--nproc-per-node", "2", "train.py")


@pytest.mark.parametrize(
    "command",
    [
        "python",
        "python -c 'print()'",
        "python -",
        "python -O train.py",
        "python -W error train.py",
        "python -X dev train.py",
        "python -I train.py",
        "python -um package",
        "python missing.py",
        "python package",
        "python $UNSET",
        "./other",
        "./train.py",
        "env -i python train.py",
        "env PATH=/bin python train.py",
        "exec -a name python train.py",
        "time python train.py",
        "nohup python train.py",
        "/usr/bin/python3 train.py",
        "echo python train.py",
    ],
)
def test_another_command_is_not(command: str, folder: Path) -> None:
    assert recognized(command, folder) is None


def test_what_changes_bash_leaves_the_command_to_bash(folder: Path) -> None:
    assert recognized("python train.py", folder, BASH_ENV="/x") is None
    assert recognized("python train.py", folder, **{"BASH_FUNC_python%%": "() { true; }"}) is None
    assert python_program("/bin/sh", "python train.py", environment(), str(folder), PYTHON) is None


def test_an_interpreter_of_another_environment_is_not_recognized(folder: Path) -> None:
    other = folder / "bin"
    other.mkdir()
    os.symlink(PYTHON, other / "python")
    assert recognized("python train.py", folder, PATH=f"{other}:/bin") is None
