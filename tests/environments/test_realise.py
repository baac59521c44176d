"""Environments are made once by content, in a virtual environment or by conda, and never left half-made."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import bounded
from allranks.errors import InputError
from allranks.images import cache, venv
from allranks.images.packages import Packages
from allranks.images.realise import Realised, realise
from allranks.plan.environment import Environment
from wheels import write_wheel

OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")


def environment(folder: Path, *lines: str, python: str = OWN, file: str = "conda.yml") -> Environment:
    """Return an environment whose packages are in a folder of wheels."""
    (folder / "wheels").mkdir(exist_ok=True)
    pip = ["--no-index", f"--find-links {folder}/wheels", *lines]
    specification = {"dependencies": [f"python={python}", {"pip": pip}]}
    (folder / file).write_text(json.dumps(specification, indent=1))
    return Environment("tiny", definition=json.dumps(specification), file=str(folder / file))


def version_in(made: Realised) -> str:
    command = [str(made.interpreter), "-c", "import tinypackage; print(tinypackage.VERSION)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_virtual_environment_is_made_once_by_content(tmp_path: Path) -> None:
    write_wheel(tmp_path / "wheels", "1.0")
    write_wheel(tmp_path / "wheels", "2.0")
    reports: list[str] = []
    first = realise(environment(tmp_path, "tinypackage==1.0"), "venv", reports.append)
    assert (version_in(first), first.how) == ("1.0", "venv")
    assert first.notes == ()  # although the folder has neither setuptools nor wheel, which conda would install
    assert reports
    reports.clear()
    again = realise(environment(tmp_path, "tinypackage==1.0", file="other.yml"), "venv", reports.append)
    assert (again, reports) == (first, [])
    other = realise(environment(tmp_path, "tinypackage==2.0"), "venv", reports.append)
    assert version_in(other) == "2.0"
    assert sorted(path.name for path in cache.root().iterdir()) == sorted(
        name
        for made in (first, other)
        for name in [made.interpreter.parents[1].name + end for end in ("", ".lock")]  # type: ignore[union-attr]
    )


def test_what_conda_installs_with_pip_is_there(tmp_path: Path) -> None:
    for name, version in (("setuptools", "81.0"), ("setuptools", "82.0"), ("wheel", "1.0"), ("tinypackage", "1.0")):
        write_wheel(tmp_path / "wheels", version, name)
    made = realise(environment(tmp_path, "tinypackage"), "venv", print)
    program = "import setuptools, wheel, tinypackage; print(setuptools.VERSION)"
    ran = subprocess.run([str(made.interpreter), "-c", program], capture_output=True, text=True, check=True)
    assert (ran.stdout, made.notes) == ("81.0\n", ())
    other = realise(environment(tmp_path, "tinypackage", "setuptools==82.0"), "venv", print)
    ran = subprocess.run([str(other.interpreter), "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "82.0\n"


@pytest.mark.parametrize(
    ("python", "with_conda", "lines"),
    [
        ("==3.7.*", True, ["setuptools<82", "wheel"]),
        ("==3.12.*", True, ["setuptools<82", "wheel"]),
        ("<3.9", True, ["setuptools<82", "wheel"]),
        ("==3.13.*", True, []),
        (">=3.13,<3.14", True, []),
        ("==3.7.*", False, []),
    ],
)
def test_what_conda_installs_with_pip(python: str, with_conda: bool, lines: list[str]) -> None:
    assert venv.of_condas_pip(Packages(python, with_conda=with_conda)) == lines


def test_what_does_not_exist_is_not_made_for_a_dry_run(tmp_path: Path) -> None:
    found = realise(environment(tmp_path, "tinypackage"), "venv", print, makes=False)
    assert found.interpreter is not None
    assert not found.interpreter.exists()


@pytest.mark.recipe
def test_a_command_that_installs_packages_changes_only_its_own_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_wheel(tmp_path / "wheels", "1.0")
    tiny = environment(tmp_path, "tinypackage==1.0")
    shared = realise(tiny, "venv", print)
    monkeypatch.setattr(venv, "uv_program", lambda: None)  # whose environments get pip from an index
    own = realise(tiny, "venv", print, installer="pip install tinypackage")
    write_wheel(tmp_path / "wheels", "2.0")
    assert own.interpreter is not None
    pip = [own.interpreter.with_name("pip"), "install", "--no-index", "--find-links", tmp_path / "wheels"]
    subprocess.run([*pip, "tinypackage==2.0"], capture_output=True, check=True)
    assert (version_in(shared), version_in(own)) == ("1.0", "2.0")


def test_a_failed_build_names_the_line_and_leaves_nothing(tmp_path: Path) -> None:
    write_wheel(tmp_path / "wheels", "1.0")
    with pytest.raises(InputError) as raised:
        realise(environment(tmp_path, "tinypackage==3.0"), "venv", print)
    text = str(raised.value)
    assert text.startswith("environment tiny (")
    assert "conda.yml:8): its packages cannot be installed:\n" in text
    assert "tinypackage==3.0" in text
    assert "--environment host" in text
    assert not list(cache.root().glob("*/"))


def test_a_python_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"environment tiny \(.*conda\.yml:3\): Python 3\.4 cannot be had: "):
        realise(environment(tmp_path, python="3.4"), "venv", print)


def test_an_interrupted_build_is_made_again(tmp_path: Path) -> None:
    write_wheel(tmp_path / "wheels", "1.0")
    tiny = environment(tmp_path, "tinypackage")
    made = realise(tiny, "venv", print)
    assert made.interpreter is not None
    folder = made.interpreter.parents[1]
    (folder / cache.COMPLETE).unlink()
    (folder / "left").touch()
    assert version_in(realise(tiny, "venv", print)) == "1.0"
    assert not (folder / "left").exists()


def test_two_runs_make_one_environment(tmp_path: Path) -> None:
    folder, made = tmp_path / "cache/x", list[int]()
    entered, waits = threading.Event(), threading.Event()

    def create() -> None:
        entered.set()
        assert waits.wait(30)
        folder.mkdir()
        made.append(1)

    first = threading.Thread(target=cache.make, args=(folder, create, print))
    first.start()
    assert entered.wait(30)
    cache.make(folder, create, lambda *_: waits.set())
    bounded.join(first)
    assert made == [1]


def test_a_disk_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(InputError, match="XDG_CACHE_HOME"):
        realise(environment(tmp_path, "tinypackage"), "venv", print)


FAKE = """#!/bin/sh
# micromamba create --yes --prefix FOLDER --file FILE
[ "$1 $2 $3 $5" = "create --yes --prefix --file" ] || { echo "unknown: $*"; exit 1; }
grep -q unsolvable "$6" && { echo "nothing provides unsolvable"; exit 1; }
mkdir -p "$4/bin" && cp "$6" "$4/used.yaml" && ln -s PYTHON "$4/bin/python"
"""


def test_conda_makes_what_its_program_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    both = {"dependencies": ["cudatoolkit=11", {"pip": ["six"]}], "prefix": "/x"}
    tiny = Environment("tiny", image="i:1", definition=json.dumps(both), file=str(tmp_path / "conda.yml"))
    without = realise(tiny, "conda", print, makes=False)
    left_out = "left out: cudatoolkit=11; --environment conda installs them, with micromamba on PATH"
    assert (without.how, without.notes) == ("venv", (left_out, "not used: image i:1"))
    program = tmp_path / "programs/micromamba"
    program.parent.mkdir()
    program.write_text(FAKE.replace("PYTHON", sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("MAMBA_EXE", str(program))
    made = realise(tiny, "auto", print)
    assert (made.how, made.notes) == ("conda", ("not used: image i:1",))
    assert made.interpreter is not None
    assert os.path.realpath(made.interpreter) == os.path.realpath(sys.executable)
    used = (made.interpreter.parents[1] / "used.yaml").read_text()
    assert "cudatoolkit=11" in used
    assert "prefix" not in used
    failing = json.dumps({"dependencies": ["unsolvable"]})
    with pytest.raises(InputError, match="nothing provides unsolvable"):
        realise(Environment("tiny", definition=failing, file=str(tmp_path / "x.yml")), "conda", print)


@pytest.mark.parametrize(
    ("dependencies", "how", "notes"),
    [
        ([{"pip": ["pyyaml"]}], "host", ()),
        ([{"pip": ["pyyaml==0.1"]}], "venv", ()),
        (
            ["git", "numpy=1", {"pip": ["pyyaml"]}],
            "venv",
            ("left out: git, numpy=1; --environment conda installs them, with micromamba on PATH",),
        ),
    ],
)
def test_auto_takes_the_cheapest_way_that_is_true_to_the_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dependencies: list[Any], how: str, notes: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    definition = json.dumps({"dependencies": dependencies})
    found = realise(Environment("x", definition=definition, file=str(tmp_path / "c.yml")), "auto", print, makes=False)
    assert (found.how, found.notes) == (how, notes)
    installing = realise(Environment(image="python"), "auto", print, makes=False, installer="pip install x")
    assert installing.how == "venv"


@pytest.mark.parametrize(
    ("image", "dependencies", "dockerfile", "how"),
    [
        ("r-base:4", [], "", "container"),
        (f"python:{OWN}", [], "", "host"),
        ("i:1", [{"pip": ["pyyaml"]}], "", "host"),
        ("i:1", ["git"], "", "container"),
        ("", [], "FROM i:1\nRUN pip install pyyaml\n", "container"),
        ("", [], f"FROM python:{OWN}\nRUN pip install pyyaml==0.1\n", "venv"),
    ],
)
def test_auto_takes_an_image_for_what_only_that_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image: str, dependencies: list[Any], dockerfile: str, how: str
) -> None:
    (tmp_path / "Dockerfile").write_text(dockerfile)
    definition = json.dumps({"dependencies": dependencies}) if dependencies else ""
    file, folder = str(tmp_path / "conda.yml"), str(tmp_path) if dockerfile else ""
    environment = Environment("x", image=image, definition=definition, folder=folder, file=file)
    monkeypatch.setenv("PATH", str(tmp_path))
    without = realise(environment, "auto", print, makes=False).how
    (tmp_path / "podman").touch(mode=0o755)
    found = realise(environment, "auto", print, makes=False)
    assert (without == "container", found.how) == (False, how)
    assert ("/rootfs/" in str(found.interpreter)) is (how == "container")


def test_what_names_no_image_has_no_container(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it has no image"):
        realise(environment(tmp_path, "six"), "container", print)


def test_a_name_without_a_definition_runs_as_before_and_says_so() -> None:
    found = realise(Environment("sklearn-1.5", "3", "azureml"), "venv", print)
    assert (found.how, found.interpreter) == ("host", None)
    assert "its definition is not on this machine" in found.notes[0]


def test_uv_gets_the_indexes_of_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://a/simple\nfind-links =\n  /x\n  /y\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://b/simple")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    settings = venv._settings_of_pip()
    assert settings == {
        "UV_DEFAULT_INDEX": "https://a/simple", "UV_INDEX": "https://b/simple", "UV_FIND_LINKS": "/x /y",
    }  # fmt: skip


@pytest.mark.parametrize(("python", "version"), [("", OWN), (">=3.8", OWN), ("==3.8.*", "3.8"), ("<3.9", "3.8")])
def test_the_version_of_python_for_packages(python: str, version: str) -> None:
    assert venv.version_of(Packages(python)) == version
