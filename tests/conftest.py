"""What all tests share: both kinds of instances."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir

from allranks.local.supervisor import Supervisor, UnfitError

# The SDK builds its schemas at its first import in a process, by this switch. `allranks` sets it before; a test that
# imports the SDK itself must not change what the tests after it see.
os.environ["AZURE_ML_CLI_PRIVATE_FEATURES_ENABLED"] = "true"
# Read when tqdm is first imported, by whatever does that; `allranks` sets it before the SDK.
os.environ["TQDM_DISABLE"] = "1"

# How long an example takes says nothing about it.
settings.register_profile("untimed", deadline=None, database=None)
settings.load_profile("untimed")


def _works(kind: str) -> bool:
    async def try_it() -> bool:
        try:
            await (await Supervisor.start(kind)).close()
        except UnfitError:
            return False
        return True

    return asyncio.run(try_it())


@pytest.fixture(scope="session")
def rack_works() -> bool:
    return _works("rack")


@pytest.fixture(params=["loopback", "rack"])
def kind(request: pytest.FixtureRequest, rack_works: bool) -> str:
    """Both kinds of instances; the rack only where this machine has user namespaces."""
    if request.param == "rack" and not rack_works:
        pytest.skip("this machine has no user namespaces")
    return str(request.param)


@pytest.fixture(scope="session", autouse=True)
def _temporary_folder() -> Iterator[None]:
    """What the tests' processes put into the temporary folder is gone with the tests. Its path is short: sockets lie
    in it."""
    before = os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory(prefix="allranks-tests-", ignore_cleanup_errors=True) as folder:
        os.environ["TMPDIR"] = folder
        set_hypothesis_home_dir(folder)
        yield
    if before is None:
        del os.environ["TMPDIR"]
    else:
        os.environ["TMPDIR"] = before


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first, in whatever order they are: at the end no worker then waits for another's last."""
    items.sort(key=lambda item: "slow" not in item.keywords)
