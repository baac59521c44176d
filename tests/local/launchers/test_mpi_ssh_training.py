"""Horovod and DeepSpeed under an mpirun that reaches the instances by ssh."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from ssh_jobs import User, needs_ssh

from mpi_trainings import BY_LIBRARY, printed

pytestmark = [pytest.mark.timeout(200), needs_ssh]


# Each library and each user once: what a session of either user has, test_mpi_ssh.py compares.
@pytest.mark.parametrize(
    ("user", "library"),
    [pytest.param("own", "deepspeed", marks=pytest.mark.recipe), ("ordinary", "horovod")],
    indirect=["user"],
)
def test_gradients_are_averaged_over_the_instances(library: str, user: User) -> None:
    if find_spec(library) is None:
        pytest.skip(f"no {library} here")
    logs = user.run(BY_LIBRARY[library])
    assert [log.splitlines()[-1] for log in logs] == printed(user.number, size=3)
