"""A result is reused as long as the packages are the same that the step's own interpreter finds."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from allranks.local import installed
from allranks.plan.environment import registered
from allranks.plan.graph import Graph, Plan, Step


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """The virtual environment `own`, as a folder, with a package, one that is editable, and one from a repository."""
    folder = tmp_path / ".venvs" / "own"
    packages = folder / "lib" / "python3.12" / "site-packages"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.1\n")
    (packages / "torch-2.8.0.dist-info").mkdir(parents=True)
    (packages / "ours-0.1.dist-info").mkdir()
    (packages / "ours-0.1.dist-info" / "direct_url.json").write_text('{"vcs_info": {"commit_id": "1"}}')
    source = tmp_path / "source" / "src"
    (source / "mine").mkdir(parents=True)
    (source / "mine" / "model.py").write_text("1")
    (packages / "__editable__.mine-0.1.pth").write_text(f"{source}\n")
    return folder


def _packages(venv: Path) -> Path:
    return venv / "lib" / "python3.12" / "site-packages"


CHANGES: dict[str, Callable[[Path], object]] = {
    "upgraded": lambda venv: (_packages(venv) / "torch-2.8.0.dist-info").rename(
        _packages(venv) / "torch-2.9.dist-info"
    ),
    "added": lambda venv: (_packages(venv) / "more-1.dist-info").mkdir(),
    "removed": lambda venv: (_packages(venv) / "torch-2.8.0.dist-info").rmdir(),
    "another commit": lambda venv: (_packages(venv) / "ours-0.1.dist-info" / "direct_url.json").write_text("{}"),
    "another Python": lambda venv: (venv / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.2\n"),
    "editable": lambda venv: (venv.parents[1] / "source" / "src" / "mine" / "model.py").write_text("12"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_packages_changes_the_digest(change: str, venv: Path) -> None:
    before = installed.fingerprint(venv / "bin" / "python")
    CHANGES[change](venv)
    assert installed.fingerprint(venv / "bin" / "python") != before


def test_a_change_of_the_step_s_own_packages_runs_it_again(venv: Path, run_steps) -> None:
    steps = (
        Step("own", "true", environment=registered("own:1")),
        Step("other", "true", environment=registered("other:1")),
    )
    plan = Plan("p", Graph(steps), source=str(venv.parents[1] / "pipeline.py"))
    first = run_steps(plan=plan)
    CHANGES["upgraded"](venv)
    assert [step.reused_from for step in run_steps(plan=plan).steps] == [None, first.id]


def test_caches_and_data_beside_an_editable_source_do_not_matter(venv: Path) -> None:
    python = venv / "bin" / "python"
    before = installed.fingerprint(python)
    source = venv.parents[1] / "source" / "src"
    for name in ("mine/__pycache__/model.py", "mine/.git/hook.py", "mine/data.csv", "env/lib/a.py"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).touch()
        if name.startswith("env"):
            (source / "env" / "pyvenv.cfg").touch()
    assert installed.fingerprint(python) == before


@pytest.mark.parametrize("name", ["allranks/runtime", "allranks_steps"])
def test_what_is_copied_beside_the_code_does_not_matter(name: str, venv: Path) -> None:
    source = venv.parents[1] / "source" / "src"
    (source / name).mkdir(parents=True)
    before = installed.fingerprint(venv / "bin" / "python")
    (source / name / "metrics.py").touch()
    assert installed.fingerprint(venv / "bin" / "python") == before


def test_the_engine_s_own_interpreter_has_its_own_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed.sysconfig, "get_path", lambda _: str(tmp_path))
    before = installed.fingerprint(Path(sys.executable))
    os.mkdir(tmp_path / "torch-2.8.0.dist-info")
    assert installed.fingerprint(Path(sys.executable)) != before
