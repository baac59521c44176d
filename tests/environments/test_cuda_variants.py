"""The CUDA releases of the environments: the folders are the default's, and one command writes another one and back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from allranks.checks.environment import check
from allranks.errors import InputError
from allranks.hardware.cuda import RELEASES
from allranks.images.find import find_environments
from allranks.images.sync import LIBRARIES, TABLE, read_variants, sync
from allranks.plan.environment import Environment, cuda_version

OURS = Path(__file__).parents[2] / "environments"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OURS, tmp_path / "environments"))


def content(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_the_table_and_the_hardware_know_the_same_releases() -> None:
    variants = read_variants(OURS)
    assert [(each.name, each.torch["CUDA_VERSION"]) for each in variants] == [
        (release.name, release.version) for release in RELEASES
    ]
    assert [each.name for each in variants if each.default] == [RELEASES[0].name]
    for variant in variants:
        # The images, the architectures and the wheels are of one release.
        major = variant.torch["CUDA_VERSION"].partition(".")[0]
        assert all(f"cuda:{variant.torch['CUDA_VERSION']}." in image for image in variant.base.values())
        architectures = [entry.replace(".", "") for entry in variant.torch["TORCH_CUDA_ARCH_LIST"].split(";")]
        assert architectures == variant.torch["HOROVOD_BUILD_CUDA_CC_LIST"].split(",")
        libraries = (variant.pins / LIBRARIES).read_text()
        assert f"nvidia-nccl-cu{major}=={variant.torch['NCCL_VERSION']} " in libraries


def test_the_folders_are_those_of_the_default(root: Path) -> None:
    before = content(root)
    assert sync(find_environments(root), root, RELEASES[0].name) == ()
    assert content(root) == before


def test_another_variant_and_back(root: Path) -> None:
    before = content(root)
    sync(find_environments(root), root, "cuda13")
    for environment in find_environments(root, ("openmpi-ofed", "deepspeed")):
        assert check(environment, root) == [], environment.name
    torch = content(root / "pytorch")
    assert "nvidia/cuda:13.0.2-base" in torch["Dockerfile"]
    assert 'torch: {cuda: "13.0", nccl: "2.29.7"' in torch["expect.yaml"]
    assert "nvidia-nccl-cu13==2.29.7" in torch["libraries-cuda.txt"]
    assert "torch==2.13.0 " in torch["device-cuda.txt"]
    registered = yaml.safe_load(torch["environment.yaml"])
    assert registered["version"].endswith("-cuda13")  # so both can be in one workspace
    assert registered["tags"]["cuda"] == "13.0"
    assert cuda_version(Environment(folder=str(root / "pytorch"))) == "13.0"
    assert cuda_version(Environment(folder=str(root / "openmpi-ofed"))) == "13.0"
    assert "bitsandbytes==" in (root / "finetuning" / "libraries-cuda.txt").read_text()
    for name in ("deepspeed", "finetuning"):  # DeepSpeed requires it only where it is built for GPUs
        assert "nvidia-ml-py==" in (root / name / "libraries-cuda.txt").read_text()
    # TensorFlow brings a CUDA of its own; without the base's block nothing changes.
    assert content(root / "tensorflow")["device-cuda.txt"] == before["tensorflow/device-cuda.txt"]
    assert content(root / "cpu")["environment.yaml"] == before["cpu/environment.yaml"]
    assert sync(find_environments(root), root) == ()
    sync(find_environments(root), root, "cuda12")
    assert content(root) == before


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        (None, "cuda11", "no variant 'cuda11'"),
        ("default: x\nvariants: {}\n", "cuda12", "keys default, variants"),
        ("default: a\nvariants:\n  a: {base: {}}\n", "a", "variant a"),
        ("default: a\nvariants:\n  a: {base: {}, torch: {}, pins: none}\n", "a", "none has no device-cuda.txt"),
    ],
)
def test_a_table_that_cannot_be_used(root: Path, text: str | None, name: str, found: str) -> None:
    if text is not None:
        (root / TABLE).write_text(text)
    with pytest.raises(InputError, match=found):
        sync(find_environments(root), root, name)


@pytest.mark.parametrize(
    ("environment", "version"),
    [
        (Environment(name="acpt-pytorch-2.8-cuda12.6", version="@latest"), "12.6"),
        (Environment(name="allranks-pytorch", version="0.3.0-cuda13"), "13.0"),
        (Environment(name="allranks-pytorch", version="0.3.0"), ""),
        (Environment(image="mcr.microsoft.com/aifx/acpt/stable-ubuntu2204-cu126-py310-torch280"), "12.6"),
        (Environment(image="nvidia/cuda:13.0.2-base-ubuntu24.04"), "13.0"),
        (Environment(image="python:3.12"), ""),
        (Environment(folder=str(OURS / "cpu")), ""),
        (Environment(folder=str(OURS / "tensorflow")), "12.9"),
        (Environment(folder="/nowhere"), ""),
    ],
)
def test_the_cuda_that_an_environment_states(environment: Environment, version: str) -> None:
    assert cuda_version(environment) == version
