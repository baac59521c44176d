"""The distribution's Chromium, without a window, driven through a pipe by its DevTools protocol."""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import bounded

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
"""Where Chromium is; None if this machine has none."""

_PATIENCE = 60.0
_OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # as root in a container it has none
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)


class ChromiumError(Exception):
    """Chromium could not do what it was asked."""


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """Start Chromium with an empty profile. It has ended after the block."""
    assert PROGRAM is not None
    (commands, send), (receive, replies) = _pipe(), _pipe()
    # It reads commands from file 3 and writes replies to file 4.
    shell = f'exec "$@" 3<&{commands} 4>&{replies}'
    process = bounded.Popen(
        ["bash", "-c", shell, "bash", PROGRAM, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"],
        pass_fds=(commands, replies),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "HOME": str(profile)},
    )
    os.close(commands)
    os.close(replies)
    browser = Browser(send, receive)
    try:
        yield browser
    finally:
        with suppress(ChromiumError, OSError):
            browser.call("Browser.close")
        os.close(send)
        os.close(receive)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _pipe() -> tuple[int, int]:
    """Return a pipe whose ends have numbers above those that Chromium needs."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]


class Browser:
    """The connection to a Chromium process."""

    def __init__(self, send: int, receive: int) -> None:
        self._send = send
        self._receive = receive
        self._rest = b""
        self._numbers = itertools.count(1)
        self._tabs: dict[str, Tab] = {}

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result.

        Raise ChromiumError if it fails, or if there is no answer.
        """
        number = next(self._numbers)
        command: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            command["sessionId"] = session
        os.write(self._send, json.dumps(command).encode() + b"\0")
        until = time.monotonic() + _PATIENCE
        while True:
            message = self._message(until)
            if message.get("id") == number:
                if "error" in message:
                    raise ChromiumError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result
            if (tab := self._tabs.get(message.get("sessionId", ""))) is not None:
                tab.notice(message["method"], message["params"])

    def open(self, url: str, width: int = 1280, height: int = 900, *, dark: bool = False) -> Tab:
        """Open a page and wait until it has loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = self._tabs[session] = Tab(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.resize(width, height)
        tab.use_dark_mode(dark)
        tab.call("Page.navigate", url=url)
        tab.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")
        return tab

    def _message(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._receive], [], [], max(until - time.monotonic(), 0))[0]:
                raise ChromiumError("no answer")
            data = os.read(self._receive, 1 << 20)
            if not data:
                raise ChromiumError("Chromium ended")
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message


class Tab:
    """An open page.

    errors:   what a developer would see in red: exceptions, and messages about what was refused or is missing
    requests: the addresses that the page asked for
    dragged:  what is being dragged, if drags are intercepted
    """

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.dragged: dict[str, Any] | None = None

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def notice(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.errors.append(json.dumps(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Input.dragIntercepted":
            self.dragged = parameters["data"]

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; of a promise, what it resolves to."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise ChromiumError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def wait_for(self, condition: str, seconds: float = _PATIENCE) -> None:
        """Wait until a JavaScript expression is true, also over a reload of the page."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with suppress(ChromiumError):
                if self.evaluate(f"new Promise((done) => setTimeout(() => done(Boolean({condition})), 20))"):
                    return
        raise AssertionError(f"never true: {condition}")

    def click(self, selector: str) -> None:
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def type(self, selector: str, text: str) -> None:
        """Put a text into an input."""
        self.evaluate(
            f"{{ const input = document.querySelector({json.dumps(selector)}); input.value = {json.dumps(text)};"
            " input.dispatchEvent(new Event('input', { bubbles: true })); }"
        )

    def text(self, selector: str) -> str:
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def use_dark_mode(self, dark: bool) -> None:
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def is_too_wide(self) -> bool:
        """Return whether the page must be scrolled sideways."""
        return bool(self.evaluate("document.documentElement.scrollWidth > innerWidth"))

    def screenshot(self, path: Path, *, whole: bool = True, highest: int = 3000) -> None:
        """Save a picture of the page, from its beginning, or of what is in sight."""
        parameters: dict[str, Any] = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], highest), "scale": 1}
            parameters = {"captureBeyondViewport": True, "clip": clip}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png", **parameters)["data"]))


def take_pictures(tab: Tab, folder: Path, name: str) -> None:
    """Save the page in both modes, on a screen and on a phone. Nowhere is it wider than the screen."""
    for width in (1280, 420):
        tab.resize(width, 900)
        for dark in (False, True):
            tab.use_dark_mode(dark)
            assert not tab.is_too_wide(), width
            tab.screenshot(folder / f"{name}_{width}_{'dark' if dark else 'light'}.png")
    tab.resize(1280, 900)
    tab.use_dark_mode(False)


def assert_self_contained(tab: Tab) -> None:
    assert tab.errors == []
    assert [url for url in tab.requests if not url.startswith("file:///")] == []
    hrefs = tab.evaluate(
        "[...document.querySelectorAll('[href], [src]')]"
        ".map((each) => each.getAttribute('href') ?? each.getAttribute('src'))"
    )
    assert [href for href in hrefs if ":" in href or href.startswith("/")] == []
