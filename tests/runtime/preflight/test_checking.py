"""How the ranks hear what was found."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import timedelta

import pytest
from torch.distributed import HashStore, PrefixStore  # type: ignore[attr-defined]

from allranks.contract.rank_env import RankEnv
from allranks.errors import InputError
from allranks.runtime.preflight import checking, facts
from allranks.runtime.preflight.checking import Preflight
from allranks.runtime.preflight.facts import gather


@pytest.mark.parametrize("unresolved", [("node-9",), ()], ids=["a failed check", "all well"])
def test_rank_0_goes_on_when_all_have_heard(unresolved: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is its own, and ends with it: who reads there later would see a lost connection in place of a cause, or
    fail although all is well."""
    monkeypatch.setattr(checking, "clock_offsets", lambda *_: [0.0, 0.0, 0.0])
    monkeypatch.setattr(facts, "_unresolved", lambda _: unresolved)
    ranks = [RankEnv(rank=rank, world_size=3, instance_rank=rank, instance_count=3) for rank in range(3)]
    store = HashStore()
    seen = PrefixStore("preflight", store)
    for rank in (1, 2):
        seen.set(f"facts/{rank}", json.dumps(asdict(gather(ranks[rank], {}))))
    with ThreadPoolExecutor() as threads:
        rank_0 = threads.submit(Preflight(ranks[0], store).before_the_group)
        seen.wait(["before", "before/heard/0"], timedelta(seconds=60))
        for rank in (1, 2):
            assert not rank_0.done()
            seen.set(f"before/heard/{rank}", "")
        raised = rank_0.exception(60)
    assert isinstance(raised, InputError) == bool(unresolved)
    assert not unresolved or "node-9 does not resolve" in str(raised)
