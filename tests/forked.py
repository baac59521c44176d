"""Ranks that are forked from a process which has imported torch, and commands from one which has imported the SDK:
starting is importing, mostly, and is done once here.

A rank is a process of its own, with its own environment, folder and output, as one that Python starts; only what it
imports first is there already.
"""

import gc
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from multiprocessing.context import ForkServerProcess
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
# What the scripts import, and what DistributedDataParallel and DeepSpeed import when they are used. Not Horovod: what
# the runtime sets before it is imported has to come first here too.
_OF_RANKS = (
    "torch",
    "torch._dynamo",
    "torch._inductor",
    "torch.distributed.fsdp",
    "sklearn.datasets",
    "transformers.models.auto.modeling_auto",
    "transformers.models.resnet.modeling_resnet",
    "deepspeed",
    "torch._inductor.compile_fx",
)
_OF_COMMANDS = ("mlflow.pyfunc", "azure.ai.ml.dsl")


class Forked:
    """A process that runs a script. It has what the tests use of Popen.

    The first one decides what this process's fork server imports: for a command alone, a second is enough.
    """

    stdin = None

    def __init__(
        self,
        script: Path,
        arguments: list[str],
        environ: dict[str, str],
        folder: Path,
        output: Path,
        *,
        command: bool = False,
    ) -> None:
        _CONTEXT.set_forkserver_preload([*(() if command else _OF_RANKS), *_OF_COMMANDS])
        self._process: ForkServerProcess = _CONTEXT.Process(
            target=_run, args=(str(script), arguments, environ, str(folder), str(output))
        )
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0)
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """As Popen does: nothing where it has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)


def _run(script: str, arguments: list[str], environ: dict[str, str], folder: str, output: str) -> None:
    gc.freeze()  # what was imported stays: no collection visits it, which would copy the pages that it shares
    for number, name in ((1, "out"), (2, "err")):
        file = os.open(f"{output}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(folder)
    sys.argv = [script, *arguments]
    # What Python itself reads of its environment at its start.
    sys.path[:0] = [str(Path(script).parent), *filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))]
    sys.dont_write_bytecode = bool(environ.get("PYTHONDONTWRITEBYTECODE"))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Otherwise each rank would start a server of its own for the workers of a data loader.
    multiprocessing.set_start_method(None, force=True)
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception:
        sys.excepthook(*sys.exc_info())  # as the interpreter does; multiprocessing would print the traceback itself
        sys.exit(1)
