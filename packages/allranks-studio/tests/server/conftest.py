"""A folder with a run, in a studio."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import Client, serving


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A studio of an empty folder, which the tests of a file share."""
    with serving(tmp_path_factory.mktemp("project")) as client:
        yield client


@pytest.fixture
def root(studio: Client) -> Path:
    """The workspace of the folder, without runs."""
    root = studio.studio.folders[studio.folder].workspace.root
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    return root
