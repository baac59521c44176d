"""The state of the interpreter that a rank has when its script begins."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from allranks.local.forkserver import streams
from allranks.local.forkserver.preloaded import Preloaded

if TYPE_CHECKING:
    from allranks.local.forkserver.python_command import PythonCommand


def restore(command: PythonCommand, environment: Mapping[str, str], preloaded: Preloaded) -> None:
    """Make the state of this forked process that of a new interpreter that has executed the same imports."""
    streams.renew(unbuffered="-u" in command.options)
    sys.argv = list(command.arguments)
    sys.orig_argv = list(command.original_arguments)
    sys.executable = command.executable
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, command.search_path)
    _forget_this_package()
    main = ModuleType("__main__")
    vars(main).clear()
    vars(main).update({**preloaded.main, "__builtins__": sys.modules["builtins"]})
    if "__annotations__" in preloaded.main:
        main.__annotations__ = {}
    sys.modules["__main__"] = main
    thread: Any = threading.main_thread()
    thread._set_native_id()  # a fork leaves that of the parent
    if "TZ" in environment:
        time.tzset()
    _renew_random_generators()
    _renew_multiprocessing()


def _forget_this_package() -> None:
    """Let the script import the copy of the package that is beside it or installed, if there is one."""
    (folder,) = sys.modules["allranks"].__path__
    for name in [name for name in sys.modules if name == "allranks" or name.startswith("allranks.")]:
        del sys.modules[name]
    for path in [path for path in sys.path_importer_cache if path.startswith(folder)]:
        del sys.path_importer_cache[path]


def _renew_random_generators() -> None:
    """Seed the generators that are seeded when their module is imported. Those of `random` are seeded at a fork."""
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.seed()


def _renew_multiprocessing() -> None:
    process: Any = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.ORIGINAL_DIR = os.getcwd()
        process._current_process = type(process._current_process)()  # it has a random key
