"""Notices: what is sent about the ends of firings, to a server on loopback and to a command, and what happens if that
fails or if the scheduler is killed meanwhile."""

import json
import queue
import shlex
import signal
import sys
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from allranks.errors import InputError
from allranks.history.records import RunRecord, Status, Verdict
from allranks.history.store import Store
from allranks.plan import codec
from allranks.scheduler import notifier
from allranks.scheduler.events import Event
from allranks.scheduler.ledger import Ledger
from allranks.scheduler.paths import SchedulerPaths
from allranks.scheduler.reading import read
from allranks.workspace import Workspace
from allranks_command import PATIENCE, started, write
from run_records import make_run, make_step

DECLARED = """
from azure.ai.ml import command, dsl
from azure.ai.ml.entities import CronTrigger, JobSchedule

work = command(
    name="work", command="sleep 600", environment="azureml:cpu:1", environment_variables={"HF_TOKEN": "hunter2hunter2"}
)


@dsl.pipeline
def working():
    work()


def daily() -> JobSchedule:
    return JobSchedule(name="daily", trigger=CronTrigger(expression="0 0 * * *"), create_job=working())
"""


class Server(ThreadingHTTPServer):
    """Receives notices. statuses: of its first answers, 0 for none at all; later ones are 200"""

    daemon_threads = True

    def __init__(self, *statuses: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.statuses, self.received = [*statuses], queue.Queue[dict[str, Any]]()
        self.closed = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/hooks/x"

    def __enter__(self) -> "Server":
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closed.set()
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.headers["Idempotency-Key"] == body["id"]
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        self.server.received.put(body)
        if not status:
            self.server.closed.wait(PATIENCE)
            return
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def place(tmp_path: Path) -> SchedulerPaths:
    place = SchedulerPaths(Workspace(tmp_path / ".allranks"))
    place.make()
    return place


def happen(place: SchedulerPaths, day: int, status: str, record: RunRecord | None, reason: str = "") -> str:
    """A run of this day ended just before its scheduler was killed."""
    with Ledger(place.ledger) as ledger, Store(place.workspace.database) as store:
        firing = ledger.add("daily", datetime(2026, 1, day, tzinfo=UTC))
        assert firing is not None
        ledger.end(firing.run, status, reason)
        if record:
            record.id, record.job_name, record.page = f"day{day}", firing.run, str(place.workspace.root / "a page.html")
            store.add_run(record, ledger.plan("daily"))
    return firing.run


@pytest.mark.slow
def test_a_server_gets_each_of_the_five_events_once_though_the_scheduler_is_killed(
    place: SchedulerPaths, tmp_path: Path
) -> None:
    write(tmp_path, "pipelines/working.py", DECLARED)
    read(place, tmp_path / "pipelines")
    with Ledger(place.ledger) as ledger:
        ledger.connection.execute("UPDATE schedule SET cursor = '2026-01-04T12:00:00+00:00'")
        graph = codec.loads(ledger.plan("daily")).graph
    assert [node.name for node in graph.nodes] == ["work"]
    verdict = Verdict("work", "ValueError: bad batch", tail=("key=hunter2hunter2",))
    runs = [
        happen(place, 1, "Failed", make_run(make_step("work", verdict=verdict), status=Status.FAILED), "work: bad"),
        happen(place, 2, "Completed", make_run(make_step("work"))),
        happen(place, 3, "Completed", make_run(make_step("work", reused_from="day2"))),
        happen(place, 4, "Failed", None, "no such token: hunter2hunter2"),
    ]
    ids = [f"{run}:{event}" for run, event in zip(runs, ("failed", "recovered", "reused", "not-started"), strict=True)]
    run = ("schedules", "run", "pipelines", "--no-track", "--instances", "loopback", "--notify")
    with Server(0) as server:
        with started(*run, server.url, folder=tmp_path) as process:
            first = server.received.get(timeout=PATIENCE)
            process.kill()
            process.wait(PATIENCE)
        with started(*run, server.url, folder=tmp_path) as process:
            received = [server.received.get(timeout=PATIENCE) for _ in range(5)]
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        assert server.received.empty()
    assert received[0] == first  # the one that was not answered, with the same id
    missed = next(each for each in received if each["event"] == "missed")
    assert [each["id"] for each in received if each is not missed] == ids
    assert missed["id"].startswith("daily-20")
    assert (missed["run"], missed["first"][:10]) == (None, "2026-01-05")
    assert (first["schedule"], first["run"], first["verdict"]["reason"]) == ("daily", runs[0], "ValueError: bad batch")
    assert (first["page"][-12:], first["link"][-14:]) == ("/a page.html", "/a%20page.html")
    assert f"run {runs[3]} could not start: no such token: ***" in [each["text"] for each in received]
    assert "hunter2" not in json.dumps(received)
    with Ledger(place.ledger) as ledger:
        assert ledger.notices() == {}


def deliver(place: SchedulerPaths, target: str, *identities: str) -> list[Event]:
    """Delivers notices that the ledger has, until it has none. Returns what was reported."""
    said: list[Event] = []
    with Ledger(place.ledger) as ledger:
        notices = [(identity, json.dumps({"id": identity})) for identity in identities]
        ledger.judge("none", (), notices)
        done = threading.Event()
        with notifier.delivery(place.ledger, notifier.sender(target), said.append, (0, 0)):
            while ledger.notices():
                assert not done.wait(0.02)
    return said


def test_a_delivery_that_fails_is_tried_again_and_given_up_with_one_line(place: SchedulerPaths) -> None:
    with Server(500, 500, 500, 404) as server:
        (event,) = deliver(place, server.url, "a", "b")
    assert (event.kind, event.text) == (
        "undelivered", "notice a is given up after 3 tries: HTTP Error 500: Internal Server Error",
    )  # fmt: skip
    assert [server.received.get_nowait()["id"] for _ in range(5)] == ["a", "a", "a", "b", "b"]
    with Server(302, 302, 302) as server:
        (event,) = deliver(place, server.url, "a")
    assert "redirects" in event.text
    (event,) = deliver(place, server.url, "a")
    assert "refused" in event.text


def test_a_command_gets_a_notice_on_its_standard_input(place: SchedulerPaths, tmp_path: Path) -> None:
    file = tmp_path / "notices"
    assert deliver(place, f"sh -c 'cat >> {file}; echo this is not printed'", "a", "b") == []
    assert file.read_text() == '{"id": "a"}{"id": "b"}'
    (event,) = deliver(place, shlex.join([sys.executable, "-c", "import sys; sys.exit(3)"]), "a")
    assert "exit status 3" in event.text


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("ftp://host/x", "not a URL of a server: ftp://host/x"),
        ("http:///x", "not a URL of a server"),
        ("https://host:99999/", "out of range"),
        ("no-such-program --now", "there is no program 'no-such-program'"),
        ("sh -c 'echo", "No closing quotation"),
        (" ", "it is empty"),
    ],
)
def test_what_cannot_receive_notices_is_refused(target: str, said: str) -> None:
    with pytest.raises(InputError, match=r"--notify: .*\n.*expected: http://HOST/PATH") as caught:
        notifier.sender(target)
    assert said in str(caught.value)
