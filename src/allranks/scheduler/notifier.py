"""Deliver notices: as a POST to a webhook, or to the standard input of a command.

A notice is removed as soon as it has been answered. If the scheduler is killed between the two, the next one sends the
notice again, with the same id.
"""

import contextlib
import math
import re
import shlex
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from allranks.errors import InputError, Problem
from allranks.scheduler.events import Event
from allranks.scheduler.ledger import Ledger
from allranks.secrets import redact

DELAYS = (1, 5, 25, 125, 625)
"""Seconds to wait after each failed delivery. A notice is given up when it fails after the last of them."""
_POLL, _TIMEOUT = 0.25, 10
"""Seconds between looks at the ledger, and that a server or a command may take."""

Send = Callable[[str, str], object]
"""Sends a notice, given its id and its text. Raises OSError, HTTPException or SubprocessError on failure."""


def sender(target: str) -> Send:
    """Return the function that sends notices to a URL or a command. Raise InputError if it cannot receive them."""
    try:
        if re.match(r"\w[\w+.-]*://", target):
            url = urlsplit(target)
            if url.scheme not in ("http", "https") or not url.hostname or url.port == 0 or re.search(r"\s", target):
                raise ValueError(f"not a URL of a server: {redact(target)}")
            return partial(_post, target)
        command = shlex.split(target)
        if not command or shutil.which(command[0]) is None:
            raise ValueError(f"there is no program {command[0]!r}" if command else "it is empty")
    except ValueError as error:
        expected = "http://HOST/PATH, https://HOST/PATH, or a command"
        raise InputError(Problem("--notify", str(error), expected, "correct it, or install the command")) from None
    return partial(_pipe, command)


def _post(url: str, identity: str, text: str) -> None:
    from urllib.request import Request, urlopen  # 0.04 s, and only a webhook needs it

    headers = {"Content-Type": "application/json", "Idempotency-Key": identity}
    with urlopen(Request(url, text.encode(), headers), timeout=_TIMEOUT) as answer:
        if answer.geturl() != url:  # without the notice, because a redirected POST becomes a GET
            raise OSError("the server redirects to another URL")


def _pipe(command: Sequence[str], _: str, text: str) -> None:
    # In a session of its own, so that Ctrl-C reaches the scheduler only.
    subprocess.run(
        command, input=text.encode(), stdout=subprocess.DEVNULL, timeout=_TIMEOUT, check=True, start_new_session=True
    )


@contextlib.contextmanager
def delivery(
    path: Path, send: Send, report: Callable[[Event], None], delays: Sequence[float] = DELAYS
) -> Iterator[None]:
    """Deliver the notices of a ledger during the block, on another thread, so that a slow server delays no firing.

    report: called when a notice is given up

    At the end, what is due is tried once more. The next scheduler sends the rest.
    """
    stop = threading.Event()

    def deliver() -> None:
        failures, due, is_last = Counter[str](), dict[str, float](), False
        with Ledger(path) as ledger:
            while not is_last:
                is_last = stop.wait(_POLL)
                for identity, text in ledger.notices().items():
                    if due.get(identity, 0) > time.monotonic():
                        continue
                    try:
                        send(identity, text)
                    except (OSError, HTTPException, subprocess.SubprocessError) as error:
                        failures[identity] += 1
                        if failures[identity] <= len(delays):
                            due[identity] = time.monotonic() + delays[failures[identity] - 1]
                            break  # the others would probably fail too
                        said = f"notice {identity} is given up after {failures[identity]} tries: {redact(str(error))}"
                        report(Event("undelivered", "", said, {"id": identity}))
                    due[identity] = math.inf  # even if it cannot be removed
                    ledger.remove(identity)

    thread = threading.Thread(target=deliver, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
