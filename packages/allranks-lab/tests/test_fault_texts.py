"""How faults are written, and which of them a plan can have."""

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.errors import InputError
from allranks.plan.graph import Graph, Plan, Step
from allranks_lab.faults.faults import NEVER, Fault, RandomFaults, read
from allranks_lab.faults.targets import resolve

TRAIN = Step("train", "true", distribution=PyTorch(2), instance_count=2)
PLAN = Plan("plan", Graph((Step("prepare", "true"), TRAIN)))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("kill:rank=3,step=20", Fault("kill", rank=3, step=20)),
        ("kill=3,node=tune.train", Fault("kill", "tune.train", rank=3)),
        ("evict:instance=1,after=10s,grace=500ms", Fault("evict", instance=1, after=10, grace=0.5)),
        ("evict:instance=1,back=never", Fault("evict", instance=1, back=NEVER)),
        ("stop:instance=0,for=2m", Fault("stop", instance=0, lasts=120)),
        ("slow-rank=2,factor=3", Fault("slow-rank", rank=2, factor=3)),
        ("delay=10s", Fault("delay", time=10)),
        ("loss:share=5%,instance=1,for=2s", Fault("loss", instance=1, share=0.05, lasts=2)),
        ("rate=1.5gbit", Fault("rate", limit=1.5e9)),
        ("random:count=5,seed=1,kinds=kill+evict", RandomFaults(5, 1, ("kill", "evict"))),
    ],
)
def test_a_fault_as_text(text: str, fault: Fault | RandomFaults) -> None:
    assert read(text) == fault
    assert read(str(fault)) == fault


@pytest.mark.parametrize(
    ("text", "found", "hint"),
    [
        ("kil:rank=1", "kind 'kil'", "did you mean kill?"),
        ("evict:instnce=1", "key 'instnce'", "did you mean instance?"),
        ("evict:instance=1,grace=long", "grace=long", "seconds, such as"),
        ("evict", "no key instance", "evict:instance=1"),
        ("kill:rank=1,rank=2", "key rank twice", "each key once"),
        ("kill:rank=1,instance=0", "rank and instance", "one of them"),
        ("random:seed=1", "no key count", "random:count=1"),
        ("loss=0%", "share=0%", "such as 5%"),
        ("slow-start:instance=1,after=5s", "key 'after'", "instance, time, node"),
        ("kill:rank=4", "rank 4", "no step has more than 4: ranks 0 to 3"),
        ("kill:rank=1,node=prepare", "rank 1", "step prepare has 1: rank 0"),
        ("evict:instance=2,node=train", "instance 2", "step train has 2: instances 0 to 1"),
        ("kill:rank=0,node=trian", "no step trian", "did you mean train?"),
    ],
)
def test_a_fault_that_cannot_happen(text: str, found: str, hint: str) -> None:
    with pytest.raises(InputError) as error:
        resolve([text], PLAN)
    (problem,) = error.value.problems
    assert (problem.where, problem.found) == (f"--fault {text}", found)
    assert hint in f"{problem.expected} {problem.fix}"


def test_random_faults_follow_from_their_seed() -> None:
    faults = resolve(["random:count=20,seed=7,steps=100"], PLAN)
    assert faults == resolve(["random:count=20,seed=7,steps=100"], PLAN)
    assert faults != resolve(["random:count=20,seed=8,steps=100"], PLAN)
    moments = [fault.step or 0 for fault in faults]
    assert moments == sorted(set(moments))
    assert {(fault.rank or 0) < 4 and (fault.instance or 0) < 2 for fault in faults} == {True}
