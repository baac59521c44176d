"""`allranks mcp`: serve a project to coding agents."""

import os
from pathlib import Path
from typing import Annotated

from allranks.cli.options import FolderOption
from allranks.cli.parameters import argument, option
from allranks.errors import InputError, Problem
from allranks.workspace import Workspace


def mcp(
    project: Annotated[Path, argument("DIR", "Folder of the project. Default: the current one.")] = Path(),
    allow_run: Annotated[bool, option("--allow-run", "Let the agent run pipelines on this machine.")] = False,
    http: Annotated[
        int | None, option("--http", "Serve HTTP on this port of 127.0.0.1, with a token.", "PORT", min=0, max=65535)
    ] = None,
    folder: FolderOption = None,
) -> None:
    """Serve a project to coding agents, by the Model Context Protocol.

    The tools check and plan pipelines, list and compare runs, say why one failed, and page through logs. An agent's
    program starts this command and talks to it over standard input and output. With --http, the address and the token
    are printed to standard error.

    Checking a pipeline in Python executes its file, as `allranks check` does. A run ends with the server.
    """
    # Importing takes 2 s, which --help does not need.
    from allranks_mcp.server import serve
    from allranks_mcp.tools import Tools

    workspace = Workspace.at(folder) if folder else None
    try:
        os.chdir(project)  # pipelines, components and the workspace are found from here
    except OSError as error:
        raise InputError(Problem(str(project), str(error.strerror), "the folder of a project")) from None
    serve(Tools(workspace or Workspace.at(), allows_run=allow_run), http)
