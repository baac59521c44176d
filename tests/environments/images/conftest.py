"""Images that are really built and run. Only `make test-images` asks for them: they take minutes and the network."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import pytest
from local_images import BASE, Images, missing_packages

ENVIRONMENTS = Path(__file__).parents[3] / "environments"

if not os.environ.get("ALLRANKS_TEST_IMAGES"):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def images() -> Iterator[Images]:
    """A store of images of the tests' own, with a Debian in it. Nothing of it is left."""
    if missing := missing_packages():
        pytest.skip(f"building images needs {' and '.join(missing)}")
    # Not below the tests' temporary folder: mounts are made in it, and only buildah may remove them.
    folder = Path(tempfile.mkdtemp(prefix="allranks-images-", dir="/var/tmp"))
    here = Images(folder)
    try:
        here.make_base()
        yield here
    finally:
        here.remove()


@pytest.fixture(scope="session")
def image_of(images: Images) -> Callable[[str], str]:
    """The image of an environment, built on the Debian for CPUs by the command, once. They share the stages of the
    base."""
    return cache(partial(built, images))


@pytest.fixture(scope="session")
def base(image_of: Callable[[str], str]) -> str:
    return image_of("openmpi-ofed")


@pytest.fixture(scope="session")
def pytorch(image_of: Callable[[str], str]) -> str:
    return image_of("pytorch")


def built(images: Images, name: str) -> str:
    tag = f"localhost/allranks-{name}"
    options = [f"--engine-option={option}" for option in images.reach()]
    done = images.allranks("build", name, "--base-image", BASE, "--tag", tag, "--engine", "buildah", *options)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return tag


@pytest.fixture
def environments(tmp_path: Path) -> Path:
    """The project's environments, to be spoilt."""
    shutil.copytree(ENVIRONMENTS, tmp_path / "environments")
    return tmp_path / "environments"
