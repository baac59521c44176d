"""The server: an HTTPS proxy that ends every tunnel itself and answers in the host's place; and, by plain HTTP, the
endpoint of a managed identity."""

from __future__ import annotations

import socket
import ssl
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

import bounded
from allranks_client.messages import Answer, Refusal, Request
from fake import identity
from fake.names import HOSTS

if TYPE_CHECKING:
    from fake.faults import Fault
    from fake.service import FakeAzure

IDENTITY = "/msi/token"
_LOOPBACK = "127.0.0.1"


class Server:
    """One for a whole session of tests; each test gives it a service of its own.

    certificate: the file by which clients trust it
    azure:       who answers now
    """

    def __init__(self, port: int, certificate: Path) -> None:
        self.port, self.certificate = port, certificate
        self.azure: FakeAzure | None = None

    @property
    def url(self) -> str:
        return f"http://{_LOOPBACK}:{self.port}"


@contextmanager
def serving() -> Iterator[Server]:
    """Starts the server on a free port; whatever happens, its threads and files are gone at the end."""
    import trustme

    authority = trustme.CA()
    issued = authority.issue_cert(*HOSTS)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    with tempfile.TemporaryDirectory(prefix="allranks-azure-") as folder:
        certificate = Path(folder, "authority.pem")
        authority.cert_pem.write_to_path(certificate)
        http = _Http((_LOOPBACK, 0), _Connection)
        server = Server(http.server_address[1], certificate)
        http.server, http.context = server, context
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            http.server_close()
            bounded.join(thread)


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a client may keep its connection for good
    request_queue_size = 64
    server: Server
    context: ssl.SSLContext

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone is none of our business."""


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http
    host = ""

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)

    def do_CONNECT(self) -> None:
        host = self.path.partition(":")[0]
        azure = self.server.server.azure
        if host not in HOSTS or azure is None:
            if azure is not None:
                azure.strangers.append(self.path)
            self._send(Answer(502, b"the fake is not this host"))
            self.close_connection = True
            return
        self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        self.connection = self.server.context.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
        self.host = host
        self.close_connection = False  # whatever version of HTTP the tunnel was asked for in

    def finish(self) -> None:
        super().finish()
        self.connection.close()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        azure = self.server.server.azure
        parts = urlsplit(self.path)
        request = Request(
            self.command,
            self.host,
            unquote(parts.path),
            dict(parse_qsl(parts.query, keep_blank_values=True)),
            {name.lower(): value for name, value in self.headers.items()},
            body,
            self.path,
        )
        if azure is None:
            self._send(Answer(503))
        elif self.host:
            self._serve(azure, request)
        elif request.path == IDENTITY:
            self._send(_answered(lambda: identity.token(azure, request), ""))
        else:
            self._send(Answer(400, b"this is a proxy"))

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = _answer

    def _serve(self, azure: FakeAzure, request: Request) -> None:
        fault = azure.faults.take(request)
        if fault:
            time.sleep(fault.delay)
        if fault and fault.refuses:
            answer = fault.answer(request)
        else:
            answer = _answered(lambda: azure.answer(request), request.host)
        azure.requests.append((request.method, request.path, answer.status))
        self._send(answer, fault)

    def _send(self, answer: Answer, fault: Fault | None = None) -> None:
        body = answer.body.read_bytes() if isinstance(answer.body, Path) else answer.body
        headers = {"Content-Length": str(len(body)), **answer.headers}
        reason = HTTPStatus(answer.status).phrase if answer.status else ""
        lines = [f"HTTP/1.1 {answer.status} {reason}", *(f"{name}: {value}" for name, value in headers.items())]
        head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        whole = head if self.command == "HEAD" else head + body
        if fault and fault.torn:
            self.wfile.write(whole[: (len(head) + len(whole)) // 2 if body else len(head) // 2])
            self.close_connection = True
        elif answer.status:
            self.wfile.write(whole)
        else:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """The fake remembers requests; it prints nothing."""


def _answered(handle: Callable[[], Answer], host: str) -> Answer:
    try:
        return handle()
    except Refusal as refusal:
        return refusal.answer(host)
    except Exception as error:  # a fault of the fake itself: the test has to see it
        traceback.print_exc()
        return Refusal(500, "FakeIsBroken", f"{type(error).__name__}: {error}").answer(host)
