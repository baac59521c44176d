"""The program that proves an environment from within, run in this one: what is true, what is not, what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from allranks.errors import InputError
from allranks.images import build
from allranks.images.inside.probe_commands import satisfies

CODE = Path(build.__file__).parent
BOUND_SECONDS = 250
VENV = Path(sys.prefix)


def inside(folder: Path, expectations: dict[str, Any], *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit code and the findings of the program, started from a folder that has nothing but it."""
    (folder / "inside").symlink_to(CODE / "inside")
    (folder / "expect.json").write_text(json.dumps(expectations))
    command = [sys.executable, "-m", "inside", "expect.json", "--json", *arguments]
    env = {**os.environ, "PATH": f"{VENV}/bin:{os.environ['PATH']}", "OPAL_PREFIX": str(VENV)}
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=BOUND_SECONDS, check=False
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_what_is_true_and_what_is_not(tmp_path: Path) -> None:
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
        "tags": {"base-image": "x", "openmpi": "4.1.0", "numpy": version("numpy"), "cuda": "13.0"},
    }
    code, found = inside(tmp_path, expectations)
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
    _, found = inside(tmp_path, {"every": {"openmpi": {"version": ">=4.1", "enabled": ["ucx"]}}})
    (finding,) = [each for each in found if each["what"] == "openmpi with ucx enabled"]
    assert finding["ok"] is right
    assert (f"pml = {pml}" in finding["found"]) is not right


@pytest.mark.slow
def test_two_ranks_add_up(tmp_path: Path) -> None:
    code, found = inside(tmp_path, {"every": {"ranks": {"count": 2, "over": ["mpi4py", "torch"]}}})
    assert (code, [finding["found"] for finding in found]) == (0, ["right", "right"])


def test_a_section_counts_where_all_its_words_are_true(tmp_path: Path) -> None:
    expectations = {"cpu doca": {"commands": ["nowhere"]}, "cpu": {"commands": ["sh"]}}
    assert inside(tmp_path, expectations, "--variant", "cpu distribution")[0] == 0
    (tmp_path / "inside").unlink()
    code, found = inside(tmp_path, expectations, "--variant", "cpu doca")
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
def test_versions(found: str, wanted: str, right: bool) -> None:
    assert satisfies(found, wanted) is right


def test_an_engine_that_is_not_here_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, package in ((None, "buildah"), ("docker", "docker.io"), ("podman", "podman")):
        with pytest.raises(InputError) as raised:
            build.engine(name)
        assert raised.value.problems[0].fix.endswith(f"apt-get install {package}")
