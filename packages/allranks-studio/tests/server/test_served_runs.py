"""The runs of a folder as the front end reads them."""

import math
from pathlib import Path

from serving import Client

from allranks.history import locks
from allranks.history.records import AttemptRecord, ModelRecord, Point, Status, Verdict
from allranks.history.store import Store
from allranks.history.usage import RankUsage, Sample, add
from allranks.plan.codec import dumps
from allranks.plan.graph import Code, Graph, Plan, Step
from run_records import BEGIN, make_ranks, make_run, make_step, make_sweep

ENDED = {"status": Status.RUNNING, "ended": None}


def test_the_table_of_runs(studio: Client, root: Path) -> None:
    assert studio.get("/api/runs")["id"] == []
    with Store(root / "allranks.db") as store:
        store.add_run(make_run(id="old", results={"loss": 0.5, "nan": math.nan}, inputs={"lr": "1"}), "{}")
        fired = make_run(id="fired", inputs={"seed": "2"}, trigger_time=BEGIN, job_name="nightly-20260105T013000Z")
        store.add_run(fired, "{}")
        store.add_run(make_run(id="dead", **ENDED), "{}")
        store.add_run(make_run(id="live", **ENDED), "{}")
        store.add_run(make_run(id="damaged"), "{}")
        store.connection.execute("UPDATE run SET record = '{' WHERE id = 'damaged'")
    with locks.hold(root / "runs/live"):
        runs = studio.get("/api/runs")
    assert runs["id"] == ["live", "dead", "fired", "old"]
    assert studio.get("/api/runs", since=int(BEGIN) + 10**6)["id"] == []
    assert runs["status"] == ["Running", "Interrupted", "Completed", "Completed"]
    assert runs["trigger"] == ["manual", "manual", "nightly", "manual"]
    assert runs["seconds"] == [None, None, 60, 60]
    assert runs["metrics"] == {"loss": [None, None, None, 0.5], "nan": [None] * 4}
    assert runs["inputs"] == {"seed": [None, None, "2", None], "lr": [None, None, None, "1"]}


def test_a_run(studio: Client, root: Path) -> None:
    decided = make_step("if", kind="condition", inputs={"condition": "true"})
    train = make_step("train", ("if",), ranks=make_ranks(1, 2), status=Status.FAILED, models=[ModelRecord("m", "3")])
    train.attempts = [AttemptRecord(0, Status.FAILED, BEGIN, BEGIN + 1)]
    train.attempt = 1
    train.verdict = Verdict("train", "ValueError: no", 1, 0, 1, where="t.py:3", code="x", consequences=("late",))
    other = make_step("other", ("if",), status=Status.SKIPPED)
    run = make_run(decided, train, other, *make_sweep((0.5, 0.9)), id="one", target=str(root.parent / "p.py"))
    with Store(root / "allranks.db") as store:
        store.add_run(run, "{}")
        store.add_points("one", "train", [("loss", Point(0, 2.0, BEGIN)), ("loss", Point(1, math.inf, BEGIN))])
    found = studio.get("/api/runs/one")
    steps = {step["path"]: step for step in found["steps"]}
    assert (found["source"], found["models"]) == ("p.py", [{"name": "m", "version": "3"}])
    assert {(edge["from"], edge["to"], edge["label"]) for edge in found["edges"]} >= {
        ("if", "train", "true"),
        ("if", "other", "false"),
    }
    assert (steps["tune.trial[1]"]["parent"], steps["tune.trial[1]"]["name"]) == ("tune", "trial[1]")
    assert set(found["positions"]) == set(steps)
    assert found["positions"]["if"][0] < found["positions"]["train"][0]
    assert (steps["train"]["metrics"], steps["train"]["attempts"]) == ({"loss": None}, 2)
    assert [each["status"] for each in steps["train"]["earlier"]] == ["Failed"]
    verdict = found["verdict"]
    assert (verdict["rank"], verdict["where"], verdict["consequences"]) == (1, "t.py:3", ["late"])
    assert "ValueError: no" in verdict["reason"]


def test_curves_and_usage(studio: Client, root: Path) -> None:
    points = [("train_loss", Point(x, math.nan if x == 1 else float(x), BEGIN + x)) for x in range(3)]
    with Store(root / "allranks.db") as store:
        store.add_run(make_run(make_step("train"), id="curved"), "{}")
        store.add_points("curved", "train", points)
        store.add_points("curved", "train", [("lr", Point(x, 1.0, BEGIN)) for x in range(9000)])
        usage = [
            Sample(BEGIN + at, {0: RankUsage(2.0 * at, 100), 1: RankUsage(1.0 * at, 50, 40.0, 7)}) for at in (0, 1)
        ]
        add(store.connection, "curved", "train", 0, usage)
    loss, rate = studio.get("/api/curves", runs="curved")
    assert (loss["metric"], loss["family"], loss["x"], loss["y"]) == ("train_loss", "loss", [0, 1, 2], [0.0, None, 2.0])
    assert len(rate["x"]) <= 1200
    assert (rate["x"][0], rate["x"][-1]) == (0, 8999)
    assert studio.get("/api/curves", runs="curved", step="other") == []
    assert studio.get("/api/sparklines", runs="curved,unknown") == {
        "curved": {"metric": "train_loss", "values": [0, 2]}
    }
    (instance,) = studio.get("/api/usage", run="curved", step="train")
    assert (instance["cpu"], instance["memory"], instance["gpu"]) == ([None, 300.0], [150, 150], [40.0, 40.0])


def test_what_differs_between_runs(studio: Client, root: Path, tmp_path: Path) -> None:
    with Store(root / "allranks.db") as store:
        for name, text in (("first", "a\nb\n"), ("second", "a\nc\n")):
            folder = tmp_path / name
            folder.mkdir()
            (folder / "train.py").write_text(text)
            step = Step("train", "python train.py", code=Code(str(folder), name), environment_variables={"A": name})
            run = make_run(make_step("train"), id=name, inputs={"lr": name, "seed": "1"})
            store.add_run(run, dumps(Plan("p", Graph((step,)))))
            store.add_points(name, "train", [("loss", Point(0, float(len(name)), BEGIN))])
    found = studio.get("/api/compare", runs="first,second")
    assert found["inputs"] == {"lr": ["first", "second"]}
    assert found["metrics"] == {"train/loss": [5.0, 6.0]}
    assert found["causes"] == [{"step": "train", "what": "variable A", "before": "first", "after": "second"}]
    (code,) = found["code"]
    assert (code["file"], code["lines"][-3:]) == ("train.py", [" a", "-b", "+c"])


def test_a_damaged_store_is_one_message(studio: Client, root: Path) -> None:
    (root / "allranks.db").write_bytes(b"not a database, but long enough" * 100)
    answer = studio.send("GET", f"/api/runs?folder={studio.folder}")
    assert answer.status == 500
    assert str(root / "allranks.db") in answer.json["message"]
    assert "restore a copy" in answer.json["fix"]
