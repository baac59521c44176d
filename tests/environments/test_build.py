"""Building images: the copy of the context that the engine gets, and the engines."""

import os
from pathlib import Path

import pytest

from allranks.errors import InputError
from allranks.images import build
from allranks.images.find import find_environments

TEXT = """\
# Small things.
ARG BASE_IMAGE=ubuntu:24.04
ARG KIND="plain"
FROM ${BASE_IMAGE} AS system
ARG KIND
FROM system AS kind-plain
FROM example:$OTHER AS kind-rich
FROM kind-${KIND} AS kind
RUN echo "${KIND}"
"""


def test_the_stages_of_a_variant_are_named(tmp_path: Path) -> None:
    (tmp_path / "context/tools").mkdir(parents=True)
    (tmp_path / "context/Dockerfile").write_text(TEXT)
    (tmp_path / "program.sh").touch(mode=0o755)
    (tmp_path / "context/tools/run.sh").symlink_to("../../program.sh")
    (tmp_path / "context/.env").write_text("SECRET=1\n")
    copy = tmp_path / "copy"
    copy.mkdir()
    given = {"BASE_IMAGE": "debian:12", "KIND": "rich", "DEVICE": "cpu"}
    options = build.copy_context(tmp_path / "context", copy, "Dockerfile", given)
    assert options == ["--build-arg=BASE_IMAGE=debian:12", "--build-arg=KIND=rich"]
    text = (copy / "Dockerfile").read_text()
    assert text == TEXT.replace("FROM ${BASE_IMAGE}", "FROM debian:12").replace("FROM kind-${KIND}", "FROM kind-rich")
    assert not (copy / "tools/run.sh").is_symlink()
    assert os.access(copy / "tools/run.sh", os.X_OK)
    assert not (copy / ".env").exists()


def test_the_arguments_before_the_first_stage() -> None:
    assert build.arguments_of(TEXT) == {"BASE_IMAGE": "ubuntu:24.04", "KIND": "plain"}


def test_an_engine_that_is_not_here_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, package in ((None, "buildah"), ("docker", "docker.io"), ("podman", "podman")):
        with pytest.raises(InputError) as raised:
            build.engine(name)
        assert raised.value.problems[0].fix.endswith(f"apt-get install {package}")


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no environment"):
        find_environments(tmp_path)
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/environment.yaml").write_text("name: cpu\nbuild: {path: .}\n")
    with pytest.raises(InputError, match="no environment 'torch'"):
        find_environments(tmp_path, ("torch",))
    (cpu,) = find_environments(tmp_path)
    with pytest.raises(InputError, match=r"expect\.yaml"):
        cpu.expectations()
