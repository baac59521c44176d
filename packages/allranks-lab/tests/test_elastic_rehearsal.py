"""The evictions of an elastic rehearsal, without running it."""

from types import SimpleNamespace

from allranks.contract.variables import ELASTIC_INSTANCES
from allranks.plan.graph import Graph, Plan, Step
from allranks_lab.faults.faults import Fault, read
from allranks_lab.rehearsal import rehearsal

ELASTIC = Step("train", "true", instance_count=4, environment_variables={ELASTIC_INSTANCES: "2:4"})


def test_evicted_instances_are_there_while_others_are_away() -> None:
    minimums = rehearsal._minimums(Plan("p", Graph((ELASTIC, Step("other", "true")))))
    assert minimums == {"train": 2}
    run = SimpleNamespace(step=lambda _: ELASTIC)
    moments = [("train", at) for at in range(1, 60)]
    faults = [read(text) for text in rehearsal._faults(moments, run, 30, 1, minimums)]  # type: ignore[arg-type]
    assert {fault.instance for fault in faults if isinstance(fault, Fault)} == {0, 1}
    assert all(fault.back >= 2 for fault in faults if isinstance(fault, Fault))
