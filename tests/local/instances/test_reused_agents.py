"""An agent runs one step after another: nothing of a step is left for the next one on the instance."""

from __future__ import annotations

from pathlib import Path

import pytest

from allranks.history.records import Status
from allranks.plan.graph import Graph, Plan, Step

LEAVE = (
    "echo left > /dev/shm/left; echo left > /tmp/left; (setsid sleep 1000 &) ; ipcmk -M 100;"
    " hostname changed || true; mount -t tmpfs none /mnt && echo left > /mnt/left || true; cd /; kill -0 1"
)
LOOK = (
    "ls -A /dev/shm /tmp | grep left; ls /mnt | grep left; hostname; ipcs -m | grep -c 0x; cat /etc/hosts | sort;"
    " for process in /proc/[0-9]*; do cat $process/comm; done | sort -u; grep -c . /proc/mounts"
)


def test_a_step_finds_nothing_of_the_step_before(rack_works: bool, run_steps) -> None:
    if not rack_works:
        pytest.skip("this machine has no user namespaces")
    steps = tuple(
        Step(name, command, after=needs)
        for name, command, needs in (("first", LOOK, ()), ("leave", LEAVE, ("first",)), ("last", LOOK, ("leave",)))
    )
    record = run_steps(plan=Plan("p", Graph(steps)), instances="rack")
    assert record.status is Status.COMPLETED, record.verdict
    first, last = (Path(record.step(name).ranks[0].log).read_text() for name in ("first", "last"))
    assert first == last
    assert "left" not in last
    assert "sleep" not in last
