"""What a recorder saves of a run."""

import asyncio
import json
import math
import sqlite3
from pathlib import Path

import pytest

from allranks.history.observer import Observer
from allranks.history.recorder import MOST_TEXT, RunRecorder
from allranks.history.records import Point, RunRecord, Status, StepRecord, Verdict
from allranks.history.store import Store


def test_the_results_of_a_run_are_the_last_values_that_say_most(tmp_path: Path) -> None:
    steps = [StepRecord("train", "train", "", "", 1, 1), StepRecord("evaluate", "evaluate", "", "", 1, 1)]
    run = RunRecord("r", "p", "p", "", "loopback", steps=steps)
    with Store(tmp_path / "db") as store:
        store.add_run(run, "{}")
        recorder = RunRecorder(run, store, Observer())
        recorder.add_points(
            steps[0], {"accuracy": [Point(0, 0.1, 0.0), Point(1, 0.5, 0.0)], "loss": [Point(0, math.nan, 0.0)]}
        )
        recorder.add_points(steps[1], {"accuracy": [Point(0, 0.75, 0.0)]})
        recorder.ended()
        (saved,) = store.each_run(steps=False)
        assert saved.results == {"accuracy": 0.75}
        recorder.forget_points(steps[1])
        recorder.ended()  # as after `resume`
        assert next(store.each_run(steps=False)).results == {"accuracy": 0.5}


def test_a_note_goes_when_it_no_longer_holds(tmp_path: Path) -> None:
    run = RunRecord("r", "p", "p", "", "loopback")
    with Store(tmp_path / "db") as store:
        store.add_run(run, "{}")
        recorder = RunRecorder(run, store, Observer())
        recorder.note(None, "waits for slots that run ab12 uses")
        recorder.note(None, "instances are on loopback")
        recorder.remove_notes("waits for")
        assert run.notes == store.run("r").notes == ["instances are on loopback"]


def test_changes_of_steps_are_saved_together_soon_and_before_anything_that_depends_on_them(tmp_path: Path) -> None:
    steps = [StepRecord(name, name, "", "", 1, 1) for name in "ab"]
    run = RunRecord("r", "p", "p", "", "loopback", steps=steps)

    def saved(reader: Store) -> list[Status]:
        return [step.status for step in reader.run("r").steps]

    async def scenario(recorder: RunRecorder, reader: Store) -> None:
        steps[0].status = Status.COMPLETED
        recorder.changed(steps[0], "key")
        steps[1].status = Status.PREPARING
        recorder.changed(steps[1])
        steps[1].status = Status.RUNNING
        assert saved(reader) == [Status.NOT_STARTED] * 2
        recorder.flush()
        assert saved(reader) == [Status.COMPLETED, Status.RUNNING]
        assert reader.result("key") is not None

        steps[1].status = Status.COMPLETED
        recorder.changed(steps[1], "other")
        found = recorder.recall("other")
        assert found is not None
        assert found[1].name == "b"

        steps[0].status = Status.FAILED
        recorder.changed(steps[0])
        recorder.decided("b", "key", "value")
        assert saved(reader)[0] is Status.FAILED

        steps[0].status = Status.CANCELED
        recorder.changed(steps[0])
        while saved(reader)[0] is not Status.CANCELED:  # nobody asks for it
            await asyncio.sleep(0)

    with Store(tmp_path / "db") as store, Store(tmp_path / "db") as reader:
        store.add_run(run, "{}")
        asyncio.run(scenario(RunRecorder(run, store, Observer()), reader))


def test_what_cannot_be_saved_is_saved_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = StepRecord("a", "a", "", "", 1, 1)
    run = RunRecord("r", "p", "p", "", "loopback", steps=[step])
    with Store(tmp_path / "db") as store:
        store.add_run(run, "{}")
        recorder = RunRecorder(run, store, Observer())
        step.status = Status.COMPLETED
        with monkeypatch.context() as patched:
            patched.setattr(store, "save_steps", lambda *_: store.connection.execute("SELECT 1 FROM no_table"))
            with pytest.raises(sqlite3.OperationalError):
                recorder.changed(step)
        recorder.flush()
        assert store.run("r").steps[0].status is Status.COMPLETED


def test_texts_of_a_verdict_are_limited_and_have_no_secret(tmp_path: Path) -> None:
    secret = "a-secret-of-the-plan"
    key = (
        "-----BEGIN PRIVATE KEY-----",
        *("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" for _ in range(8)),
        "-----END PRIVATE KEY-----",
    )
    long = f"ValueError: \x1b[31m{secret} \0" + 100_000 * "no end "
    step = StepRecord("train", "train", "", "", 1, 1)
    step.verdict = Verdict("train", long, tail=("before", *key, json.dumps(f"/{secret}"), long), traceback=long)
    step.result = long
    run = RunRecord("r", "p", "p", "", "loopback", steps=[step])
    with Store(tmp_path / "db") as store:
        store.add_run(run, "{}")
        recorder = RunRecorder(run, store, Observer(), frozenset({f"/{secret}", secret}))
        for _ in range(2):
            recorder.changed(step)
            recorder.note(step, long)
        recorder.ended()
        saved = store.run("r").steps[0]
    assert saved.verdict is not None
    assert saved.verdict.reason.startswith("ValueError: *** no end no end")
    assert saved.verdict.tail[:3] == ("before", "***", '"***"')
    texts = [saved.verdict.reason, saved.verdict.traceback, saved.result, *saved.notes, "\n".join(saved.verdict.tail)]
    assert max(map(len, texts)) <= 2 * MOST_TEXT
    assert all(text.count("characters left out") == 1 for text in texts)
    assert not [text for text in texts if secret in text or "\x1b" in text or "\0" in text]
