"""What goes into the store comes out of it again."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from allranks.contract.pytorch import PyTorch
from allranks.contract.tensorflow import TensorFlow
from allranks.errors import InputError, Location
from allranks.history.records import OutputRecord, Point, Progress, RankRecord, RunRecord, Status, StepRecord, Verdict
from allranks.history.store import Store
from allranks.plan.codec import dumps, loads
from allranks.plan.graph import Code, Graph, Plan, Step
from allranks.plan.ports import GraphInput, GraphOutput, Input, Literal, NodeOutput, Output, Text
from allranks.plan.ports import Path as DataPath

PLAN = Plan(
    "p",
    Graph(
        (
            Step(
                "a",
                "cmd",
                "component",
                "1",
                code=Code("/c", "d"),
                environment_variables={"A": "b"},
                distribution=PyTorch(2),
                timeout=1.5,
                inputs=(
                    Input("i", "integer", Literal(3)),
                    Input("b", "boolean", Literal(True)),
                    Input("f", "number", Literal(3.0)),
                    Input("s", "string", Literal("3")),
                    Input("t", "string", Text(("x", GraphInput("p"), NodeOutput("z", "o")))),
                    Input("d", "uri_folder", DataPath("/d"), "ro_mount", enum=("a", "b")),
                    Input("none", "number", None, optional=True, minimum=0.5),
                ),
                outputs=(Output("o", "uri_folder", "upload", "./x"),),
                location=Location("f.py", 3),
                after=("z",),
            ),
            Step("z", "cmd", distribution=TensorFlow(worker_count=2)),
        ),
        outputs=(GraphOutput("o", NodeOutput("a", "o")),),
    ),
)


def _record(identity: str = "aaaa1111", created: float = 1.0) -> RunRecord:
    step = StepRecord(
        "a",
        "A",
        "component",
        "pytorch",
        1,
        2,
        ("z",),
        Status.FAILED,
        1,
        1.0,
        2.0,
        "other",
        "/f",
        "mlflow",
        [RankRecord(0, 0, 0, "node-0", Status.FAILED, 1.0, 2.0, None, "SIGKILL", "/log")],
        {"i": "3"},
        [OutputRecord("o", "uri_folder", "/o", None, "digest")],
        progress=Progress(3, 10, 1),
        artifacts=["outputs/x"],
        notes=["n"],
        verdict=Verdict("a", "why", 0, 0, None, "SIGKILL", "/log", ("tail",), "tb"),
    )
    return RunRecord(
        identity,
        "p",
        "P",
        "f.py",
        "rack",
        Status.RUNNING,
        created,
        folder="/r",
        steps=[step, StepRecord("z", "z", "", "tensorflow", 1, 1)],
    )


@pytest.fixture
def store(tmp_path: Path):
    with Store(tmp_path / "s.db") as opened:
        yield opened


def test_a_plan_comes_back_as_it_was(store: Store) -> None:
    store.add_run(_record(), dumps(PLAN))
    found = loads(store.plan("aaaa1111"))
    assert found == PLAN
    assert [type(port.value) for port in found.graph.nodes[0].inputs] == [
        type(port.value) for port in PLAN.graph.nodes[0].inputs
    ]
    assert [type(port.value.value) for port in found.graph.nodes[0].inputs[:4]] == [int, bool, float, str]


def test_a_record_comes_back_as_it_was(store: Store) -> None:
    record = _record()
    store.add_run(record, dumps(PLAN))
    assert store.run("aaaa1111") == record
    record.step("a").status, record.ended = Status.COMPLETED, 5.0
    store.save_step(record, record.step("a"))
    store.save_run(record)
    assert store.run("aaaa1111") == record


def test_curves_come_back_in_order_with_nan_and_infinity(store: Store) -> None:
    store.add_run(_record(), dumps(PLAN))
    points = [Point(0, 1.5, 1.0), Point(1, math.nan, 2.0), Point(1, math.inf, 2.0)]
    store.add_points(
        "aaaa1111",
        "a",
        [("loss", points[0]), ("accuracy", Point(0, 0.1, 1.0)), ("loss", points[1]), ("loss", points[2])],
    )
    found = store.run("aaaa1111").step("a").metrics
    assert list(found) == ["loss", "accuracy"]
    assert repr(found["loss"]) == repr(points)
    store.clear_points("aaaa1111", "a")
    assert store.run("aaaa1111").step("a").metrics == {}


@pytest.mark.parametrize("others", [0, 30])
def test_an_even_part_of_long_curves_is_read(store: Store, others: int) -> None:
    """Also while other runs add many more points."""
    store.add_run(_record(), "{}")
    for x in range(2000):
        store.add_points("aaaa1111", "a", [(name, Point(x, float(x), 0.0)) for name in ("loss", "lr")])
        store.add_points("bbbb2222", "a", [("other", Point(x, 0.0, 0.0))] * others)
    assert store.measured_steps("aaaa1111") == ["a"]
    whole, part = (store.part_of_curves("aaaa1111", "a", most) for most in (1 << 20, 400))
    assert [len(points) for points in whole.values()] == [2000, 2000]
    assert 250 < sum(map(len, part.values())) < 550
    for name in ("loss", "lr"):
        steps = [x for x, _, _ in part[name]]
        assert steps == sorted(set(steps))
        assert steps[0] < 100
        assert steps[-1] > 1900
        assert len(steps) > 100


def test_the_last_values_of_a_run(store: Store) -> None:
    store.add_run(_record(), "{}")
    points = [("loss", Point(0, 2.0, 0.0)), ("lr", Point(0, 3.0, 0.0)), ("loss", Point(1, 1.0, 0.0))]
    store.add_points("aaaa1111", "a", points)
    assert store.last_values("aaaa1111") == {"a": {"loss": 1.0, "lr": 3.0}}
    store.add_points("aaaa1111", "a", [("loss", Point(2, math.nan, 0.0))])
    assert store.last_values("aaaa1111") == {"a": {"loss": None, "lr": 3.0}}


def test_a_run_is_found_by_the_beginning_of_its_id(store: Store) -> None:
    store.add_run(_record("aaaa1111", 1.0), dumps(PLAN))
    store.add_run(_record("aabb2222", 2.0), dumps(PLAN))
    assert store.find("aaa") == "aaaa1111"
    assert store.find("latest") == "aabb2222"
    with pytest.raises(InputError, match="fits 2 runs"):
        store.find("aa")
    for wrong in ("", "c", "%", "aaaa11112"):
        with pytest.raises(InputError):
            store.find(wrong)


def test_runs_are_listed_the_newest_first(store: Store) -> None:
    for number in range(3):
        store.add_run(_record(f"r{number}", float(number)), dumps(PLAN))
    assert [run.id for run in store.each_run()] == ["r2", "r1", "r0"]


def test_results_are_found_by_their_key(store: Store) -> None:
    record = _record()
    store.add_run(record, dumps(PLAN))
    assert store.result("k") is None
    store.add_result("k", record.id, "a")
    found = store.result("k")
    assert found is not None
    assert (found[0], found[1].outputs) == (record.id, record.step("a").outputs)


def test_what_ran_when_the_engine_died_is_marked(store: Store) -> None:
    record = _record()
    record.step("z").status = Status.RUNNING
    store.add_run(record, dumps(PLAN))
    store.interrupt(lambda run: run == record.id)
    assert store.run(record.id).status is record.status
    store.interrupt(lambda run: False)
    found = store.run(record.id)
    assert found.status is Status.INTERRUPTED
    assert [step.status for step in found.steps] == [Status.FAILED, Status.INTERRUPTED]


def test_a_run_that_has_just_ended_is_not_marked(store: Store) -> None:
    record = _record()
    store.add_run(record, dumps(PLAN))
    store.interrupt(lambda _: bool(store.save_run(replace(record, status=Status.COMPLETED))))
    assert store.run(record.id).status is Status.COMPLETED


@pytest.mark.parametrize("version", [1, 99])
def test_a_store_of_another_version_is_refused(tmp_path: Path, version: int) -> None:
    path = tmp_path / "allranks.db"
    with Store(path) as store:
        store.connection.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(InputError, match=f"a store of version {version}, this is version") as error:
        Store(path)
    assert "move allranks.db away" in str(error.value)
    assert path.read_bytes()[100:] == before[100:]  # the header says how it was opened


def test_several_open_a_new_one_at_once(tmp_path: Path) -> None:
    together = threading.Barrier(6)

    def opened(path: Path) -> None:
        together.wait(60)
        with Store(path):
            pass

    with ThreadPoolExecutor(6) as threads:
        for number in range(20):
            list(threads.map(opened, [tmp_path / f"{number}.db"] * 6))
