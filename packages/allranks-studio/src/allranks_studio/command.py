"""`allranks studio`: design pipelines and see runs in the browser."""

from pathlib import Path
from typing import Annotated

from allranks.cli.options import argument, option


def studio(
    folders: Annotated[
        list[Path] | None, argument("FOLDER...", "Folders of projects. Default: the current one.")
    ] = None,
    port: Annotated[int, option("--port", "Port of 127.0.0.1. Default: a free one.", "PORT", min=0, max=65535)] = 0,
    browser: Annotated[bool, option("--no-browser", "Only print the address.")] = False,
) -> None:
    """Design pipelines in the browser, on their own files, and see every run live."""
