"""What the tests of the launchers share."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from ssh_jobs import ORDINARY_USER, User


@pytest.fixture(params=["own", "ordinary"])
def user(request: pytest.FixtureRequest, rack_works: bool) -> Iterator[User]:
    """The user of the tests, who is root in CI, and an ordinary user. Nothing of the folder is left."""
    if not rack_works:
        pytest.skip("this machine has no user namespaces")
    if request.param == "ordinary" and os.getuid() != 0:
        pytest.skip("the user of the tests is an ordinary user")
    number = ORDINARY_USER if request.param == "ordinary" else os.getuid()
    # Pytest's own folders are for one user alone, and an instance has a /tmp of its own.
    with tempfile.TemporaryDirectory(prefix="allranks-", dir="/var/tmp") as folder:
        if request.param == "ordinary" and not _can_start(number):
            pytest.skip("an ordinary user cannot read this environment, or has no user namespaces")
        yield User(number, Path(folder))


def _can_start(number: int) -> bool:
    user = ["setpriv", "--reuid", str(number), "--regid", str(number), "--clear-groups"]
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", "import allranks"]
    return subprocess.run([*user, *command]).returncode == 0
