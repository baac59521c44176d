"""What a definition installs with pip: conda files, requirements files, Dockerfiles; what this Python lacks."""

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


def test_what_only_conda_installs_is_named_as_it_is_written(tmp_path: Path) -> None:
    written = ["numpy=1.21.2=py38h20f2e39_0", "conda-forge::scipy >=1.7, <2", "cudatoolkit=11.3", "setuptools"]
    found = of_conda(tmp_path, ["python=3.9", *written, "pip=24", "conda-forge::pip", {"pip": ["six"]}])
    assert (found.requirements, found.conda_packages, found.with_conda) == (("six",), tuple(written), True)


@pytest.mark.parametrize(
    ("written", "python"),
    [
        ("python=3.9", "==3.9.*"),
        ("python=3.9.12", "==3.9.*"),
        ("python==3.8", "==3.8.*"),
        ("python 3.8", "==3.8.*"),
        ("conda-forge::python=3.9.7=h12debd9_1", "==3.9.*"),
        ("python=3", "==3.*"),
        ("python >=3.8, <3.11", ">=3.8,<3.11"),
        ("python", ""),
    ],
)
def test_the_version_of_python(tmp_path: Path, written: str, python: str) -> None:
    assert of_conda(tmp_path, [written, "pip"]).python == python


def test_files_of_requirements_are_read_and_local_packages_get_absolute_paths(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more/req.txt").write_text("# comment\nidna>=3 # why\n-r deeper.txt\n./wheel.whl\n")
    (tmp_path / "more/deeper.txt").write_text("attrs \\\n  ==23.1\n")
    (tmp_path / "more/wheel.whl").write_text("")
    found = of_conda(tmp_path, ["six", {"pip": ["-r more/req.txt", "--extra-index-url https://x/simple"]}])
    wheel = tmp_path / "more/wheel.whl"
    assert found.conda_packages == ("six",)
    assert found.requirements == ("idna>=3", "attrs ==23.1", str(wheel), "--extra-index-url https://x/simple")
    assert found.files == (wheel,)


def test_a_file_that_is_missing_is_named_with_the_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"conda\.yml:1: -r none\.txt: .*none\.txt cannot be read"):
        of_conda(tmp_path, [{"pip": ["-r none.txt"]}])


def test_the_image_is_named_unless_it_is_pythons(tmp_path: Path) -> None:
    assert of_conda(tmp_path, ["six"], "mcr/x:1").unused == ("image mcr/x:1",)
    assert of_conda(tmp_path, ["six"], "docker.io/python:3.11-slim").unused == ()
    assert packages.of(Environment(image="docker.io/python:3.11-slim")) == Packages("==3.11.*")
    assert packages.of(Environment(image="library/python")) == Packages(unused=("image library/python",))
    assert packages.of(Environment(image="python:latest")) == Packages(unused=("image python:latest",))
    assert packages.of(Environment(image="ubuntu:24.04")) is None
    assert packages.of(Environment(image="python:2.7")) is None
    assert packages.of(Environment(image="mine/python-ml:3.9")) is None
    assert packages.of(Environment("azureml-name", "3")) is None


DOCKERFILE = """\
ARG SIX=1.16
FROM --platform=linux/amd64 python:3.10 AS base
RUN pip --quiet install --no-cache-dir six==${SIX} "idna>=3,<4"
# RUN pip install never
FROM mine:1 AS other
RUN --mount=type=cache,target=/x pip install six==${SIX} \\
    # not an instruction
    /opt/wheels/*.whl --target /y
FROM base
COPY requirements.txt conda_dependencies.yaml ./
RUN pip install /opt/wheels/*.whl
RUN apt-get update && python3 -m pip install -r /tmp/requirements.txt --extra-index-url=https://x/simple
RUN conda env create -p /env -f conda_dependencies.yaml -q && rm -rf x
"""


def test_a_dockerfile_is_read_for_what_it_installs(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    (tmp_path / "requirements.txt").write_text("attrs==23.1\n")
    (tmp_path / "conda_dependencies.yaml").write_text("dependencies: [python=3.9, numpy=1.2, {pip: [yarl]}]\n")
    found = packages.of(Environment(context="1", dockerfile="Dockerfile", folder=str(tmp_path)))
    assert found is not None
    assert found.python == "==3.9.*"
    assert found.requirements == (
        "six==1.16", "idna>=3,<4", "attrs==23.1", "--extra-index-url https://x/simple", "yarl",
    )  # fmt: skip
    assert found.conda_packages == ("numpy=1.2",)
    assert found.unused == ("image mine:1", "3 commands of RUN")


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
