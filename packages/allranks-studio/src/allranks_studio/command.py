"""`allranks studio`: design pipelines and see runs in the browser."""

from pathlib import Path
from typing import Annotated

from allranks.cli.parameters import argument, option


def studio(
    folders: Annotated[
        list[Path] | None, argument("FOLDER...", "Folders of projects. Default: the current one.")
    ] = None,
    port: Annotated[int, option("--port", "Port of 127.0.0.1. Default: a free one.", "PORT", min=0, max=65535)] = 0,
    no_browser: Annotated[bool, option("--no-browser", "Only print the address.")] = False,
) -> None:
    """Design pipelines in the browser, on their own files, and see every run live.

    The address is printed. It is valid once; when it has been used, the next one is printed, for another browser.
    """
    # Importing takes 0.3 s, which --help does not need.
    from allranks_studio.server.app import serve
    from allranks_studio.server.browser import open_privately
    from allranks_studio.server.folders import folders_of

    serve(folders_of(folders or [Path()]), port, None if no_browser else open_privately)
