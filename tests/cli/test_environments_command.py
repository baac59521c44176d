"""`allranks environments`: what it prints and how it ends. What it looks at is tested in tests/environments."""

import shutil
from pathlib import Path

import pytest

from allranks_command import called

OURS = Path(__file__).parents[2] / "environments"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(OURS / "cpu", tmp_path / "environments/cpu")
    return tmp_path


def test_list(project: Path) -> None:
    (found,) = called("environments", "list", "--json", folder=project).json
    assert (found["name"], found["registered_as"], found["tags"]["numpy"]) == ("cpu", "allranks-cpu", "2.4.6")
    assert "NumPy, scikit-learn" in " ".join(called("environments", "list", folder=project).out.split())


def test_check(project: Path) -> None:
    done = called("environments", "check", folder=project)
    assert (done.code, done.out) == (0, "environments/cpu/environment.yaml: no problems\n")
    dockerfile = project / "environments/cpu/Dockerfile"
    dockerfile.write_text(dockerfile.read_text() + "ENV API_TOKEN=abcdefgh12345678\n")
    done = called("environments", "check", "cpu", "--json", folder=project)
    assert (done.code, done.json["environments"]) == (0, ["environments/cpu/environment.yaml"])
    (warning,) = done.json["warnings"]
    assert warning["where"].startswith(f"{project}/environments/cpu/Dockerfile:")
    assert called("environments", "check", "--strict", folder=project).code == 2


def test_a_name_that_is_not_there(project: Path) -> None:
    done = called("environments", "check", "gpu", folder=project)
    assert done.code == 2
    assert "no environment 'gpu'" in done.err


@pytest.mark.parametrize("arguments", [("build", "cpu"), ("verify", "x", "--environment", "cpu")])
def test_without_an_engine_its_package_is_named(project: Path, arguments: tuple[str, ...]) -> None:
    done = called("environments", *arguments, folder=project, PATH=str(project))
    assert done.code == 2
    assert "apt-get install buildah" in done.err


def test_an_argument_that_the_dockerfile_does_not_have(project: Path) -> None:
    """The engine is not asked: any program of its name will do."""
    engine = project / "buildah"
    engine.write_text("#!/bin/sh\nexit 1\n")
    engine.chmod(0o755)
    done = called("environments", "build", "cpu", "--build-arg", "TORCH=1", folder=project, PATH=str(project))
    assert done.code == 2
    assert "no ARG TORCH" in done.err
    failed = called("environments", "build", "cpu", folder=project, PATH=f"{project}:/usr/bin:/bin")
    assert failed.code == 1
    assert "exit code 1" in failed.err
