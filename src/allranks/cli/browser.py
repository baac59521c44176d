"""Open a page in the user's browser, if there is one."""

from __future__ import annotations

import os
import sys

_NAMED = "BROWSER"
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def open_in_browser(address: str) -> bool:
    """Open an address. Return False if this machine has no display or no browser.

    Without a display, `webbrowser` would start a browser in the terminal, which hides what the command prints.
    """
    import webbrowser

    has_display = sys.platform != "linux" or any(os.environ.get(name) for name in (*_DISPLAYS, _NAMED))
    try:
        return has_display and webbrowser.open(address)
    except (webbrowser.Error, OSError):
        return False
