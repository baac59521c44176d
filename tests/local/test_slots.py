"""Slots and GPUs: who waits for whom, in one run and between runs."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import bounded
from allranks.errors import InputError
from allranks.local.options import Options
from allranks.local.slots import Machines, SharedLocks, Slots


@pytest.fixture
def locks(tmp_path: Path) -> SharedLocks:
    return SharedLocks(tmp_path / "slots")


def test_slots_are_given_in_the_order_of_the_queue(locks: SharedLocks) -> None:
    async def scenario() -> list[str]:
        slots, got = Slots(2, locks=locks), []

        async def acquire(name: str, count: int) -> None:
            async with slots.acquire(count):
                got.append(name)
                await asyncio.sleep(0)

        await asyncio.gather(acquire("a", 2), acquire("b", 1), acquire("c", 2))
        return got

    assert asyncio.run(scenario()) == ["a", "b", "c"]


def test_a_waiter_that_gives_up_leaves_the_queue(locks: SharedLocks) -> None:
    async def scenario() -> list[str]:
        slots, got = Slots(1, locks=locks), []

        async def acquire(name: str) -> None:
            async with slots.acquire(1):
                got.append(name)
                for _ in range(3):
                    await asyncio.sleep(0)

        first, second, third = (asyncio.create_task(acquire(name)) for name in "abc")
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(first, third)
        return got

    assert asyncio.run(scenario()) == ["a", "c"]


def test_gpus_are_given_to_one_step_at_a_time(locks: SharedLocks) -> None:
    async def scenario() -> None:
        slots = Slots(8, ("0", "1", "2"), locks)
        used: set[str] = set()

        async def acquire(count: int) -> None:
            async with slots.acquire(1, count) as share:
                assert len(share.gpus) == count
                assert not used & set(share.gpus)
                used.update(share.gpus)
                await asyncio.sleep(0)
                used.difference_update(share.gpus)

        await asyncio.gather(*(acquire(count) for count in (1, 2, 3, 1, 1, 2)))

    asyncio.run(scenario())


HOLDER = """
import asyncio, sys
from collections.abc import Callable
from pathlib import Path
from allranks.local.slots import SharedLocks, Slots
async def hold():
    async with Slots(2, ("0",), SharedLocks(Path(sys.argv[1]), "run ab12 of digits")).acquire(2, 1):
        print("held", flush=True)
        sys.stdin.readline()
asyncio.run(hold())
"""


@pytest.mark.parametrize("end", ["gives back", "is killed"])
def test_what_another_run_has_is_waited_for(locks: SharedLocks, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("allranks.local.slots.NOTICE_AFTER", 0.0)
    notices: list[object] = []
    command = [sys.executable, "-c", HOLDER, str(locks.folder)]
    with bounded.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"

        async def scenario() -> None:
            slots = Slots(2, ("0",), locks, notices.append)

            async def acquire() -> None:
                async with slots.acquire(1, 1):
                    pass

            waiting = asyncio.create_task(acquire())
            for _ in range(10):
                await asyncio.sleep(0.01)
            assert not waiting.done()
            assert notices == [("run ab12 of digits",)]
            if end == "is killed":
                holder.kill()
            else:
                assert holder.stdin is not None
                holder.stdin.write("\n")
                holder.stdin.flush()
            await asyncio.wait_for(waiting, 60)

        asyncio.run(scenario())
        assert notices == [("run ab12 of digits",), ()]


def test_machines_are_used_again() -> None:
    machines = Machines()
    assert machines.acquire(2) == [0, 1]
    assert machines.acquire(1) == [2]
    machines.release([1])
    assert machines.acquire(2) == [1, 3]


def test_waiters_that_are_canceled_with_who_holds_the_slots_get_none(locks: SharedLocks) -> None:
    async def scenario() -> list[str]:
        slots, got = Slots(1, locks=locks), []

        async def acquire(name: str) -> None:
            async with slots.acquire(1):
                got.append(name)
                await asyncio.Event().wait()

        tasks = [asyncio.create_task(acquire(name)) for name in "ab"]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(end) for end in ends] == [asyncio.CancelledError] * 2
        async with slots.acquire(1):
            got.append("c")
        return got

    assert asyncio.run(scenario()) == ["a", "c"]


@pytest.mark.parametrize("count", [-1, 0, 10_001, 10**30])
def test_an_absurd_number_of_slots_is_refused(count: int) -> None:
    with pytest.raises(InputError, match=f"--slots {count}: not a number of ranks"):
        Options(slots=count)
    assert Options(slots=10_000).slots == 10_000
