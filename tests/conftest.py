"""What all tests share: both kinds of instances."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import settings

from allranks.local.supervisor import Supervisor, UnfitError

# How long an example takes says nothing about it.
settings.register_profile("untimed", deadline=None)
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
