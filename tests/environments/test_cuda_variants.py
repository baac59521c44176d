"""The CUDA releases of the environments: a script chooses another one, and the default again."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from allranks.hardware.sizes import RELEASES
from allranks.plan.environment import Environment, cuda_version
from allranks.sdk.uploads import context_of

OURS = Path(__file__).parents[2] / "environments"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OURS, tmp_path / "environments", symlinks=True))


def choose(root: Path, name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([root / "variant.sh", name], capture_output=True, text=True, check=False)


def content(root: Path) -> dict[str, bytes]:
    """The files of all environments as they are uploaded."""
    folders = [file.parent for file in sorted(root.glob("*/environment.yaml"))]
    files = {f"{folder.name}/{name}": path for folder in folders for name, path in context_of(folder).files.items()}
    return {name: path.read_bytes() for name, path in files.items()}


def test_the_hardware_knows_the_releases() -> None:
    assert {folder.name for folder in (OURS / "variants").iterdir()} == {release.name for release in RELEASES}
    for release in RELEASES:
        images = (OURS / "variants" / release.name / "images.Dockerfile").read_text()
        assert re.findall(r"cuda:(\d+\.\d+)", images) == [release.version] * 2
        torch, horovod = (re.search(rf"{name}=(.*)", images)[1] for name in ("TORCH_CUDA_ARCH_LIST", "CUDA_CC_LIST"))  # type: ignore[index]
        assert torch.replace(".", "").split(";") == horovod.split(",")


def test_another_release_and_back(root: Path) -> None:
    before = content(root)
    assert choose(root, RELEASES[0].name).returncode == 0
    assert content(root) == before
    assert choose(root, "cuda13").returncode == 0
    changed = content(root)
    of_pytorch = {
        name.partition("/")[2]: text.decode() for name, text in changed.items() if name.startswith("pytorch/")
    }
    assert "FROM nvidia" not in of_pytorch["Dockerfile"]
    assert "BASE_IMAGE=nvidia/cuda:13.0.2-base" in of_pytorch["Dockerfile"]
    assert 'torch: {cuda: "13.0", nccl: "2.29.7"' in of_pytorch["expect.yaml"]
    assert "nvidia-nccl-cu13==2.29.7" in of_pytorch["libraries-cuda.txt"]
    assert "torch==2.13.0 " in of_pytorch["device-cuda.txt"]
    registered = yaml.safe_load(of_pytorch["environment.yaml"])
    assert registered["version"].endswith("-cuda13")  # so both can be in one workspace
    assert (registered["tags"]["cuda"], registered["tags"]["nccl"]) == ("13.0", "2.29.7")
    for name in ("pytorch", "openmpi-ofed"):
        assert cuda_version(Environment(folder=str(root / name))) == "13.0"
    # TensorFlow has a CUDA of its own; images without the base do not change.
    assert changed["tensorflow/device-cuda.txt"] == before["tensorflow/device-cuda.txt"]
    assert yaml.safe_load(changed["tensorflow/environment.yaml"])["tags"]["cuda"] == "12.9"
    assert {name for name in before if name.startswith(("cpu/", "gradient")) and before[name] != changed[name]} == set()
    assert choose(root, "cuda12").returncode == 0
    assert content(root) == before


def test_a_release_that_is_not_there(root: Path) -> None:
    done = choose(root, "cuda11")
    assert (done.returncode, "expected one of: cuda12 cuda13" in done.stderr) == (2, True)
    assert content(root) == content(OURS)


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
        (Environment(folder=str(OURS / "pytorch")), "12.6"),
        (Environment(folder=str(OURS / "tensorflow")), "12.9"),
        (Environment(folder="/nowhere"), ""),
    ],
)
def test_the_cuda_that_an_environment_states(environment: Environment, version: str) -> None:
    assert cuda_version(environment) == version
