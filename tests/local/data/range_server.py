"""An HTTP server on loopback with range requests, which cuts connections off at random places, from a seed."""

import hashlib
import random
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import bounded


@dataclass
class Files:
    """What the server has, and what it was asked for.

    longest:  bytes after which it cuts a connection off at the latest, if it does
    seed:     of the places at which it cuts connections off; None: it does not
    breaks_at: the byte at which it cuts every connection off; None: it does not
    denied:   the status of every answer; 0: that of the file
    ranges:   whether it knows range requests
    requests: (method, first byte) of each
    """

    content: dict[str, bytes]
    longest: int = 2_000_000
    seed: int | None = None
    breaks_at: int | None = None
    denied: int = 0
    ranges: bool = True
    requests: list[tuple[str, int]] = field(default_factory=list)
    uri: str = ""


@contextmanager
def served(content: dict[str, bytes], **settings: object) -> Iterator[Files]:
    """Serve files by their paths, such as ``/a/b.csv``."""
    files = Files(content, **settings)  # type: ignore[arg-type]
    cuts = random.Random(files.seed)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            body = self._answer()
            most = len(body) if files.seed is None else cuts.randrange(1, files.longest)
            if files.breaks_at is not None:
                most = max(files.breaks_at - files.requests[-1][1], 0)
            self.close_connection = most < len(body)
            self.wfile.write(body[:most])

        def _answer(self) -> bytes:
            body = files.content.get(self.path.partition("?")[0])
            wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "") if files.ranges else None
            start = int(wanted[1]) if wanted else 0
            files.requests.append((self.command, start))
            if files.denied or body is None:
                self.send_response(files.denied or 404)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return b""
            end = min(int(wanted[2]) + 1, len(body)) if wanted and wanted[2] else len(body)
            self.send_response(206 if wanted else 200)
            self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()[:8]}"')
            self.send_header("Content-Length", str(end - start))
            if wanted:
                self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(body)}")
            if not files.ranges:
                self.send_header("Accept-Ranges", "none")
            self.end_headers()
            return body[start:end]

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        files.uri = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield files
        finally:
            server.shutdown()
            bounded.join(thread)
