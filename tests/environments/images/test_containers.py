"""`--environment container` with images that are really built: one 2x2 training in two of them, in two virtual
environments and on the host, each with two versions of numpy that some of the others have."""

import json
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from local_images import BASE, Images, run

from allranks_command import Ended, allranks, logs
from pipeline_files import TWO_BY_TWO, write_training

NUMPY = "1.26.4"
"""Of one image and one virtual environment. The other image has Debian's, the other environment that of the host."""

HOST = metadata.version("numpy")
OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"

APT = "RUN apt-get update && apt-get install --yes --no-install-recommends python-is-python3"
CONTEXTS = {
    "debian": [f"FROM {BASE}", f"{APT} python3-numpy"],
    "pypi": [
        f"FROM {BASE}",
        f"{APT} python3",
        "COPY *.whl /wheels/",
        "RUN python3 -m zipfile -e /wheels/*.whl /usr/local/lib/python3.11/dist-packages",
        "ENV OF_IMAGE=yes",
    ],
}
TRAIN = """\
import os, socket, time
from multiprocessing.connection import Client, Listener
import numpy

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    listener = Listener(address)
    others = [listener.accept() for _ in range(size - 1)]
else:
    while True:
        try:
            first = Client(address)
            break
        except ConnectionRefusedError:
            time.sleep(0.05)

def mean(value):
    if rank:
        first.send(value)
        return first.recv()
    result = sum([each.recv() for each in others], value) / size
    for each in others:
        each.send(result)
    return result

random = numpy.random.default_rng(rank)
inputs = random.integers(-4, 5, (64, 3)).astype(float)
targets = inputs @ numpy.array([1.0, -2.0, 3.0])
weights = numpy.zeros(3)
for _ in range(50):
    weights -= 0.05 * mean(inputs.T @ (inputs @ weights - targets) / len(inputs))
assert abs(weights - [1, -2, 3]).max() < 1e-3, weights
shm = os.statvfs("/dev/shm")
print(*(float(weight).hex() for weight in weights))
print(numpy.__version__, socket.gethostname(), os.getuid(), shm.f_blocks * shm.f_frsize, os.path.exists("PROJECT"),
      os.environ.get("OF_IMAGE"))
"""


@pytest.fixture
def project(images: Images, tmp_path: Path) -> Path:
    for name, lines in CONTEXTS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "Dockerfile").write_text("\n".join(lines) + "\n")
    for name, python, numpy in (("pypi", "3.11", NUMPY), ("own", OWN, HOST)):
        download = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
        run(
            [*download, f"--python-version={python}", f"--dest={tmp_path / name}", f"numpy=={numpy}"],
            images.environment,
        )
        pip = ["--no-index", f"--find-links {tmp_path / name}", f"numpy=={numpy}"]
        (tmp_path / f"{name}.yml").write_text(json.dumps({"dependencies": [f"python={python}", {"pip": pip}]}))
    write_training(tmp_path, TRAIN.replace("PROJECT", str(Path(__file__))), "null")
    return tmp_path


@pytest.fixture
def own(images: Images, project: Path) -> dict[str, str]:
    """The variables of commands."""
    store = images.environment["CONTAINERS_STORAGE_CONF"]
    return {"CONTAINERS_STORAGE_CONF": store, "XDG_CACHE_HOME": str(project / "cache")}


def test_one_training_on_the_host_in_two_virtual_environments_and_in_two_containers(
    project: Path, own: dict[str, str]
) -> None:
    def command(*arguments: str) -> Ended:
        ended = allranks(*arguments, folder=project, patience=600, **own)
        assert ended.code == 0, f"{ended.out[-2000:]}\n{ended.err[-2000:]}"
        return ended

    def trained(environment: str, how: str) -> tuple[Any, set[str], list[str]]:
        """The record, the results of the ranks, and what else they print."""
        (project / "job.yml").write_text(TWO_BY_TWO.replace("ENVIRONMENT", environment))
        ended = command("run", "job.yml", "--environment", how, "--no-track", "--json")
        lines = [log.splitlines() for log in logs(ended.step("train"))]
        return ended.json, {log[0] for log in lines}, [log[1] for log in lines]

    def named(first: Any, second: Any) -> list[tuple[str, str]]:
        """The versions of numpy that the difference of two runs names."""
        return re.findall(r"package numpy +(\S+) +(\S+)", command("diff", first["id"], second["id"]).out)

    debian, weights, printed = trained("{build: {path: debian}}", "container")
    assert len(weights) == 1
    assert [line.split()[1:] for line in printed] == [
        [f"node-{rank // 2}", "0", str(64 << 20), "False", "None"] for rank in range(4)
    ]
    pypi, in_container, printed = trained("{build: {path: pypi}}", "container")
    assert {(line.split()[0], line.split()[-1]) for line in printed} == {(NUMPY, "yes")}
    host, on_host, printed = trained('{image: "python:3.11"}', "host")
    assert {line.split()[0] for line in printed} == {HOST}
    like_host, in_own, printed = trained('{image: "python:3.11", conda_file: own.yml}', "venv")
    assert {line.split()[0] for line in printed} == {HOST}
    venv, in_venv, printed = trained('{image: "python:3.11", conda_file: pypi.yml}', "venv")
    assert {line.split()[0] for line in printed} == {NUMPY}
    assert (in_container, on_host) == (in_venv, in_own)
    assert named(host, like_host) == named(venv, pypi) == []
    assert named(like_host, venv) == named(host, pypi) == [(HOST, NUMPY)]
    assert [pair[1] for pair in named(debian, pypi)] == [NUMPY]
    again = command("run", "job.yml", "--environment", "venv", "--no-track", "--json")
    assert again.step("train")["reused_from"] == venv["id"]


def test_an_image_with_a_conda_file(images: Images, project: Path, own: dict[str, str]) -> None:
    """Without conda in the image, its Python makes an environment with the packages."""
    image = images.derive("localhost/with-venv", BASE, f"{APT} python3-venv", "ENV OF_IMAGE=yes")
    environment = f"{{image: {image}, conda_file: conda.yml}}"
    write_training(project, "import sys; print(sys.prefix)", environment, "python=3.11", {"pip": ["--no-index"]})
    options = ("--environment", "container", "--no-track", "--json")
    ended = allranks("run", "job.yml", *options, folder=project, patience=600, **own)
    assert set(logs(ended.step("train"))) == {"/azureml-envs/allranks"}
    # The image has Debian's version only.
    (project / "conda.yml").write_text(json.dumps({"dependencies": ["python=3.9"]}))
    ended = allranks("run", "job.yml", *options, folder=project, patience=600, **own)
    assert ended.code == 2
    assert "the image has no conda, and its Python is not 3.9" in ended.err
