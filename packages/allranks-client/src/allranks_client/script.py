"""Run a script or a notebook unchanged, with `LocalClient` in place of MLClient."""

import contextlib
import os
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from allranks.errors import InputError, Problem
from allranks.local.options import Options
from allranks.sdk import notebook, python_file, user_code
from allranks.sdk.offline_client import replaced_clients
from allranks.sdk.paths import require_file
from allranks.sdk.session import PRIVATE_FEATURES, entry
from allranks.workspace import Workspace


def run_as_azure(file: str, arguments: Sequence[str], workspace: Workspace, options: Options) -> int:
    """Run a Python script, or the cells of a notebook, as the main program, and return its exit code.

    Its MLClient and its credentials are replaced: its jobs run on this machine, and Azure is not contacted. A traceback
    of the script is printed as Python prints it. Raise InputError if the file cannot be read, if a notebook is given
    arguments, or if a job cannot run here.
    """
    path = Path(file).absolute()
    require_file(path, "a script or a notebook", python_file.SUFFIXES)
    if arguments and path.suffix == python_file.NOTEBOOK:
        found, fix = f"{arguments[0]} after a notebook", "write the options of allranks in front of the notebook"
        raise InputError(Problem(str(path), found, "no arguments: a notebook cannot read them", fix))
    with contextlib.ExitStack() as stack:
        stack.enter_context(_local_clients(workspace, options))
        from allranks_client.client import running_jobs

        stack.enter_context(python_file.importable(path))
        stack.callback(setattr, sys, "argv", sys.argv)
        sys.argv = [file, *arguments]
        try:
            if path.suffix == python_file.NOTEBOOK:
                module = ModuleType("__main__")
                stack.enter_context(python_file.as_jupyter(path, module))
                notebook.run(path, module)
            else:
                runpy.run_path(str(path), run_name="__main__")
        except InputError:
            raise
        except Exception as error:
            inner = error.__traceback__ and error.__traceback__.tb_next  # the first one is this function
            while inner and not user_code.is_users(inner.tb_frame.f_code.co_filename):
                inner = inner.tb_next
            traceback.print_exception(type(error), error, inner or error.__traceback__)
            return 1
        finally:
            for name in running_jobs():
                print(f"{name} continues in the background: allranks show {name}", file=sys.stderr)
    return 0


@contextlib.contextmanager
def _local_clients(workspace: Workspace | None = None, options: Options | None = None) -> Iterator[None]:
    """Replace MLClient and the credentials of azure.identity inside of the block."""
    with entry(os.environ, PRIVATE_FEATURES, "true"):  # before the SDK is imported
        from allranks_client.client import LocalClient

        client = LocalClient.with_options(workspace.root, options or Options()) if workspace else LocalClient
        with replaced_clients(client):
            yield


_kernel = contextlib.ExitStack()
"""The replacement in the kernel of a notebook."""


def load_ipython_extension(shell: Any) -> None:
    """Replace MLClient and the credentials in later imports of the kernel: ``%load_ext allranks``."""
    _kernel.enter_context(_local_clients())


def unload_ipython_extension(shell: Any) -> None:
    """Restore the SDK's own client in later imports of the kernel: ``%unload_ext allranks``."""
    _kernel.close()
