"""A download of 5 GB needs no more memory than one of 50 MB."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import bounded

DOWNLOAD = """
import contextlib, resource, sys
from allranks.local.data import cache
with contextlib.ExitStack() as held:
    size = cache.copy_of(sys.argv[1], "uri_file", held).path.stat().st_size
print(size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


class Zeros(BaseHTTPRequestHandler):
    """Serves as many zeros as the path says."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        left = self._answer()
        while left:
            left -= self.wfile.write(bytes(min(left, 1 << 20)))

    def _answer(self) -> int:
        size = int(self.path[1:])
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
        first, last = (int(wanted[1]), min(int(wanted[2]), size - 1)) if wanted else (0, size - 1)
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.end_headers()
        return last - first + 1

    def log_message(self, *_: object) -> None:
        return


@pytest.mark.recipe
def test_five_gigabytes_need_the_memory_of_fifty_megabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("aiohttp")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    peaks = {}
    with ThreadingHTTPServer(("127.0.0.1", 0), Zeros) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            for size in (50_000_000, 5_000_000_000):
                uri = f"http://127.0.0.1:{server.server_port}/{size}"
                done = subprocess.run([sys.executable, "-c", DOWNLOAD, uri], capture_output=True, text=True, check=True)
                arrived, peaks[size] = map(int, done.stdout.split())
                assert arrived == size
        finally:
            server.shutdown()
            bounded.join(thread)
            for copy in tmp_path.rglob("content/*"):
                copy.unlink()
    print(peaks)
    assert peaks[5_000_000_000] < peaks[50_000_000] + 20_000  # KB
