"""What a program imports in any case."""

from pathlib import Path

import pytest

from allranks.contract.commands import Start
from allranks.local.script_imports import program

TRAIN = Start("python", "train.py")


def write(folder: Path, **files: str) -> None:
    """Write Python files: a_b is a/b.py, and a_ is a/__init__.py."""
    for name, text in files.items():
        path = folder / f"{name.replace('_', '/') if name[-1] != '_' else name[:-1] + '/__init__'}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def imports(folder: Path, start: Start = TRAIN, *python_path: str) -> list[str]:
    """Return the modules with their places."""
    found = program(start, str(folder), python_path).imports
    return sorted(f"{each.module} {each}" for each in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch.nn as nn, numpy\n", ["numpy train.py:1", "torch train.py:1"]),
        ("'''import no'''\nfrom torch.nn import (\n  Linear,  # a layer\n  Module,\n)\n", ["torch train.py:2"]),
        ("def train():\n    import torch\n", []),
        ("try:\n    import apex\nexcept ImportError:\n    apex = None\n", []),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n", ["typing train.py:1"]),
        ("import sys\nif sys.version_info < (3, 11):\n    import tomli\n", ["sys train.py:1"]),
        ("if __name__ == '__main__':\n    import torch\n", ["torch train.py:2"]),
        ("text = '''\nimport torch\n'''\n", []),
        ("import torch\nthis is no Python\n", []),
    ],
)
def test_the_imports_of_a_script(tmp_path: Path, text: str, expected: list[str]) -> None:
    write(tmp_path, train=text)
    assert imports(tmp_path) == expected


def test_the_programs_own_modules_are_followed(tmp_path: Path) -> None:
    write(
        tmp_path,
        train="import network\nfrom data import loading, missing\nfrom shared import names\nimport torch\n",
        network="import einops\nimport train\n",
        data_="import pandas\n",
        data_loading="from . import parts\nfrom .parts import Part\nfrom ..other import x\n",
        data_parts="import pyarrow\n",
        libraries_shared="import rich\n",
        elsewhere="import nothing\n",
    )
    assert imports(tmp_path, TRAIN, "libraries") == [
        "einops network.py:1",
        "pandas data/__init__.py:1",
        "pyarrow data/parts.py:1",
        "rich libraries/shared.py:1",
        "torch train.py:4",
    ]


def test_a_script_in_a_folder_finds_what_is_beside_it(tmp_path: Path) -> None:
    write(tmp_path, src_train="import network\nimport helper\n", src_network="", helper="import torch\n")
    assert imports(tmp_path, Start("python", "src/train.py")) == ["helper src/train.py:2"]
    assert imports(tmp_path, Start("python", module="src.train")) == ["network src/train.py:1", "torch helper.py:1"]


def test_what_the_command_itself_needs(tmp_path: Path) -> None:
    write(tmp_path, train="import numpy\n")
    assert imports(tmp_path, Start("torchrun", "train.py", "torch")) == ["numpy train.py:1", "torch the command"]
    assert imports(tmp_path, Start("python", module="deepspeed.launcher")) == ["deepspeed the command"]


def test_a_component_of_mldesigner_executes_its_function(tmp_path: Path) -> None:
    component = (
        "from mldesigner import command_component\n"
        '@command_component(name="prepare", version="1")\n'
        "def prepare_text(x):\n    from preparation import prepare\n"
        "def other():\n    import torch\n"
    )
    write(tmp_path, component=component, preparation="import tokenizers\n")
    start = Start("mldesigner", "component.py", "mldesigner", "prepare")
    assert imports(tmp_path, start) == [
        "mldesigner component.py:1",
        "mldesigner the command",
        "tokenizers preparation.py:1",
    ]


def test_a_runtime_beside_the_code_is_known(tmp_path: Path) -> None:
    write(tmp_path, train="from allranks import runtime\n", allranks_="import nothing\n")
    assert imports(tmp_path) == []
