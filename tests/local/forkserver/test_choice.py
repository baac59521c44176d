"""Which fork server serves the ranks of a step."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.contract.commands import start_of
from allranks.contract.expanded_command import PythonProgram
from allranks.local.forkserver.choice import ForkServerSpecs, hides_installed, preloaded
from allranks.local.forkserver.packages import PRELOADED, common
from allranks.local.instances.supervisor import Program

PYTHON = Path(sys.executable)


def modules(folder: Path, text: str, *, gpus: bool = False) -> tuple[str, ...]:
    (folder / "train.py").write_text(text)
    return preloaded(start_of("train.py", "", ()), str(folder), (), gpus=gpus)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import json\n", []),
        ("import numpy, yaml\n", []),
        ("import numpy\nfrom torch import nn\n", ["numpy", "torch", "torch.distributed"]),
        ("import torch\ntorch.optim.SGD\n", ["torch", "torch.distributed", "torch._dynamo"]),
        ("def main():\n    import pandas\nmain()\n", ["pandas"]),
        ("def main():\n    import pandas\nif __name__ == '__main__':\n    main()\n", ["pandas"]),
        ("def unused():\n    import pandas\n", []),
        ("if False:\n    import pandas\n", []),
        (
            "from allranks import runtime\n",
            ["torch", "torch.distributed", "torch._dynamo", "torch.distributed.checkpoint"],
        ),
        ("from allranks.runtime import arguments, clean_exit, detect\n", []),
        ("from allranks.runtime.tensorflow import main\nimport tensorflow\n", ["tensorflow"]),
        ("import lightning, mpi4py, horovod.torch, unknown_package\n", []),
        ("import lightning, torch\n", ["torch", "torch.distributed"]),
    ],
)
def test_known_packages_that_a_script_imports_in_any_case_are_preloaded(
    text: str, expected: list[str], tmp_path: Path
) -> None:
    assert list(modules(tmp_path, text)) == expected


@pytest.mark.parametrize("text", ["def log():\n    import mlflow\n", "from allranks import runtime\n"])
def test_mlflow_is_preloaded_for_steps_with_a_run(text: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(text)
    start = start_of("train.py", "", ())
    assert "mlflow" not in preloaded(start, str(tmp_path), (), gpus=False)
    assert "mlflow" in preloaded(start, str(tmp_path), (), gpus=False, tracked=True)


def test_modules_of_the_program_itself_are_not_packages(tmp_path: Path) -> None:
    (tmp_path / "pandas.py").write_text("import torch\n")
    assert modules(tmp_path, "import pandas\n") == ("torch", "torch.distributed")


def test_a_package_that_looks_for_gpus_is_left_to_ranks_with_gpus(tmp_path: Path) -> None:
    text = "import torch, deepspeed\n"
    assert "deepspeed" in modules(tmp_path, text)
    assert "deepspeed" not in modules(tmp_path, text, gpus=True)


def test_a_launcher_is_preloaded_with_what_its_script_imports(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import pandas\n")
    start = start_of("/environment/bin/torchrun", "", ("--nproc-per-node", "2", "train.py"))
    found = preloaded(start, str(tmp_path), (), gpus=False)
    assert {"torch", "torch.distributed.run", "pandas"} <= set(found)


def test_names_that_are_imported_from_a_lazy_package(tmp_path: Path) -> None:
    text = "from transformers import AutoModel, Trainer\nfrom transformers.utils import logging\n"
    found = modules(tmp_path, text)
    assert found[:2] == ("transformers", "torch._dynamo")
    names = ("AutoModel", "PreTrainedModel", "Trainer", "utils")
    assert found[2:] == tuple(f"transformers:{name}" for name in names)


@pytest.mark.parametrize(
    ("first", "second", "is_served"),
    [
        ({"OMP_NUM_THREADS": "1", "RANK": "0"}, {"OMP_NUM_THREADS": "1", "RANK": "1"}, True),
        ({"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "2"}, False),
        ({"HF_HOME": "/a"}, {}, False),
        ({"TF_CONFIG": "{0}", "MLFLOW_RUN_ID": "a"}, {"TF_CONFIG": "{1}", "MLFLOW_RUN_ID": "b"}, True),
        ({"CUDA_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": "1"}, True),
        ({"CUDA_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": ""}, False),
        ({"PYTHONPATH": "/a:/b"}, {"PYTHONPATH": "/a:/b"}, True),
        ({"PYTHONPATH": "src"}, {"PYTHONPATH": "src"}, False),
        ({"PYTHONDEVMODE": "1"}, {"PYTHONDEVMODE": "1"}, False),
    ],
)
def test_ranks_share_a_fork_server_if_they_agree_on_what_imports_read(
    first: dict[str, str], second: dict[str, str], is_served: bool
) -> None:
    assert (common([first, second]) is not None) is is_served


def test_steps_share_a_fork_server_unless_imports_differ(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import pandas\n")
    specs = ForkServerSpecs()
    rank = Program(
        "rank 0",
        (),
        {"PATH": "/bin", "RANK": "0", "AZUREML_RUN_ID": "a"},
        str(tmp_path),
        "log",
        PythonProgram((), script="train.py", variables={"_": "x"}),
    )
    spec = specs.of_programs([rank], PYTHON)
    assert spec is not None
    assert spec.environment == (("PATH", "/bin"),)
    assert spec.modules == ("pandas",)
    other = replace(rank, environment={**rank.environment, "AZUREML_RUN_ID": "b"})
    assert specs.of_programs([rank, other], PYTHON) == spec
    assert rank.python is not None
    assigned = replace(rank, python=replace(rank.python, variables={"OMP_NUM_THREADS": "3"}))
    changed = specs.of_programs([assigned], PYTHON)
    assert changed is not None
    assert changed.environment == (("OMP_NUM_THREADS", "3"), ("PATH", "/bin"))
    assert specs.of_programs([rank, assigned], PYTHON) is None
    assert specs.of_programs([replace(rank, python=None)], PYTHON) is None


def test_a_fork_server_with_more_of_torch_serves_too(tmp_path: Path) -> None:
    programs = {}
    for name, text in {
        "more": "import torch\nfrom torch import optim\n",
        "less": "import torch\n",
        "other": "import torch, pandas\n",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
        python = PythonProgram((), script=f"{name}.py")
        programs[name] = [Program("rank 0", (), {"PATH": "/bin"}, str(tmp_path), "log", python)]
    specs = ForkServerSpecs()
    more, other = specs.of_programs(programs["more"], PYTHON), specs.of_programs(programs["other"], PYTHON)
    assert specs.of_programs(programs["less"], PYTHON) == more
    assert more != other


@pytest.mark.parametrize(
    ("name", "hides"),
    [
        ("helpers.py", False),
        ("queue.py", True),
        ("yaml.py", True),
        ("yaml/__init__.py", True),
        ("yaml/data.txt", False),
    ],
)
def test_a_script_whose_modules_hide_installed_ones_starts_cold(name: str, hides: bool, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("")
    assert hides_installed([str(tmp_path)], PYTHON) is hides


def test_the_copy_of_what_the_steps_share_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("code/allranks_steps", "code/ours", "installed/allranks_steps", "installed/ours"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "__init__.py").touch()
    monkeypatch.setattr("allranks.local.installed.folders", lambda _: [tmp_path / "installed"])
    assert hides_installed([str(tmp_path / "code")], PYTHON)
    (tmp_path / "code/ours/__init__.py").unlink()
    assert not hides_installed([str(tmp_path / "code")], PYTHON)


IMPORT_ALL = """
import importlib, os, sys, threading
for name in sys.argv[1].split():
    try:
        importlib.import_module(name)
    except ImportError:
        continue
print(*[name for name in sys.argv[2].split() if name in sys.modules], [thread.name for thread in threading.enumerate()])
"""


@pytest.mark.slow
@pytest.mark.recipe  # a fork server itself looks for threads; what packages import changes with their versions
def test_no_preloaded_package_imports_one_that_is_not_or_starts_a_thread() -> None:
    names = dict.fromkeys(module for package in PRELOADED.values() for module in package.modules)
    page = (Path(__file__).parents[3] / "docs" / "starting-ranks.md").read_text(encoding="utf-8")
    others = set(re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)) - PRELOADED.keys()
    assert others
    command = [sys.executable, "-c", IMPORT_ALL, " ".join(names), " ".join(others)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[-1] == "['MainThread']"
