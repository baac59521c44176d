"""Import modules ahead of the scripts that need them, and record what a rank must restore."""

import gc
import importlib
import os
import signal
import sys
import threading
import weakref
from collections.abc import Collection, ItemsView, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from allranks.local.instances.processes import environment_of

OUTPUT = 1 << 20
"""Maximum bytes of the imports' output that is repeated in the log of a rank."""

DRIVER = "/dev/nvidia"
"""Beginning of the files of a GPU's driver. A process that has used a GPU cannot be forked."""


@dataclass(frozen=True)
class Preloaded:
    """The state of the process after the imports.

    unfit:       why no rank can be forked from it; "" if it can
    modules:     the names of the imported modules
    environment: the environment that the process was started with
    read:        the names of the variables that the imports have read in Python
    descriptors: the descriptors that the imports have opened
    handlers:    the signal handlers that Python and the imports have set
    mask:        the blocked signals
    variables:   the changes of the environment by the start of the interpreter and the imports; None: removed
    temporary:   the folder for temporary files, if an import has requested it
    output:      the output of the imports
    main:        the variables of a new `__main__`
    """

    unfit: str = ""
    modules: frozenset[str] = frozenset()
    environment: Mapping[str, str] = field(default_factory=dict)
    read: frozenset[str] = frozenset()
    descriptors: frozenset[int] = frozenset()
    handlers: Mapping[int, Any] = field(default_factory=dict)
    mask: Collection[int] = ()
    variables: Mapping[str, str | None] = field(default_factory=dict)
    temporary: str | None = None
    output: bytes = b""
    main: Mapping[str, Any] = field(default_factory=dict)


def preload(modules: Sequence[str], reserved: Collection[int] = ()) -> Preloaded:
    """Import the modules in this process, which has just started. A module that fails to import is left out.

    stdin is then empty. The output of the imports is saved and not shown.

    reserved: descriptors of the caller, which the imports did not open
    """
    main = {name: value for name, value in vars(sys.modules["__main__"]).items() if name in _MAIN}
    before = environment_of("self")  # Python itself may have set LC_CTYPE since
    output = _redirect_streams()
    own = {*_descriptors(), *reserved}
    sys.argv = [""]
    if sys.path and not sys.path[0]:
        del sys.path[0]  # the working directory: a rank has its own, or the folder of its script
    # Together with the freezing below, it halves the CPU time of four ranks that import torch (1.6 s; 3.1 s without).
    gc.disable()
    with _recorded_reads() as read:
        for module in modules:
            with suppress(Exception):  # the rank's own import fails as well, and reports the error
                importlib.import_module(module)
    _keep_operators()
    # Objects that are no longer collected stay in memory that the ranks share. One collection takes 0.1 s after torch.
    gc.freeze()
    gc.enable()
    sys.stdout.flush()
    sys.stderr.flush()
    after = dict(os.environ)
    return Preloaded(
        unfit=_unfit(),
        modules=frozenset(sys.modules),
        environment=before,
        read=frozenset(read),
        descriptors=frozenset(_descriptors() - own),
        handlers={number: signal.getsignal(number) for number in sorted(signal.valid_signals())},
        mask=frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        variables={name: after.get(name) for name in {*before, *after} if before.get(name) != after.get(name)},
        temporary=getattr(sys.modules.get("tempfile"), "tempdir", None),
        output=os.pread(output, OUTPUT, 0),
        main=main,
    )


def _keep_operators() -> None:
    """Prevent ranks from deregistering the operators of torch one by one at exit, in shared memory: four ranks take
    1.6 s of CPU time, 1.8 s otherwise."""
    for finalizer in list(getattr(weakref.finalize, "_registry", ())):
        registered = finalizer.peek()
        if registered and getattr(registered[1], "__module__", "") == "torch.library":
            finalizer.atexit = False


_MAIN = ("__name__", "__doc__", "__package__", "__loader__", "__spec__", "__annotations__", "__builtins__")


@contextmanager
def _recorded_reads() -> Iterator[set[str]]:
    """Yield the set of the variables that the block reads by name. It fills during the block."""
    environ: Any = type(os.environ)
    original, read = environ.__getitem__, set()

    def recorded(self: Any, name: str) -> str:
        if sys._getframe(1).f_code is not ItemsView.__iter__.__code__:
            read.add(os.fsdecode(name))  # os.environb too
        value: str = original(self, name)
        return value

    environ.__getitem__ = recorded
    try:
        yield read
    finally:
        environ.__getitem__ = original


def _redirect_streams() -> int:
    """Redirect stdin from an empty file, and stdout and stderr to memory. Return the descriptor of the latter."""
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    output = os.memfd_create("output")
    os.dup2(output, 1)
    os.dup2(output, 2)
    return output


def _descriptors() -> set[int]:
    with os.scandir("/proc/self/fd") as entries:
        numbers = [int(entry.name) for entry in entries]
    return {number for number in numbers if os.path.exists(f"/proc/self/fd/{number}")}


def close_all_but(keep_open: Collection[int]) -> None:
    """Close all descriptors except those in `keep_open`."""
    for number in map(int, os.listdir("/proc/self/fd")):
        if number not in keep_open:
            with suppress(OSError):  # the descriptor of the listing itself
                os.close(number)


def _unfit() -> str:
    """Return the reason why this process cannot be forked; "" if it can."""
    threads = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    if threads:
        return f"an import has started the thread {threads[0]}, which a forked process would lack"
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        if target.startswith(DRIVER):
            return f"an import has opened {target}, and a GPU cannot be used on both sides of a fork"
    return ""
