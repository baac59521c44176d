"""A studio in this process, on a real port, and a client that may send anything."""

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlencode

from starlette.applications import Starlette

from allranks_studio.server.access import Session
from allranks_studio.server.app import make_app, make_server
from allranks_studio.server.folders import folders_of
from allranks_studio.server.studio import Studio
from bounded import BOUND, join, until


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Client:
    """A browser with the session's cookie. folder: the id of the studio's only folder"""

    session: Session
    folder: str
    tokens: list[str] = field(default_factory=list)
    app: Starlette | None = None
    loop: asyncio.AbstractEventLoop | None = None

    @property
    def studio(self) -> Studio:
        assert self.app is not None
        studio: Studio = self.app.state.studio
        return studio

    def announce(self, event: Mapping[str, Any]) -> None:
        """Add an event to the streams that are open."""
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.studio.events.add, [event])

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.session.port}"

    def headers(self, method: str) -> dict[str, str]:
        found = {"Host": f"127.0.0.1:{self.session.port}", "Cookie": f"{self.session.cookie}={self.session.key}"}
        return found | ({"Origin": self.origin, "Content-Type": "application/json"} if method == "POST" else {})

    def send(self, method: str, path: str, body: Any = None, changed: Mapping[str, str | None] | None = None) -> Answer:
        """Send a request. changed: headers that differ from those of the studio's own page; None for none"""
        connection = http.client.HTTPConnection("127.0.0.1", self.session.port, timeout=BOUND)
        headers = {
            name: value for name, value in {**self.headers(method), **(changed or {})}.items() if value is not None
        }
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, address: str, /, **query: Any) -> Any:
        answer = self.send("GET", f"{address}?{urlencode({'folder': self.folder, **query})}")
        assert answer.status == 200, answer.body
        return answer.json

    def post(self, address: str, /, **values: Any) -> Any:
        answer = self.send("POST", address, {"folder": self.folder, **values})
        assert answer.status == 200, answer.body
        return answer.json

    @contextmanager
    def events(self, last: str = "") -> Iterator["Events"]:
        """Follow the events until the end of the block."""
        with socket.create_connection(("127.0.0.1", self.session.port), timeout=BOUND) as connection:
            more = {"Last-Event-ID": last} if last else {}
            lines = "".join(f"{name}: {value}\r\n" for name, value in {**self.headers("GET"), **more}.items())
            connection.sendall(f"GET /api/events HTTP/1.1\r\n{lines}\r\n".encode())
            with connection.makefile("rb") as file:
                events = Events(file)
                assert events.line().startswith(b"HTTP/1.1 200")
                while not events.line().startswith(b"id: "):
                    pass
                yield events


class Events:
    """The events of a stream as they arrive."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.last = ""
        """The id of the last event."""

    def line(self) -> bytes:
        found = self._file.readline()
        assert found, "the stream has ended"
        return found.rstrip()

    def next(self, **wanted: Any) -> dict[str, Any]:
        """Return the next event with these values."""
        while True:
            line = self.line()
            if line.startswith(b"id: "):
                self.last = line[4:].decode()
            elif line.startswith(b"data: "):
                event: dict[str, Any] = json.loads(line[6:])
                if wanted.items() <= event.items():
                    return event


@contextmanager
def serving(folder: Path) -> Iterator[Client]:
    """Serve a folder until the end of the block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        tokens: list[str] = []
        session = Session(listener.getsockname()[1], tokens.append)
        app = make_app(folders_of([folder]), session)
        server, loop = make_server(app), asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_until_complete, args=[server.serve([listener])])
        thread.start()
        try:
            until(lambda: server.started, "the server has not started")
            yield Client(session, next(iter(app.state.studio.folders)), tokens, app, loop)
        finally:
            server.should_exit = True
            join(thread)
            loop.close()


def admitted(port: int, token: str, folder: str) -> Client:
    """Return a browser that a studio in another process has admitted."""
    session = Session(port)
    cookie = Client(session, folder).send("GET", f"/?token={token}").headers["set-cookie"].partition(";")[0]
    session.key = cookie.partition("=")[2]
    return Client(session, folder)
