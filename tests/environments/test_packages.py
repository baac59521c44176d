"""What a definition installs: conda's notation in pip's, requirements files, Dockerfiles, what this Python lacks."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from allranks.errors import InputError
from allranks.images import packages
from allranks.images.packages import Packages
from allranks.plan.environment import Environment

OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"


def of_conda(folder: Path, dependencies: Any, image: str = "") -> Packages:
    file = folder / "conda.yml"
    file.write_text(f"dependencies: {json.dumps(dependencies)}\n", encoding="utf-8")
    definition = json.dumps({"dependencies": dependencies})
    found = packages.of(Environment(image=image, definition=definition, file=str(file)))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("written", "requirement"),
    [
        ("numpy", "numpy"),
        ("numpy=1.21", "numpy==1.21.*"),
        ("numpy=1.21.*", "numpy==1.21.*"),
        ("numpy==1.21.2", "numpy==1.21.2"),
        ("numpy=1.21.2=py38h20f2e39_0", "numpy==1.21.2"),
        ("numpy 1.21.2", "numpy==1.21.2"),
        ("numpy >=1.21, <2", "numpy>=1.21,<2"),
        ("conda-forge::numpy>=1.21", "numpy>=1.21"),
        ("pytorch=2.1", "torch==2.1.*"),
        ("setuptools=58", "setuptools==58.*"),
        ("wheel", "wheel"),
    ],
)
def test_condas_notation_becomes_pips(tmp_path: Path, written: str, requirement: str) -> None:
    found = of_conda(tmp_path, [written])
    assert (found.requirements, found.from_conda, found.lacking) == ((requirement,), (requirement,), ())


@pytest.mark.parametrize("written", ["cudatoolkit=11.3", "r-base", "libgcc", "numpy=1.1|1.2", "numpy[version='>=1']"])
def test_what_pip_cannot_install_is_listed(tmp_path: Path, written: str) -> None:
    found = of_conda(tmp_path, [written])
    assert (found.requirements, found.lacking) == ((), (f"conda package {written}",))
    assert found.lacking_packages


@pytest.mark.parametrize(
    ("written", "python"),
    [("python=3.9", "==3.9.*"), ("python=3.9.12", "==3.9.*"), ("python==3.8", "==3.8.*"), ("python>=3.8,<3.11",) * 2],
)
def test_the_version_of_python(tmp_path: Path, written: str, python: str) -> None:
    assert of_conda(tmp_path, [written, "pip"]).python == python.removeprefix("python")


def test_files_of_requirements_are_read_and_local_packages_get_absolute_paths(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more/req.txt").write_text("# comment\nidna>=3 # why\n-r deeper.txt\n./wheel.whl\n")
    (tmp_path / "more/deeper.txt").write_text("attrs \\\n  ==23.1\n")
    (tmp_path / "more/wheel.whl").write_text("")
    found = of_conda(tmp_path, ["six", {"pip": ["-r more/req.txt", "--extra-index-url https://x/simple"]}])
    wheel = tmp_path / "more/wheel.whl"
    assert found.from_conda == ("six",)
    assert found.requirements[1:] == ("idna>=3", "attrs ==23.1", str(wheel), "--extra-index-url https://x/simple")
    assert found.files == (wheel,)


def test_a_file_that_is_missing_is_named_with_the_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"conda\.yml:1: -r none\.txt: .*none\.txt cannot be read"):
        of_conda(tmp_path, [{"pip": ["-r none.txt"]}])


def test_the_image_is_named_unless_it_is_pythons(tmp_path: Path) -> None:
    assert of_conda(tmp_path, ["six"], "mcr/x:1").lacking == ("image mcr/x:1",)
    assert of_conda(tmp_path, ["six"], "docker.io/python:3.11-slim").lacking == ()
    assert packages.of(Environment(image="docker.io/python:3.11-slim")) == Packages("==3.11.*")
    assert packages.of(Environment(image="library/python")) == Packages(lacking=("image library/python",))
    assert packages.of(Environment(image="python:latest")) == Packages(lacking=("image python:latest",))
    assert packages.of(Environment(image="ubuntu:24.04")) is None
    assert packages.of(Environment(image="python:2.7")) is None
    assert packages.of(Environment(image="mine/python-ml:3.9")) is None
    assert packages.of(Environment("azureml-name", "3")) is None


DOCKERFILE = """\
ARG SIX=1.16
FROM python:3.10 AS base
RUN pip install --no-cache-dir six==${SIX} "idna>=3,<4"
FROM unused:1 AS other
RUN pip install never
FROM base
COPY requirements.txt conda_dependencies.yaml ./
RUN apt-get update && python3 -m pip install -r /tmp/requirements.txt --extra-index-url=https://x/simple
RUN conda env create -p /env -f conda_dependencies.yaml -q && rm -rf x
"""


def test_a_dockerfile_is_read_for_what_it_installs(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    (tmp_path / "requirements.txt").write_text("attrs==23.1\n")
    (tmp_path / "conda_dependencies.yaml").write_text("dependencies: [python=3.9, numpy=1.2]\n")
    found = packages.of(Environment(context="1", dockerfile="Dockerfile", folder=str(tmp_path)))
    assert found is not None
    assert found.python == "==3.9.*"
    assert found.requirements == (
        "six==1.16", "idna>=3,<4", "attrs==23.1", "--extra-index-url https://x/simple", "numpy==1.2.*",
    )  # fmt: skip
    assert found.lacking == ("2 commands of RUN",)


@pytest.mark.parametrize(
    ("declared", "lacking"),
    [
        (Packages(f"=={OWN}.*", ("pyyaml>=5", "--index-url https://x")), []),
        (Packages("", ('pyyaml<5; python_version<"3"',)), []),
        (Packages("==3.6.*"), ["Python 3.6.*, not "]),
        (Packages("", ("pyyaml==0.1",)), ["pyyaml==0.1, not "]),
        (Packages("", ("no-such-package", "./x.whl")), ["no-such-package", "./x.whl"]),
    ],
)
def test_what_this_python_lacks(declared: Packages, lacking: list[str]) -> None:
    found = list(packages.host_lacks(declared))
    assert len(found) == len(lacking)
    assert all(text.startswith(start) for text, start in zip(found, lacking, strict=True))
