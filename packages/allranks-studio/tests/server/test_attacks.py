"""What others may try: another site in the user's browser, another user of the machine, another program's files."""

import http.client
import os
import socket
import tempfile
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import Client, serving

from allranks.history.store import Store
from allranks_studio.server import answers, app, browser, events
from run_records import make_ranks, make_run, make_step

HTML = "<img src=x onerror=alert(1)>"
TOKEN = "hf_" + "Q8vN2mXr5TzLkW7cYbJ4dGpSfHaE9uRtVn"
MINE = "127.0.0.1:PORT"


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A folder with a hostile run, beside what is not in it."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.py").write_text("PASSWORD = 'outside'\n")
    folder = tmp_path_factory.mktemp("project")
    (folder / "link.py").symlink_to(outside / "secret.py")
    (folder / "away").symlink_to(outside)
    workspace = folder / ".allranks"
    logs = workspace / "runs" / "hostile" / "train"
    logs.mkdir(parents=True)
    ranks = make_ranks(1, 4)
    for rank in ranks:
        rank.log = str(logs / f"{rank.rank}.txt")
    (logs / "0.txt").write_bytes(f"{HTML}\n\x1b]0;title\x07\x1b[2Jtoken={TOKEN} \u202eend\x00\n".encode())
    (logs / "1.txt").symlink_to(outside / "secret.py")
    ranks[2].log = str(outside / "secret.py")
    os.mkfifo(logs / "3.txt")
    step = make_step("train", ranks=ranks, inputs={HTML: HTML}, component=HTML, notes=[HTML])
    run = make_run(step, id="hostile", name=HTML, display_name=HTML, inputs={HTML: HTML}, results={HTML: 1.0})
    run.page = str(outside / "secret.py")
    with Store(workspace / "allranks.db") as store:
        store.add_run(run, "{}")
    with serving(folder) as client:
        yield client


REQUESTS = {
    "no cookie": ("GET", "/api/state", None, {"Cookie": None}, 401),
    "a guessed cookie": ("GET", "/api/state", None, {"Cookie": "NAME=guess; other=1"}, 401),
    "a guessed token": ("GET", "/?token=guess", None, {"Cookie": None}, 403),
    "events without a cookie": ("GET", "/api/events", None, {"Cookie": None}, 401),
    "a change without a cookie": ("POST", "/api/runs/start", {"path": "a.py"}, {"Cookie": None}, 401),
    "another host": ("GET", "/api/state", None, {"Host": "evil.example"}, 421),
    "DNS rebinding": ("GET", "/api/state", None, {"Host": "evil.example:PORT"}, 421),
    "a host that begins as ours": ("GET", "/", None, {"Host": "127.0.0.1.evil.example:PORT"}, 421),
    "another port": ("GET", "/api/state", None, {"Host": "127.0.0.1:1"}, 421),
    "a foreign origin": ("POST", "/api/runs/start", {"path": "a.py"}, {"Origin": "http://evil.example"}, 403),
    "no origin": ("POST", "/api/runs/start", {"path": "a.py"}, {"Origin": None}, 403),
    "the origin of a sandbox": ("POST", "/api/runs/start", {"path": "a.py"}, {"Origin": "null"}, 403),
    "a server of another port": ("POST", "/api/runs/start", {"path": "a.py"}, {"Origin": "http://127.0.0.1:1"}, 403),
    "a script of another site": ("GET", "/static/studio.js", None, {"Sec-Fetch-Site": "cross-site"}, 403),
    "an image of another port": ("GET", "/api/state", None, {"Sec-Fetch-Site": "same-site"}, 403),
    "a form": ("POST", "/api/runs/start", b"path=a.py", {"Content-Type": "text/plain"}, 415),
    "a body without an object": ("POST", "/api/runs/start", [1], {}, 400),
    "a body that is no JSON": ("POST", "/api/runs/start", b"{", {}, 400),
    "a deep body": ("POST", "/api/document/edit", b"[" * 100_000, {}, 400),
    "a huge body": ("POST", "/api/document/text", b" " * (answers.LARGEST_BODY + 1), {}, 413),
    "a preflight": ("OPTIONS", "/api/runs/start", None, {}, 405),
    "a path above": ("GET", "/api/document?folder=F&path=../outside0/secret.py", None, {}, 400),
    "an absolute path": ("GET", "/api/document?folder=F&path=/etc/passwd", None, {}, 400),
    "a path with NUL": ("GET", "/api/document?folder=F&path=a%00.py", None, {}, 400),
    "a link to a file outside": ("GET", "/api/document?folder=F&path=link.py", None, {}, 400),
    "a link to a folder outside": ("POST", "/api/document/new", {"path": "away/new.py"}, {}, 400),
    "to run a file outside": ("POST", "/api/runs/start", {"path": "away/secret.py", "inputs": {}}, {}, 400),
    "a copy of a file outside": ("POST", "/api/document/new", {"path": "new.py", "source": "link.py"}, {}, 400),
    "a file beside the static ones": ("GET", "/static/..%2f..%2fcommand.py", None, {}, 404),
    "a folder that is not shown": ("GET", "/api/runs?folder=%2Fetc", None, {}, 400),
    "a run that is a path": ("GET", "/api/runs/..%2f..%2fetc?folder=F", None, {}, 404),
    "a page outside": ("GET", "/api/page?folder=F&run=hostile", None, {}, 404),
    "a log that is a link": ("GET", "/api/log?folder=F&run=hostile&step=train&rank=1", None, {}, 400),
    "a log outside": ("GET", "/api/log?folder=F&run=hostile&step=train&rank=2", None, {}, 400),
    "a log that is a FIFO": ("GET", "/api/log?folder=F&run=hostile&step=train&rank=3", None, {}, 400),
    "a number without end": ("GET", f"/api/log?folder=F&run=hostile&step=train&offset={'9' * 5000}", None, {}, 400),
    "a surrogate": ("POST", "/api/runs/cancel", {"run": "\ud800"}, {}, 400),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_refused(studio: Client, name: str) -> None:
    method, path, body, headers, status = REQUESTS[name]
    changed = {
        header: value and value.replace("PORT", str(studio.session.port)).replace("NAME", studio.session.cookie)
        for header, value in headers.items()
    }
    if isinstance(body, dict):
        body = {"folder": studio.folder, **body}
    answer = studio.send(method, path.replace("folder=F", f"folder={studio.folder}"), body, changed)
    assert answer.status == status, answer.body
    assert set(answer.json) == {"message", "fix"}
    assert answer.json["message"]
    assert b"Traceback" not in answer.body
    assert b"outside'" not in answer.body
    assert "access-control-allow-origin" not in answer.headers
    assert studio.session.key not in str(answer.headers)


def test_a_token_admits_one_browser(studio: Client) -> None:
    token, before = studio.session.token, len(studio.tokens)
    from_a_terminal_in_a_browser = {"Cookie": None, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    admitted = studio.send("GET", f"/?token={token}", None, from_a_terminal_in_a_browser)
    assert (admitted.status, admitted.headers["location"]) == (303, "/")
    assert {"httponly", "samesite=strict"} <= set(admitted.headers["set-cookie"].lower().split("; "))
    assert admitted.headers["referrer-policy"] == "no-referrer"
    replayed = studio.send("GET", f"/?token={token}", None, {"Cookie": None})
    assert replayed.status == 403
    assert "set-cookie" not in replayed.headers
    assert studio.send("GET", f"/?token={token}").status == 303  # the admitted browser goes back in its history
    assert studio.tokens[before:] == [studio.session.token]


def test_a_header_that_occurs_twice_is_refused(studio: Client) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", studio.session.port)
    connection.putrequest("GET", "/api/state", skip_host=True)
    for host in (f"127.0.0.1:{studio.session.port}", "evil.example"):
        connection.putheader("Host", host)
    connection.endheaders()
    assert connection.getresponse().status == 400
    connection.close()


def test_a_body_without_a_length_is_bounded(studio: Client) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(answers.LARGEST_BODY // (1 << 20) + 2):
            yield bytes(1 << 20)

    connection = http.client.HTTPConnection("127.0.0.1", studio.session.port)
    try:
        connection.request("POST", "/api/document/text", chunks(), studio.headers("POST"), encode_chunked=True)
        assert connection.getresponse().status == 413
    except (BrokenPipeError, ConnectionResetError):
        pass  # the server has closed the connection before the end of the body
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("path", "status"),
    [("/", None), ("/api/state", 200), ("/api/nothing", 404), ("/static/nothing.js", 404), ("/api/events/x", 404)],
)
def test_every_answer_has_the_headers_of_security(studio: Client, path: str, status: int | None) -> None:
    answer = studio.send("GET", path)
    assert status in (None, answer.status)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"


def test_the_nonce_of_a_page_is_not_that_of_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chunks").mkdir()
    (tmp_path / "chunks/a-1234.js").write_text("//")
    (tmp_path / "index.html").write_text("<!doctype html><html><head></head></html>")
    monkeypatch.setattr(app, "STATIC", tmp_path)
    with serving(tmp_path) as studio:
        pages = [studio.send("GET", path) for path in ("/", "/runs/x?folder=y")]
        chunk = studio.send("GET", "/static/chunks/a-1234.js")
    nonces = [page.body.partition(b'content="')[2].partition(b'"')[0].decode() for page in pages]
    assert nonces[0] != nonces[1]
    for page, nonce in zip(pages, nonces, strict=True):
        assert f"style-src 'self' 'nonce-{nonce}'" in page.headers["content-security-policy"]
    assert "immutable" in chunk.headers["cache-control"]


def test_what_a_run_calls_itself_is_only_data(studio: Client) -> None:
    for path in ("/api/runs", "/api/runs/hostile"):
        answer = studio.send("GET", f"{path}?folder={studio.folder}")
        assert answer.headers["content-type"] == "application/json"
        assert HTML in str(answer.json)


def test_a_log_is_harmless_text_without_secrets(studio: Client) -> None:
    log = studio.get("/api/log", run="hostile", step="train", rank=0, offset=0)
    assert log["text"].splitlines() == [HTML, f"token={'*' * len(TOKEN)} end"]
    (hit,) = studio.get("/api/log/search", run="hostile", query="TOKEN=")["hits"]
    assert (hit["rank"], hit["text"]) == (0, "token=*** end")


def test_a_huge_event_and_a_reader_that_is_slow_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow one is told to read everything again; the others get every event meanwhile."""
    monkeypatch.setattr(events, "MOST", 50)
    monkeypatch.setattr(events, "LARGEST", 1 << 18)
    with (
        serving(tmp_path) as studio,
        studio.events() as quick,
        socket.create_connection(("127.0.0.1", studio.session.port)) as slow,
    ):
        head = "".join(f"{name}: {value}\r\n" for name, value in studio.headers("GET").items())
        slow.sendall(f"GET /api/events HTTP/1.1\r\n{head}\r\n".encode())
        slow.recv(4096)
        for number in range(400):
            studio.announce({"kind": "run", "folder": "x" * 50_000, "run": str(number), "status": "Running"})
            quick.next(run=str(number))
        studio.announce({"kind": "run", "folder": "x" * (1 << 20)})
        quick.next(kind="reset")
        assert len(studio.studio.events.texts) <= 50
        slow.settimeout(60)
        received = b""
        while b'{"kind":"reset"}' not in received:
            received = received[-100:] + slow.recv(1 << 20)


def test_another_user_of_the_machine_finds_no_token(
    studio: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither in the arguments of a process nor in a file that others can read."""
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    browser.open_privately("http://127.0.0.1:1/?token=secret")
    assert "secret" not in opened[0]
    file = Path(opened[0].removeprefix("file://"))
    assert "token=secret" in file.read_text()
    assert file.parent.stat().st_mode & 0o077 == 0
    workspace = studio.studio.folders[studio.folder].workspace.root
    for path in (each for each in workspace.rglob("*") if each.is_file() and not each.is_symlink()):
        assert studio.session.token.encode() not in path.read_bytes()
