"""A per-node launcher that was forked has its workers forked, with what it gives them."""

from pathlib import Path

LAUNCHER = """
import os, subprocess, sys
work = [sys.executable, "-u", "work.py", "a b"]
sys.dont_write_bytecode = True


def run(*arguments, **settings):
    process = subprocess.Popen(arguments, **settings)
    output, errors = process.communicate()
    print(process.returncode, output, errors, flush=True)


text = {"stdout": subprocess.PIPE, "text": True}
run(*work, **text)
run(*work, start_new_session=True, **text)
run(sys.executable, "-m", "work", "é", **text)
run(*work, stderr=subprocess.STDOUT, **text)
run(sys.executable, "code/work.py", stdin=subprocess.PIPE, cwd="..", **text)
run(*work, env={**os.environ, "MARK": "1", "OMP_NUM_THREADS": "7"}, **text)
run(*work, env={**os.environ, "MARK": "2"}, **text)
run("/bin/echo", "echo", **text)
run(sys.executable, "-c", "print('text')", **text)
run(sys.executable, "missing.py", stderr=subprocess.DEVNULL, **text)
run(*work, env={**os.environ, "FAIL": "1"}, stderr=subprocess.PIPE, **text)
killed = subprocess.Popen(work, env={**os.environ, "WAIT": "1"}, stdout=subprocess.PIPE, stdin=subprocess.PIPE)
killed.stdout.readline()
killed.terminate()
print(killed.wait(), killed.poll())
print(subprocess.run(work, stdout=subprocess.DEVNULL).returncode)
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    pass
sys.exit(5)
"""

WORK = """
import os, sys
print(sys.argv, sys.orig_argv[1:], os.path.basename(sys.path[0]), os.path.basename(os.getcwd()), sys.stdin.fileno())
print("preloaded:", "wave" in sys.modules)
print(os.environ.get("MARK"), os.environ["OMP_NUM_THREADS"], sorted(os.listdir("/proc/self/fd"))[:3], __name__)
print(sys.executable, sys.orig_argv[0])
if "WAIT" in os.environ:
    sys.stdin.read()
if "FAIL" in os.environ:
    1 / 0
"""


def _run(run_ranks, folder: Path, kind: str, *, forked: bool, launcher: str = LAUNCHER, **settings):
    (folder / "code").mkdir(exist_ok=True)
    (folder / "code" / "torchrun").write_text(launcher, encoding="utf-8")
    (folder / "code" / "work.py").write_text(WORK, encoding="utf-8")
    modules = ("json", "wave", "talking")
    return run_ranks(kind, "", forked=forked, command="python torchrun", modules=modules, **settings)


def test_what_imports_print_is_in_the_log_once_for_each_worker(run_ranks, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "talking.py").write_text("print('hello', flush=True)\n", encoding="utf-8")
    launcher = "import subprocess, sys\nfor _ in range(2):\n    subprocess.run([sys.executable, '-u', 'talk.py'])\n"
    (tmp_path / "code" / "talk.py").write_text("import talking\n", encoding="utf-8")
    settings = {"launcher": launcher, "shared": {"PYTHONPATH": str(tmp_path / "code")}}
    cold = _run(run_ranks, tmp_path, "loopback", forked=False, **settings)
    assert cold.logs == ("hello\n" * 2,)
    assert _run(run_ranks, tmp_path, "loopback", forked=True, **settings) == cold


def test_workers_are_the_same(kind: str, run_ranks, tmp_path: Path) -> None:
    cold = _run(run_ranks, tmp_path, kind, forked=False)
    forked = _run(run_ranks, tmp_path, kind, forked=True)
    assert cold.codes == forked.codes == (5,)
    assert "preloaded: True" in forked.logs[0]
    assert "preloaded: True" not in cold.logs[0]
    assert forked.logs[0].replace("preloaded: True", "preloaded: False") == cold.logs[0]
