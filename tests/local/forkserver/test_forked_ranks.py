"""A script cannot tell whether it was started as a new process or forked: everything that it can see is compared."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

STATE = Path(__file__).with_name("state_of_process.py").read_text(encoding="utf-8")


def _compare(cold: str, forked: str) -> None:
    one, other = (json.loads(re.sub(r" at 0x[0-9a-f]+", "", log)) for log in (cold, forked))
    assert list(_differences(one, other)) == []


def _differences(cold: Any, forked: Any, place: str = "") -> Iterator[str]:
    if isinstance(cold, dict) and isinstance(forked, dict):
        for name in sorted({*cold, *forked}):
            yield from _differences(cold.get(name), forked.get(name), f"{place}/{name}")
    elif cold != forked:
        yield f"{place}: {cold} is not {forked}"


@pytest.mark.parametrize("shared", [{}, {"PYTHONUNBUFFERED": ""}, {"LANG": "C.UTF-8", "PYTHONIOENCODING": "latin-1"}])
def test_a_script_sees_the_same(kind: str, run_ranks, shared: dict[str, str]) -> None:
    cold = run_ranks(kind, STATE, forked=False, shared=shared)
    forked = run_ranks(kind, STATE, forked=True, shared=shared)
    assert forked.codes == cold.codes == (0,)
    _compare(cold.logs[0], forked.logs[0])


FORMS = [
    "python -m train --a 'b c'",
    "python ./train.py é",
    "python3 ../code/train.py",
    "python -u train.py",
    "A=1 B= python train.py",
]


def test_each_form_of_a_command_sees_the_same(kind: str, run_ranks) -> None:
    cold = run_ranks(kind, STATE, forked=False, commands=FORMS)
    forked = run_ranks(kind, STATE, forked=True, commands=FORMS)
    assert forked.codes == cold.codes == (0,) * len(FORMS)
    for logs in zip(cold.logs, forked.logs, strict=True):
        _compare(*logs)


UNFIT = """
import threading
stop = threading.Event()
threading.Thread(target=stop.wait, daemon=True).start()
"""


@pytest.mark.parametrize("modules", [("background",), ("ending",)])
def test_without_a_fit_fork_server_ranks_are_new_processes(kind: str, run_ranks, tmp_path: Path, modules) -> None:
    """An import that starts a thread, and one that ends the process."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "background.py").write_text(UNFIT, encoding="utf-8")
    (folder / "ending.py").write_text("import os\nos._exit(1)\n", encoding="utf-8")
    source = f"import sys\nprint({modules[0]!r} in sys.modules, end='')\n"
    ended = run_ranks(kind, source, forked=True, modules=modules, shared={"PYTHONPATH": str(folder)}, ranks=2)
    assert (ended.codes, ended.logs) == ((0, 0), ("False", "False"))


@pytest.mark.parametrize("unbuffered", ["1", ""])
def test_what_imports_print_is_in_the_log_of_each_rank(run_ranks, tmp_path: Path, unbuffered: str) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "talking.py").write_text("import os\nprint('hello')\nos.environ['SET'] = '1'\n", encoding="utf-8")
    source = "import os, talking\nprint(os.environ['SET'])\n"
    shared = {"PYTHONPATH": str(folder), "PYTHONUNBUFFERED": unbuffered}
    cold = run_ranks("loopback", source, forked=False, shared=shared, ranks=2)
    forked = run_ranks("loopback", source, forked=True, modules=("talking",), shared=shared, ranks=2)
    assert forked == cold
    assert forked.logs == ("hello\n1\n",) * 2


SCRATCH = "import os, tempfile\nos.environ['CACHE'] = os.path.join(tempfile.gettempdir(), 'cache')\n"


def test_an_import_s_temporary_files_are_in_the_folder_of_the_rank(run_ranks, tmp_path: Path) -> None:
    folder, temporary = tmp_path / "code", tmp_path / "own"
    for path in (folder, temporary):
        path.mkdir()
    (folder / "scratch.py").write_text(SCRATCH, encoding="utf-8")
    source = "import os, scratch, tempfile\nprint(os.environ['CACHE'], tempfile.gettempdir())\n"
    command = f"TMPDIR={temporary} python train.py"
    shared = {"PYTHONPATH": str(folder)}
    cold = run_ranks("loopback", source, forked=False, command=command, shared=shared)
    given = {"modules": ("scratch",), "command": command, "shared": shared}
    forked = run_ranks("loopback", source, forked=True, **given)
    assert forked == cold
    assert forked.logs == (f"{temporary}/cache {temporary}\n",)
