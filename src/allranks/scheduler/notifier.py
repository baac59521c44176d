"""Deliver the notices of the ledger: as a POST to a webhook, or to a command's standard input.

A notice is removed as soon as it has been answered. If the scheduler is killed between the two, the next one sends the
notice again, with the same id.
"""

import math
import re
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException
from json import loads
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from allranks.errors import InputError, Problem
from allranks.scheduler.events import Event
from allranks.scheduler.ledger import Ledger, Notice
from allranks.secrets import redact

DELAYS = (1, 5, 25, 125, 625)
"""Seconds to wait after each failed delivery. A notice is given up when it fails after the last of them."""
_POLL = 0.25
_TIMEOUT = 10
"""Seconds that a server or a command may take."""

Send = Callable[[Notice], object]


def sender(target: str) -> Send:
    """Return the function that sends a notice to a URL or a command. It raises OSError or HTTPException on failure.

    Raise InputError if the target can't receive notices.
    """
    expected = "a URL with http or https, or a command"
    where = f"--notify {redact(target)}"
    if match := re.match(r"([A-Za-z][\w+.-]*)://", target):
        if match[1].lower() not in ("http", "https"):
            raise InputError(Problem(where, f"the scheme {match[1]}", expected, "use a command for it"))
        try:
            address = urlsplit(target)
            is_complete = bool(address.hostname and address.port != 0) and target.isprintable() and " " not in target
        except ValueError:
            is_complete = False
        if not is_complete:
            raise InputError(Problem(where, "it is not a complete URL", "http://HOST[:PORT]/PATH", "correct it"))
        return partial(_post, target)
    try:
        command = shlex.split(target)
    except ValueError as error:
        raise InputError(Problem(where, f"{error}", expected, "correct the quotation marks")) from None
    if not command or shutil.which(command[0]) is None:
        found = f"there is no program {command[0]}" if command else "it is empty"
        raise InputError(Problem(where, found, expected, "install it, or write its path"))
    return partial(_pipe, command)


def _post(url: str, notice: Notice) -> None:
    from urllib.request import HTTPRedirectHandler, Request, build_opener  # 0.04 s, and only --notify needs it

    class NoRedirect(HTTPRedirectHandler):
        """Reject redirections, which would turn the POST into a GET."""

        def redirect_request(self, *_: Any) -> None:
            return None

    headers = {"Content-Type": "application/json", "Idempotency-Key": notice.id}
    with build_opener(NoRedirect).open(Request(url, notice.body.encode(), headers), timeout=_TIMEOUT):
        pass


def _pipe(command: Sequence[str], notice: Notice) -> None:
    try:
        # In a session of its own, so that Ctrl-C reaches the scheduler only.
        done = subprocess.run(
            command, input=notice.body.encode(), capture_output=True, timeout=_TIMEOUT, start_new_session=True
        )
    except subprocess.TimeoutExpired:
        raise OSError(f"{command[0]} took more than {_TIMEOUT} s") from None
    if done.returncode:
        *_, last = ["", *done.stderr.decode(errors="replace").split("\n")[:-1]]
        raise OSError(f"{command[0]} ended with exit code {done.returncode}{': ' if last else ''}{last}")


@dataclass
class Notifier:
    """Deliver notices on another thread, so that a slow server delays no firing. Use it as a context manager.

    ledger: path of the ledger
    report: called when a notice is given up
    """

    ledger: Path
    send: Send
    report: Callable[[Event], None]
    delays: Sequence[float] = DELAYS

    def __enter__(self) -> Self:
        self._stop = threading.Event()
        self._due: dict[str, float] = {}
        self._thread = threading.Thread(target=self._deliver, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Try once more to deliver what is due. The next scheduler sends the rest."""
        self._stop.set()
        self._thread.join()

    def _deliver(self) -> None:
        with Ledger(self.ledger) as ledger:
            is_last = False
            while not is_last:
                is_last = self._stop.wait(_POLL)
                due = [each for each in ledger.notices() if self._due.get(each.id, 0) <= time.monotonic()]
                # After a failure, the others would probably fail too.
                next((notice for notice in due if not self._attempt(ledger, notice)), None)

    def _attempt(self, ledger: Ledger, notice: Notice) -> bool:
        try:
            self.send(notice)
        except (OSError, HTTPException) as error:
            if notice.failures < len(self.delays):
                self._due[notice.id] = time.monotonic() + self.delays[notice.failures]
                ledger.fail(notice.id)
                return False
            text = f"notice {notice.id} given up after {notice.failures + 1} deliveries: {redact(str(error))}"
            schedule = loads(notice.body)["schedule"]
            self.report(Event("undelivered", schedule, text, {"id": notice.id, "reason": redact(str(error))}))
        self._due[notice.id] = math.inf  # also if it cannot be removed
        ledger.remove(notice.id)
        return True
