"""Ranks agree on a step. Threads stand for the ranks here; see test_eviction.py for processes."""

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from torch.distributed import HashStore, PrefixStore, TCPStore

import bounded
from allranks.runtime.lifecycle import close_all
from allranks.runtime.ranks.agreement import Agreement, Decision

# loops that never wait: two tests at once slow down each other
pytestmark = pytest.mark.slow

STEPS = 2000


@pytest.fixture
def agreements() -> Iterator[Callable[[int], list[Agreement]]]:
    """agreements(n): those of n ranks, each with its own connection to one store."""
    made: list[Agreement] = []
    host = TCPStore("127.0.0.1", 0, 1, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=60))

    def make(ranks: int) -> list[Agreement]:
        store = PrefixStore(str(len(made)), host)
        new = [Agreement(store, rank, ranks) for rank in range(ranks)]
        made.extend(new)
        return new

    yield make
    closing = [threading.Thread(target=agreement.close) for agreement in made]
    for thread in closing:
        thread.start()
    for thread in closing:
        bounded.join(thread)
    left = [thread for thread in threading.enumerate() if thread.name == "allranks-agreement"]
    for thread in left:
        thread.join(60)
    assert not any(thread.is_alive() for thread in left)


class Loop:
    """The training loops of all ranks, with a barrier in each step where they train in step."""

    def __init__(self, agreements: list[Agreement], *, in_step: bool) -> None:
        self._agreements = agreements
        self._barrier = threading.Barrier(len(agreements)) if in_step else None

    def run(self, requests: dict[int, dict[int, bool]], steps: int = STEPS) -> list[list[Decision]]:
        """Each rank's decisions, made at their step. requests: by rank and step, whether to stop."""
        with ThreadPoolExecutor(len(self._agreements)) as pool:
            return list(pool.map(lambda rank: self._rank(rank, requests.get(rank, {}), steps), self._ranks()))

    def _ranks(self) -> range:
        return range(len(self._agreements))

    def _rank(self, rank: int, requests: dict[int, bool], steps: int) -> list[Decision]:
        agreement, made = self._agreements[rank], []
        for step in range(1, steps + 1):
            if self._barrier:
                self._barrier.wait(60)
            if step in requests:
                agreement.request(stop=requests[step])
            decision = agreement.reach(step)
            if decision:
                assert decision.step == step
                made.append(decision)
                if decision.stop:
                    break
        else:
            agreement.close()
        return made


def test_nobody_asks(agreements: Callable[[int], list[Agreement]]) -> None:
    assert Loop(agreements(3), in_step=True).run({}) == [[], [], []]


@pytest.mark.parametrize("who", [[0], [1], [2], [0, 1, 2]])
def test_an_evicted_rank_stops_all_at_the_same_step(
    agreements: Callable[[int], list[Agreement]], who: list[int]
) -> None:
    found = Loop(agreements(3), in_step=True).run({rank: {100: True} for rank in who})
    assert found[0] == found[1] == found[2]
    (decision,) = found[0]
    assert decision.stop
    assert 100 <= decision.step <= 102


@pytest.mark.parametrize("seed", range(3))
def test_ranks_that_are_any_number_of_steps_apart(agreements: Callable[[int], list[Agreement]], seed: int) -> None:
    """They never wait for each other, and one is asked at any step."""
    chance = random.Random(seed)
    requests = {chance.randrange(3): {chance.randrange(1, 200): True} for _ in range(2)}
    found = Loop(agreements(3), in_step=False).run(requests, steps=10**9)  # until they have agreed
    assert found[0] == found[1] == found[2]
    (decision,) = found[0]
    assert decision.stop


def test_saves_follow_each_other_and_the_training_goes_on(agreements: Callable[[int], list[Agreement]]) -> None:
    found = Loop(agreements(2), in_step=True).run({0: {10: False, 3_000: False}, 1: {9_000: True}}, steps=10**6)
    assert found[0] == found[1]
    assert [decision.stop for decision in found[0]] in ([False, False, True], [False, True])


def test_a_save_and_an_eviction_at_the_same_time(agreements: Callable[[int], list[Agreement]]) -> None:
    found = Loop(agreements(2), in_step=True).run({0: {10: False}, 1: {10: True}}, steps=10**6)
    assert found[0] == found[1]
    assert found[0][-1].stop


def test_a_training_that_ends_first_ends_as_usual(agreements: Callable[[int], list[Agreement]]) -> None:
    """Asked at the last step: the other rank does not come to another, and nobody waits for it."""
    found = Loop(agreements(2), in_step=True).run({1: {STEPS: True}})
    assert found == [[], []] or all(decision.step == STEPS for made in found for decision in made)


def test_alone() -> None:
    agreement = Agreement(HashStore(), 0, 1)
    assert agreement.reach(1) is None
    agreement.request(stop=False)
    assert agreement.reach(2) == Decision(2, stop=False)
    assert agreement.reach(3) is None
    agreement.request(stop=True)
    assert agreement.reach(4) == Decision(4, stop=True)


def test_a_lost_store_is_an_error_only_for_a_rank_that_would_wait() -> None:
    host = TCPStore("127.0.0.1", 0, 1, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=60))

    class Lost(PrefixStore):
        def clone(self) -> None:
            raise ConnectionResetError("the store is gone")

    agreement = Agreement(Lost("x", host), 0, 2)
    agreement.request(stop=True)
    with pytest.raises(ConnectionError, match="could not agree"):
        agreement.reach(1)
    close_all()
