"""A studio of a folder, and requests to it."""

import http.client
import json
import re
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from bench.timing import environment

ALLRANKS = Path(sys.executable).with_name("allranks")


class Studio:
    """A running studio. address: with its first token; seconds: from its start to its first answer"""

    def __init__(self, address: str, seconds: float, output: IO[str]) -> None:
        self.address, self.seconds, self._output = address, seconds, output
        self.host = urllib.parse.urlsplit(address).netloc
        self._cookie = ""
        self._is_used = False

    def next_address(self) -> str:
        """Return an address with a token, which is valid once: the next one is printed when it has been used."""
        address = self.address if not self._is_used else printed_address(self._output)
        self._is_used = True
        return address

    def admit(self) -> None:
        """Exchange a token for the cookie."""
        connection = http.client.HTTPConnection(self.host)
        connection.request("GET", self.next_address().partition(self.host)[2])
        self._cookie = (connection.getresponse().headers["set-cookie"] or "").partition(";")[0]

    def request(self, path: str, query: Mapping[str, Any], body: Mapping[str, Any] | None = None) -> Any:
        """Return the answer of the API as data. Raise RuntimeError if it is an error."""
        connection = http.client.HTTPConnection(self.host, timeout=60)
        headers = {"cookie": self._cookie, "origin": f"http://{self.host}", "content-type": "application/json"}
        address = f"{path}?{urllib.parse.urlencode(query)}"
        text = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", address, text, headers)
        answer = connection.getresponse()
        data = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {data[:500]!r}")
        return json.loads(data)


@contextmanager
def studio(folder: Path) -> Iterator[Studio]:
    """Start a studio. It has ended after the block."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [ALLRANKS, "studio", "--no-browser", str(folder)], env=environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        address = printed_address(process.stdout)
        while not answers(address.partition("?")[0]):
            time.sleep(0.01)
        yield Studio(address, time.perf_counter() - started, process.stdout)
    finally:
        process.terminate()
        process.wait(20)


def printed_address(output: IO[str]) -> str:
    found = re.search(r"http://\S+", output.readline())
    if found is None:
        raise RuntimeError("the studio printed no address")
    return found[0]


def answers(address: str) -> bool:
    """Return whether a server answers."""
    url = urllib.parse.urlsplit(address)
    connection = http.client.HTTPConnection(url.netloc, timeout=10)
    try:
        connection.request("GET", url.path or "/")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
