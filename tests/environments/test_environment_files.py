"""The files of environments: Dockerfiles read, made for a variant, kept in step, and registered as they stand."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from allranks.errors import InputError
from allranks.images.build import ON_CPU, PIP_CACHE, needed, rendered
from allranks.images.dockerfile import Dockerfile, expanded, labels_of, read
from allranks.images.find import EnvironmentFolder, find_environments, read_environment
from allranks.images.sync import sync

OURS = Path(__file__).parents[2] / "environments"

TEXT = """\
# Small things.
ARG ENVIRONMENT_VERSION=1.2.0
# Why this one.
ARG BASE_IMAGE=ubuntu:24.04
ARG KIND=plain
ARG SCIKIT_LEARN_VERSION="1.9.1"

FROM ${BASE_IMAGE} AS system
RUN apt-get update \\
    # not an instruction
    && apt-get install --yes python3
FROM system AS kind-plain
FROM example:1 AS kind-rich
FROM kind-${KIND} AS kind
FROM other:2 AS unused
FROM system
COPY --from=kind /etc/os-release /
RUN pip install --no-cache-dir -r requirements.txt
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "Dockerfile"
    path.write_text(TEXT)
    return path


def test_a_dockerfile_is_read(small: Path) -> None:
    docker = read(small)
    assert docker.values() == {
        "ENVIRONMENT_VERSION": "1.2.0",
        "BASE_IMAGE": "ubuntu:24.04",
        "KIND": "plain",
        "SCIKIT_LEARN_VERSION": "1.9.1",
    }
    assert [stage.name for stage in docker.stages] == ["system", "kind-plain", "kind-rich", "kind", "unused", "5"]
    (run,) = docker.stages[0].instructions
    assert (run.line, run.end, run.name) == (9, 11, "RUN")
    assert run.text == "apt-get update && apt-get install --yes python3"


def test_labels_come_from_the_table_and_the_first_line(small: Path) -> None:
    labels = labels_of(read(small))
    assert labels.version == "1.2.0"
    assert labels.description == "Small things."
    assert labels.tags == {"base-image": "ubuntu:24.04", "scikit-learn": "1.9.1"}


def images(dockerfile: Dockerfile, values: Mapping[str, str]) -> set[str]:
    """The images that a variant is built from, other than its own stages."""
    sources = {expanded(stage.image, values) for stage in needed(dockerfile, values)}
    return sources - {stage.name for stage in dockerfile.stages}


def test_a_variant_has_the_stages_that_it_needs_and_no_others(small: Path) -> None:
    docker = read(small)
    plain, rich = ({**docker.values(), "KIND": kind} for kind in ("plain", "rich"))
    assert [stage.name for stage in needed(docker, plain)] == ["system", "kind-plain", "kind", "5"]
    assert [stage.name for stage in needed(docker, rich)] == ["system", "kind-rich", "kind", "5"]
    assert images(docker, plain) == {"ubuntu:24.04"}
    assert images(docker, rich) == {"ubuntu:24.04", "example:1"}
    text = rendered(docker, {"KIND": "rich", "BASE_IMAGE": "mine"}, cache=False)
    assert "FROM mine AS system" in text
    assert "FROM kind-rich AS kind" in text
    assert "unused" not in text
    assert "--mount" not in text


def test_a_cache_for_pip_where_the_engine_has_one(small: Path) -> None:
    text = rendered(read(small), {}, cache=True)
    assert f"RUN {PIP_CACHE} pip install -r requirements.txt" in text
    assert text.count("--mount") == 1


def test_without_gpus_nothing_of_nvidia_is_needed() -> None:
    """Each of ours can be made from a Debian alone; for GPUs, from its two images."""
    for environment in find_environments(OURS):
        table = environment.dockerfile.values()
        plain = {**table, "BASE_IMAGE": "debian:12", **ON_CPU}
        assert images(environment.dockerfile, plain) == {"debian:12"}, environment.name
        assert images(environment.dockerfile, table) <= {table["BASE_IMAGE"], table.get("DEVEL_IMAGE")}
        assert "nvidia" not in rendered(environment.dockerfile, plain, False).split("\nFROM ", 1)[1]


def test_sync_writes_what_follows_from_the_base(tmp_path: Path) -> None:
    for name in ("openmpi-ofed", "pytorch"):
        shutil.copytree(OURS / name, tmp_path / name)
    base, torch = (tmp_path / name / "Dockerfile" for name in ("openmpi-ofed", "pytorch"))
    base.write_text(base.read_text().replace("DOCA_VERSION=3.2.3", "DOCA_VERSION=3.2.9"))
    own_tail = torch.read_text().split("# <<< base")[1]
    written = sync(find_environments(tmp_path), tmp_path)
    files = {str(path.relative_to(tmp_path)) for path in written}
    assert files == {"openmpi-ofed/environment.yaml", "pytorch/Dockerfile", "pytorch/environment.yaml"}
    assert "DOCA_VERSION=3.2.9" in torch.read_text()
    assert torch.read_text().split("# <<< base")[1] == own_tail
    registered = yaml.safe_load((tmp_path / "pytorch/environment.yaml").read_text())
    assert registered["tags"]["doca"] == "3.2.9"
    assert sync(find_environments(tmp_path), tmp_path) == ()


@pytest.mark.parametrize("environment", find_environments(OURS), ids=lambda environment: environment.name)
def test_azure_ml_loads_it_as_it_stands(environment: EnvironmentFolder) -> None:
    from azure.ai.ml import load_environment

    folder = OURS / environment.name
    loaded = load_environment(folder / "environment.yaml")
    labels = labels_of(read(folder / "Dockerfile"))
    assert (loaded.name, loaded.version) == (f"allranks-{folder.name}", labels.version)
    assert (loaded.description, dict(loaded.tags)) == (labels.description, labels.tags)
    assert Path(loaded.base_path, loaded.build.path).resolve() == folder
    assert (loaded.build.dockerfile_path or "Dockerfile") == "Dockerfile"
    assert loaded.image is None
    assert loaded.conda_file is None


@pytest.mark.parametrize("file", ["Dockerfile", "environment.yaml", "expect.yaml"])
def test_a_file_that_is_missing(tmp_path: Path, file: str) -> None:
    shutil.copytree(OURS / "cpu", tmp_path / "cpu")
    (tmp_path / "cpu" / file).unlink()
    with pytest.raises(InputError, match=file):
        read_environment(tmp_path / "cpu")
