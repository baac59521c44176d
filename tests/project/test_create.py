"""A new project is complete and works, and every command in its README is accepted."""

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from allranks.catalog import shipped_folder
from allranks.errors import InputError
from allranks.project.files import TEMPLATE, create, template
from allranks_command import called, content
from documents import accept, commands_of


def test_a_new_folder_is_created_with_its_parents(tmp_path: Path) -> None:
    folder = tmp_path / "a new" / "Prüfung"
    assert set(create(folder, template())) == set(template())
    assert content(folder) == template()


def test_other_files_in_the_folder_stay(tmp_path: Path) -> None:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines/own.py").write_text("own")
    create(tmp_path, template())
    assert content(tmp_path) == {**template(), "pipelines/own.py": b"own"}


def test_a_project_that_is_there_already_stays_as_it_is(tmp_path: Path) -> None:
    create(tmp_path, template())
    (tmp_path / "README.md").unlink()
    assert create(tmp_path, template()) == ("README.md",)


def other_content(folder: Path) -> None:
    (folder / "README.md").write_text("mine")


def a_folder_for_a_file(folder: Path) -> None:
    (folder / "README.md").mkdir()


def a_link_to_nothing(folder: Path) -> None:
    (folder / "README.md").symlink_to("nowhere")


def a_file_for_a_folder(folder: Path) -> None:
    (folder / "components").write_text("mine")


@pytest.mark.parametrize("obstacle", [other_content, a_folder_for_a_file, a_link_to_nothing, a_file_for_a_folder])
def test_nothing_is_written_if_something_is_in_the_way(tmp_path: Path, obstacle: Callable[[Path], None]) -> None:
    obstacle(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError) as caught:
        create(tmp_path, template())
    name = before[0].name
    assert all(problem.where.endswith(f"/{name}") for problem in caught.value.problems)
    assert sorted(tmp_path.rglob("*")) == before


def test_it_can_be_repeated_after_a_failure(tmp_path: Path) -> None:
    files = template()
    with pytest.raises(InputError):
        create(tmp_path, {**files, f"{list(files)[-1]}/a file below a file": b""})
    assert create(tmp_path, files) == ()


README = template()["README.md"].decode()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("Ein Präfix") / "own project"
    create(folder, template())
    assert called("run", "pipelines/two_spirals.py", "--set", "count=400", "--set", "epochs=2", folder=folder).code == 0
    return folder


@pytest.mark.parametrize("command", [shown.command for shown in commands_of("allranks", README)])
def test_a_command_of_its_readme_is_accepted(command: str) -> None:
    _, *words = shlex.split(command)
    accept(tuple(words))


@pytest.mark.slow
@pytest.mark.xdist_group("new project")
def test_its_steps_are_uploaded_with_the_runtime_only_if_they_use_it(project: Path) -> None:
    done = called("run", "pipelines/two_spirals.py", "--dry-run", "--json", folder=project)
    uploads = {tuple(each["steps"]): each["files"] for each in done.json["uploads"] if each["kind"] == "code"}
    with_runtime = {steps for steps, files in uploads.items() if "allranks/runtime/__init__.py" in files}
    assert with_runtime == {("train",), ("evaluate",)}
    assert set(uploads) == {("prepare",), *with_runtime}


@pytest.mark.slow
@pytest.mark.xdist_group("new project")
def test_its_notebook_works(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the inputs of a run that there is, whose results are reused."""
    monkeypatch.chdir(project)
    cells = json.loads((project / "two_spirals.ipynb").read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert code.count('{"epochs": 10}') == 1
    found: dict[str, Any] = {}
    exec(code.replace('{"epochs": 10}', '{"epochs": 2, "count": 400}'), found)
    assert "accuracy" in str(found["run"].metrics)


def test_its_files_can_be_read_by_others() -> None:
    """Data files keep their modes in a wheel."""
    assert not [path for path in (shipped_folder() / TEMPLATE).rglob("*") if not os.stat(path).st_mode & 0o004]
