"""The warm process of a reader: it has imported azure-ai-ml, and forks a child for each reading.

The file's code runs in the child, which prints nothing, has limits of time and memory, and is killed with all that it
started. A request is a line of JSON on standard input, its answer a line on standard output.
"""

import builtins
import contextlib
import gc
import io
import json
import linecache
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from allranks.api.jobs import found_in
from allranks.catalog import functions
from allranks.errors import InputError, Problem
from allranks.history import registered
from allranks.plan.reader import lookup_of, opened
from allranks.plan.reader.nodes import read_component
from allranks.sdk import internals, spec_files, specs, yaml_lines
from allranks.sdk.paths import shown
from allranks.sdk.session import session
from allranks.sdk.validation_errors import one_line
from allranks.workspace import Workspace
from allranks_studio.documents import plan_graph
from allranks_studio.documents.codec import to_data
from allranks_studio.documents.exports import exported
from allranks_studio.documents.python_outline import Module

MOST_MEMORY = 4 << 30
"""Limit for the private memory of a reading, in bytes."""

_WARM_UP = """
from azure.ai.ml.dsl import pipeline
from allranks import layout
from allranks.library import prepare_images, train_image_classifier

@pipeline()
def warm_up(seed: int = 0):
    prepare = prepare_images(seed=seed)
    train = train_image_classifier(data=prepare.outputs.images)
    layout(train, 2, 2)
    return {"model": train.outputs.model}
"""


class Loaded:
    """Components that were loaded before a reading, by how and where they were loaded: ("load", SOURCE, FOLDER).

    A reading takes an entry out of its copy of this table, so that a file that loads a component twice gets two.
    """

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str, str], tuple[Any, dict[str, tuple[int, int]]]] = {}
        self.used: list[tuple[str, str, str]] = []

    def take(self, kind: str, source: str) -> Any:
        key = kind, source, os.getcwd()
        self.used.append(key)
        made, files = self.entries.pop(key, (None, {"": (0, 0)}))
        return made if _stamps(files) == files else _LOADERS[kind](source)

    def add(self, kind: str, source: str, folder: str) -> None:
        """Load a component of a YAML file, unless it is there. Its code does not run."""
        made, files = self.entries.get((kind, source, folder), (None, {"": (0, 0)}))
        if _stamps(files) == files:
            return
        files_read: list[str] = []

        def recorded(file: Any) -> Any:
            if isinstance(file, (str, os.PathLike)):
                files_read.append(os.path.abspath(file))
            return file

        # The reading reports what is wrong.
        with contextlib.chdir(folder), opening(recorded), contextlib.suppress(Exception):
            made = _LOADERS[kind](source)
            self.entries[kind, source, folder] = made, _stamps(files_read)


def _stamps(files: Any) -> dict[str, tuple[int, int]]:
    """Return the time and size of each file, (0, 1) if it does not exist."""

    def stamp(file: str) -> tuple[int, int]:
        try:
            found = os.stat(file)
        except OSError:
            return 0, 1
        return found.st_mtime_ns, found.st_size

    return {file: stamp(file) for file in files}


_component_function = functions.component_function
_load_component: Callable[..., Any]
_LOADERS: dict[str, Callable[[str], Any]] = {
    "load": lambda source: _load_component(source),
    "function": lambda source: _component_function(Path(source).parent.name, Path(source)),
}


@contextlib.contextmanager
def prepared(loaded: Loaded) -> Iterator[None]:
    """Let the SDK take components that were loaded before, inside of the block."""
    sdk = sys.modules["azure.ai.ml"]

    def load_component(*arguments: Any, **options: Any) -> Any:
        source = str(arguments[0]) if len(arguments) == 1 and isinstance(arguments[0], (str, os.PathLike)) else ""
        if options or not source.endswith((".yml", ".yaml")):
            return _load_component(*arguments, **options)
        return loaded.take("load", source)

    with (
        internals.replaced(sdk, "load_component", load_component),
        internals.replaced(functions, "component_function", lambda _, spec: loaded.take("function", str(spec))),
    ):
        yield


@contextlib.contextmanager
def opening(other: Callable[[Any], Any]) -> Iterator[None]:
    """Let Python open what a function returns for each file, inside of the block."""
    high, low = io.open, os.open

    def open_file(file: Any, *arguments: Any, **options: Any) -> Any:
        return high(other(file), *arguments, **options)

    def open_low(file: Any, *arguments: Any, **options: Any) -> int:
        return low(other(file), *arguments, **options)

    with (
        internals.replaced(builtins, "open", open_file),
        internals.replaced(io, "open", open_file),
        internals.replaced(os, "open", open_low),
    ):
        yield


@contextlib.contextmanager
def standing_in(path: Path, data: bytes) -> Iterator[None]:
    """Let a file have another content for this process, whatever is on the disk, inside of the block."""
    content = os.memfd_create("content")
    os.write(content, data)

    def other(file: Any) -> Any:
        is_path = isinstance(file, (str, bytes, os.PathLike))
        return f"/proc/self/fd/{content}" if is_path and os.path.abspath(os.fsdecode(file)) == str(path) else file

    lines = data.decode("utf-8", "replace").splitlines(keepends=True)
    linecache.cache[str(path)] = len(data), None, lines, str(path)
    with opening(other):
        yield
    os.close(content)


def read(path: Path, text: bytes, loaded: Loaded, form: str = "") -> dict[str, Any]:
    """Read a text in a file's place. Return a `Reading`, or what `exported` returns for a form, as plain data."""
    # A pipeline component in the file was loaded from the disk.
    loaded.entries = {key: entry for key, entry in loaded.entries.items() if key[1] != str(path)}
    with standing_in(path, text), prepared(loaded):
        answer = _attempt(str(path), path, form)
        if any(problem.code == "several-pipelines" for problem in answer["findings"]):
            root = Module(text.decode("utf-8", "replace")).root
            of_root = _attempt(f"{path}:{root.function.name}", path, form) if root is not None else answer
            answer = {**of_root, "findings": dict.fromkeys((*answer["findings"], *of_root["findings"]))}
        findings = [plan_graph.finding_of(problem, shown(path)) for problem in answer["findings"]]
    return {**answer, "findings": findings, "used": loaded.used}


def _attempt(target: str, path: Path, form: str) -> dict[str, Any]:
    """Read ``FILE[:NAME]``."""
    try:
        if form:
            return {"text": exported(target, path, form), "findings": ()}
        if path.suffix != ".py" and (component := _pipeline_component(path)) is not None:
            return component
        lookup = replace(lookup_of(target, {}, registered.of(Workspace.at(None))), draws=True)
        with opened(target, {}, lookup) as job:
            plan = job.plan(None)
            return {
                "graph": to_data(plan_graph.graph_of(plan, job.job, shown(path))),
                "name": plan.name,
                "display_name": plan.display_name,
                "description": plan.description,
                "compute": plan_graph.compute_of(job.job),
                "findings": dict.fromkeys(found_in(plan)),
            }
    except InputError as error:
        return {"graph": None, "findings": error.problems}
    except Exception as error:  # of the SDK, or too deep a recursion
        return {"graph": None, "findings": (Problem(shown(path), one_line(error), "a pipeline"),)}


def _pipeline_component(path: Path) -> dict[str, Any] | None:
    """Read the YAML file of a pipeline component, whose steps are edited there; None for another file."""
    tree = yaml_lines.parse(path).tree
    if spec_files.kind_of(tree) is not spec_files.Kind.COMPONENT or tree.get("type") != "pipeline":
        return None
    (component,) = specs.load(path)
    plan = read_component(component, path)
    assert plan is not None, "a pipeline component is read as a plan"
    about = {"name": plan.name, "display_name": str(component.display_name or ""), "description": ""}
    graph = plan_graph.graph_of(plan, component, shown(path))
    return {"graph": to_data(graph), **about, "compute": "", "findings": dict.fromkeys(plan.findings)}


def _child(request: dict[str, Any], loaded: Loaded, answer: Connection) -> None:
    """Answer a request, and end this process with everything that it started."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nowhere, standard)
    gc.disable()  # a collection would free little, and copy memory that the processes share
    sys.dont_write_bytecode = True
    os.chdir(request["folder"])
    result = read(Path(request["path"]), request["text"].encode("latin-1"), loaded, request["form"])
    answer.send_bytes(json.dumps(result).encode())


def _answer(request: dict[str, Any], loaded: Loaded) -> bytes:
    """Let a child read, and return its answer; how it ended if it gave none, or none in time."""
    receive, send = multiprocessing.Pipe(duplex=False)
    if (child := os.fork()) == 0:
        with contextlib.suppress(BaseException):  # whatever the file's code has left behind
            _child(request, loaded, send)
        os._exit(0)
    send.close()
    # Standard input has something to read only at its end: the server has ended.
    ended = receive in wait([receive, sys.stdin.fileno()], request["seconds"])
    answer = b""
    with contextlib.suppress(EOFError, OSError):
        answer = receive.recv_bytes() if ended else b""
    receive.close()
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return answer or json.dumps({"ended": ended, "status": os.waitstatus_to_exitcode(status)}).encode()


def main() -> None:
    """Answer requests until standard input ends."""
    global _load_component
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    loaded = Loaded()
    with tempfile.TemporaryDirectory(prefix="allranks-") as folder:
        tempfile.tempdir = folder  # also of children that are killed
        with session(client=False):
            _load_component = internals.load_component
        file = Path(folder, "warm_up.py")
        file.touch()
        read(file, _WARM_UP.encode(), loaded)  # imports what the SDK defers, and fills its caches
        loaded.used.clear()
        for line in iter(sys.stdin.buffer.readline, b""):
            answer = _answer(json.loads(line), loaded)
            answers.write(answer + b"\n")
            answers.flush()
            with session(client=False):
                for key in json.loads(answer).get("used", ()):
                    loaded.add(*key)


if __name__ == "__main__":
    main()
