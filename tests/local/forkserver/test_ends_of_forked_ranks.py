"""A forked rank ends as a new process does: with the same exit code, and the same log byte for byte."""

import re
import sys
from dataclasses import replace
from typing import Any

import pytest
from rank_runs import MODULES, Ended, run_programs

from allranks.local.instances.supervisor import ForkServerSpec, Program

pytestmark = pytest.mark.xdist_group("ends of forked ranks")  # they share two runs of all scripts

SCRIPTS = {
    "exit code": "import sys; sys.exit(3)",
    "large exit code": "import sys; sys.exit(-1)",
    "exit message": "import sys; print('out'); sys.exit('no data')",
    "exit without code": "import sys; sys.exit()",
    "other exit value": "raise SystemExit(['a', 1])",
    "exception": "def f(n):\n    return f(n - 1) if n else 1 / 0\n\nprint('before')\nf(3)\n",
    "chained exception": """
        class Failure(Exception):
            def __str__(self): return 'é'
        try:
            {}['key']
        except KeyError as error:
            raise Failure('x') from error
        """,
    "exception group of recursion": "def f(): f()\ntry: f()\nexcept RecursionError: print('deep')\n",
    "syntax error": "print('never')\ndef f(:\n    pass\n",
    "other encoding": "# coding: latin-1\nprint('\\xe9')\n",
    "wrong encoding": "# coding: unknown-coding\nprint(1)\n",
    "null byte": "print('a\\0b')",
    "keyboard interrupt": "print(1)\nraise KeyboardInterrupt\n",
    "signal": "import os, signal\nprint('x', flush=True)\nos.kill(os.getpid(), signal.SIGTERM)\n",
    "abort": "import os\nos.abort()\n",
    "exit without finalisation": "import os\nprint('lost or not')\nos._exit(5)\n",
    "broken pipe": """
        import os
        reader, writer = os.pipe()
        os.close(reader)
        try: os.write(writer, b'x')
        except BrokenPipeError: print('ignored')
        """,
    "exit functions": """
        import atexit
        atexit.register(print, 'first')
        atexit.register(print, 'second')
        @atexit.register
        def f(): raise ValueError('in an exit function')
        1 / 0
        """,
    "threads": """
        import threading
        done = threading.Event()
        def work():
            done.wait()
            print('thread')
        threading.Thread(target=work).start()
        print('main')
        done.set()
        """,
    "failing thread": """
        import threading
        def work(): raise ValueError('in a thread')
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        """,
    "daemon thread": """
        import threading
        forever = threading.Event()
        def work():
            while True: forever.wait()
        threading.Thread(target=work, daemon=True).start()
        file = open('file', 'w')
        file.write('text')
        print('end')
        """,
    "pool of threads": """
        from concurrent.futures import ThreadPoolExecutor
        pool = ThreadPoolExecutor(2)
        print(list(pool.map(lambda x: x * x, range(5))))
        """,
    "destructors": """
        class Noisy:
            def __init__(self, name): self.name = name
            def __del__(self): print('deleted', self.name, flush=True)
        _hidden, shown = Noisy('hidden'), Noisy('shown')
        cycle = [Noisy('cycle')]
        cycle.append(cycle)
        del cycle
        """,
    "failing destructor": """
        class Failing:
            def __del__(self): raise ValueError('in a destructor')
        value = Failing()
        del value
        """,
    "hook": "import sys\nsys.excepthook = lambda *error: print('hook', error[1], file=sys.stderr)\n1 / 0\n",
    "failing hook": "import sys\ndef hook(*error): raise ValueError('hook')\nsys.excepthook = hook\n1 / 0\n",
    "exiting hook": "import sys\ndef hook(*error): sys.exit(9)\nsys.excepthook = hook\n1 / 0\n",
    "warning": "import warnings\nwarnings.warn('careful')\nwarnings.warn('deep', DeprecationWarning, stacklevel=1)\n",
    "closed stdout": "import sys\nprint('x')\nsys.stdout.close()\n",
    "full stdout": """
        import os
        full = os.open('/dev/full', os.O_WRONLY)
        os.dup2(full, 1)
        print('x')
        """,
    "buffered output": "import os, sys\nprint('one')\nos.system('echo two')\nsys.stderr.write('three')\n",
    "output of C": "import ctypes\nctypes.CDLL(None).printf(b'from C')\nprint('from Python')\n",
    "input": "import sys\nprint(repr(sys.stdin.read()))\ninput()\n",
    "fork": """
        import os, sys
        child = os.fork()
        if not child: sys.exit(4)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
    "forked processes": """
        import multiprocessing
        def work(x): return x * x
        with multiprocessing.get_context('fork').Pool(2) as pool: print(pool.map(work, range(4)))
        """,
    "spawned processes": """
        import multiprocessing
        def work(x): return x * x
        if __name__ == '__main__':
            with multiprocessing.get_context('spawn').Pool(1) as pool: print(pool.map(work, range(4)))
        """,
    "subprocess": """
        import subprocess, sys
        print(subprocess.run([sys.executable, '-c', 'import sys; print(sys.argv, sys.path[0])'], text=True,
                             stdout=subprocess.PIPE).stdout)
        """,
    "pickle": """
        import pickle
        class Point: pass
        print(pickle.dumps(Point), pickle.loads(pickle.dumps(Point)) is Point)
        """,
    "annotations": "x: int = 1\nprint(__annotations__, __name__, __doc__, sorted(globals()))\n",
    "future": "def f(x: undefined): pass\n",
    "asyncio": "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 7\nprint(asyncio.run(f()))\n",
}


def _source(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(line.removeprefix("        ") for line in lines) if lines[0] == "" else text


@pytest.fixture(scope="module", params=["1", ""], ids=["unbuffered", "buffered"])
def ended(request: pytest.FixtureRequest, environment: dict[str, str], tmp_path_factory: Any) -> dict[bool, Ended]:
    """How all scripts ended: as new processes, and forked from one fork server."""
    variables = environment | {"PYTHONUNBUFFERED": request.param}
    spec = ForkServerSpec(sys.executable, tuple(sorted(variables.items())), MODULES)
    found = {}
    for forked in (False, True):
        folder, programs = tmp_path_factory.mktemp("scripts"), []
        for name, text in SCRIPTS.items():
            own = folder / name / "code"  # the traceback of a script has its path
            own.mkdir(parents=True)
            (own / "train.py").write_text(_source(text), encoding="utf-8")
            log = str(folder / name / "log")
            programs.append(Program(name, ("/bin/bash", "-c", "python train.py"), variables, str(own), log))
        found[forked] = run_programs("loopback", programs, spec if forked else None, folder)
        logs = tuple(log.replace(str(folder), "FOLDER") for log in found[forked].logs)
        found[forked] = _without_addresses(replace(found[forked], logs=logs))
    return found


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_rank_ends_the_same(ended: dict[bool, Ended], name: str) -> None:
    number = list(SCRIPTS).index(name)
    cold, forked = ((end.codes[number], end.logs[number]) for end in (ended[False], ended[True]))
    assert forked == cold


def _without_addresses(ended: Any) -> Any:
    return replace(ended, logs=tuple(re.sub(r" at 0x[0-9a-f]+", "", log) for log in ended.logs))


def test_a_module_ends_the_same(run_ranks) -> None:
    source = SCRIPTS["exception"]
    cold = run_ranks("loopback", source, forked=False, command="python -m train")
    forked = run_ranks("loopback", source, forked=True, command="python -m train")
    assert forked == cold


UNKNOWN = [
    "python missing.py",
    "python .",
    "python -m missing",
    "python -m json.missing",
    "python2 train.py",
]


def test_what_cannot_be_run_says_the_same(run_ranks) -> None:
    cold = run_ranks("loopback", "print(1)", forked=False, commands=UNKNOWN)
    assert run_ranks("loopback", "print(1)", forked=True, commands=UNKNOWN) == cold


def test_files_that_are_not_closed_are_written(run_ranks, tmp_path) -> None:
    source = "file = open('written', 'w')\nfile.write('text')\n"
    assert run_ranks("loopback", source, forked=True).codes == (0,)
    assert (tmp_path / "code" / "written").read_text() == "text"


def test_ranks_have_different_random_numbers(run_ranks) -> None:
    source = "import random, numpy, torch\nprint(random.random(), numpy.random.rand(), torch.rand(1).item())\n"
    logs = run_ranks("loopback", source, forked=True, modules=("random", "numpy", "torch"), ranks=2).logs
    numbers = [number for log in logs for number in log.split()]
    assert len(set(numbers)) == 6


def test_the_modules_are_there_before_the_script(kind: str, run_ranks) -> None:
    source = "import sys\nprint(*(name in sys.modules for name in ('wave', 'allranks')))\n"
    assert run_ranks(kind, source, forked=True, modules=("missing_module", "wave")).logs == ("True False\n",)
    assert run_ranks(kind, source, forked=False).logs == ("False False\n",)
