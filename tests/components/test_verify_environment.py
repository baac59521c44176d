"""verify_environment: its program in this environment, and run by the engine as a user runs a component."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from allranks_command import forked

Importer = Callable[[str, str], Any]
FOLDER = Path(__file__).parents[2] / "components/diagnosis/verify_environment"
BOUND_SECONDS = 250
VENV = Path(sys.prefix)


def verified(folder: Path, expectations: dict[str, Any], *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code and the findings of the program, from a folder that has nothing of this project."""
    (folder / "expect.json").write_text(json.dumps(expectations))
    command = [sys.executable, str(FOLDER / "verify.py"), "expect.json", "--json", *arguments]
    env = {**os.environ, "PATH": f"{VENV}/bin:{os.environ['PATH']}", "OPAL_PREFIX": str(VENV)}
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=BOUND_SECONDS, check=False
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_each_probe(tmp_path: Path) -> None:
    expectations = {
        "every": {
            "python": {"version": ">=3.10,<3.14"},
            "openmpi": {
                "version": ">=4.1.8,<5",
                "with": ["ucx", "psm9"],
                "enabled": ["ucx", "psm9"],
                "from": "/opt/python",
            },
            "libraries": ["libc.so.6", "libnowhere.so.1"],
            "commands": ["sh", "nowhere"],
            "files": ["/bin/sh", "/dev/null", "/nowhere"],
            "packages": {"numpy": version("numpy"), "pyyaml": "1.0", "nowhere": "1"},
            "modules": ["yaml", "nowhere"],
            "nonsense": True,
        },
        "cuda": {"libraries": ["libcudart.so.13"]},
        "gpus": {},
        "tags": {"base-image": "x", "openmpi": "4.1.0", "numpy": version("numpy"), "cuda": "13.0"},
    }
    code, found = verified(tmp_path, expectations)
    assert code == 1
    assert {finding["what"]: finding["ok"] for finding in found} == {
        "python": True,
        "openmpi": True,
        "openmpi's mpirun": False,
        "openmpi with ucx": True,
        "openmpi with psm9": False,
        "openmpi with ucx enabled": True,
        "openmpi with psm9 enabled": False,
        "libc.so.6": True,
        "libnowhere.so.1": False,
        "command sh": True,
        "command nowhere": False,
        "file /bin/sh": True,
        "file /dev/null": False,
        "file /nowhere": False,
        "package numpy": True,
        "package pyyaml": False,
        "package nowhere": False,
        "import yaml": True,
        "import nowhere": False,
        "nonsense": False,
        "section gpus": False,
        "tag base-image": None,
        "tag openmpi": False,
        "tag numpy": True,
        "tag cuda": None,
    }
    tag = next(finding for finding in found if finding["what"] == "tag openmpi")
    assert (tag["expected"], tag["found"]) == (version("openmpi"), "4.1.0")


@pytest.mark.parametrize(("pml", "right"), [("^ucx", False), ("^cm", True), ("ob1", False), ("ucx,ob1", True)])
def test_a_component_that_a_setting_excludes(
    pml: str, right: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's Open MPI is built with UCX, and excludes it in its settings."""
    monkeypatch.setenv("OMPI_MCA_pml", pml)
    _, found = verified(tmp_path, {"every": {"openmpi": {"version": ">=4.1", "enabled": ["ucx"]}}})
    (finding,) = [each for each in found if each["what"] == "openmpi with ucx enabled"]
    assert finding["ok"] is right
    assert (f"pml = {pml}" in finding["found"]) is not right


@pytest.mark.slow
def test_two_ranks_add_up(tmp_path: Path) -> None:
    code, found = verified(tmp_path, {"every": {"ranks": {"count": 2, "over": ["mpi4py", "torch"]}}})
    assert (code, [finding["found"] for finding in found]) == (0, ["right", "right"])


def test_a_section_counts_where_all_its_words_are_true(tmp_path: Path) -> None:
    expectations = {"cpu doca": {"commands": ["nowhere"]}, "cpu": {"commands": ["sh"]}}
    assert verified(tmp_path, expectations, "--variant", "cpu distribution")[0] == 0
    code, found = verified(tmp_path, expectations, "--variant", "cpu doca")
    assert (code, [finding["what"] for finding in found]) == (1, ["command nowhere", "command sh"])


@pytest.mark.parametrize(
    ("found", "wanted", "right"),
    [
        ("2.13.0+cpu", "2.13.0", True),
        ("2.13.0", "2.13.0+cpu", False),
        ("2.13", "2.13.0", False),
        ("3.12.3", ">=3.11,<3.14", True),
        ("3.9.1", ">=3.11", False),
        ("3.14.0", ">=3.11,<3.14", False),
        ("not installed", "1.0", False),
    ],
)
def test_versions(code: Importer, found: str, wanted: str, right: bool) -> None:
    assert code("verify_environment", "probe_commands").satisfies(found, wanted) is right


EXPECTED = """
every:
  python: {version: ">=3.10,<3.14"}
  openmpi: {version: "%s", with: [ucx]}
  packages: {mpi4py: "4.1.2"}
  ranks: {count: 2, over: [mpi4py]}
doca:
  commands: [nowhere]
"""


@pytest.mark.slow
def test_what_is_true_and_what_is_not(tmp_path: Path) -> None:
    jobs: dict[str, Any] = {}
    for name, openmpi in (("well", "4.1.8"), ("badly", "5.0.6")):
        (tmp_path / f"{name}.yaml").write_text(EXPECTED % openmpi)
        jobs[name] = {
            "type": "command",
            "component": str(FOLDER / "component.yaml"),
            "inputs": {"expectations": {"type": "uri_file", "path": f"./{name}.yaml"}},
            "outputs": {"report": {"type": "uri_folder", "path": f"./{name}"}},
        }
    (tmp_path / "pipeline.yml").write_text(json.dumps({"type": "pipeline", "jobs": jobs}))
    ended = forked("run", "pipeline.yml", "--no-track", "--json", folder=tmp_path)
    assert ended.code == 1, ended.err
    assert {step["name"]: step["status"] for step in ended.json["steps"]} == {"well": "Completed", "badly": "Failed"}
    well, badly = (
        {finding["what"]: finding for finding in json.loads((tmp_path / name / "verification.json").read_text())}
        for name in jobs
    )
    assert [finding["ok"] for finding in well.values()] == [True] * 5
    assert "2 ranks under mpirun, all-reduce by mpi4py" in well
    assert {what for what, finding in badly.items() if not finding["ok"]} == {"openmpi"}
    assert (badly["openmpi"]["expected"], badly["openmpi"]["found"]) == ("5.0.6", "4.1.8")
