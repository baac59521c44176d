"""Open the browser at an address with a token, which other users of the machine must not see."""

import atexit
import html
import tempfile
import webbrowser
from pathlib import Path


def open_privately(address: str) -> None:
    """Open an address in the browser, if there is one.

    Every user can read the arguments of processes, so the browser gets a file that leads to the address, in a folder
    that only this user can enter. The folder is removed at the end of this process.
    """
    folder = tempfile.TemporaryDirectory(prefix="allranks-studio-")
    atexit.register(folder.cleanup)
    file = Path(folder.name, "open.html")
    target = html.escape(f"0;url={address}")
    file.write_text(
        f'<!doctype html><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="{target}">'
    )
    webbrowser.open(file.as_uri())
