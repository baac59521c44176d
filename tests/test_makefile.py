"""The Makefile installs what it is asked for, and nothing twice. Scripts that record calls replace its programs."""

import os
import pty
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

ROOT = Path(__file__).parents[1]

PIP = """\
#!/bin/sh
if [ "$1" = config ]; then
    cat settings
else
    echo "$@" >> calls
fi
"""
SETTINGS = r"""
:env:.find-links='/wheels /more'
global.extra-index-url='\nhttp://one/simple\nhttp://two/simple'
global.find-links='/other'
"""
UV = """\
#!/bin/sh
echo "uv $@ $UV_FIND_LINKS $UV_INDEX" >> calls
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project for `make demo`, on a machine without a driver and without PyTorch's index."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "install", tmp_path / "install")
    bin_ = tmp_path / ".venv/bin"
    bin_.mkdir(parents=True)
    (bin_ / "python").symlink_to(sys.executable)
    for path, text in ((bin_ / "pip", PIP), (bin_ / "allranks", PIP), (tmp_path / "uv", UV)):
        path.write_text(text)
        path.chmod(0o755)
    (tmp_path / "settings").write_text(SETTINGS)
    return tmp_path


def make_demo(project: Path, *arguments: str, stdout: int = subprocess.PIPE, **variables: str | None) -> str:
    environment = {"PATH": os.environ["PATH"], "UV": "", "NVIDIA_DRIVER": "driver", "CPU_INDEX": "http://127.0.0.1:1"}
    environment = {name: value for name, value in {**environment, **variables}.items() if value is not None}
    command = ["make", "--silent", "demo", *arguments]
    done = subprocess.run(command, cwd=project, env=environment, stdout=stdout, text=True, check=True, timeout=60)
    return done.stdout or ""


def calls(project: Path, *arguments: str, **variables: str | None) -> list[str]:
    """Return what `make demo` called."""
    recorded = project / "calls"
    recorded.unlink(missing_ok=True)
    make_demo(project, *arguments, **variables)
    return recorded.read_text().splitlines()


RUN = "run pipelines/image_classification.py"
EDITABLE = "install --quiet --editable .[images]"


def test_another_torch_replaces_the_first_one(project: Path) -> None:
    first = calls(project)
    assert [first[0].startswith("install --quiet torch=="), *first[1:]] == [True, EDITABLE, RUN]
    assert calls(project) == [RUN], "nothing is installed twice"
    assert calls(project, "TORCH=torch") == ["install --quiet --force-reinstall torch", RUN]
    assert calls(project, "TORCH=torch") == [RUN]


@contextmanager
def index(folder: Path, answer: str) -> Iterator[str]:
    """Serve a package index: one with torch, one without, or one that accepts connections and does not answer."""
    if answer == "nothing":
        with socket.create_server(("127.0.0.1", 0)) as silent:
            yield f"http://127.0.0.1:{silent.getsockname()[1]}"
        return
    (folder / "index" / answer).mkdir(parents=True)
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder / "index"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "driver", "torch", "from_index", "said"),
    [
        ("torch", False, None, True, "for the CPU (this machine has no NVIDIA driver; "),
        ("another", False, None, False, "is not available; "),
        ("nothing", False, None, False, "is not available; "),
        ("torch", True, None, False, "for CUDA (driver exists; "),
        ("torch", False, "torch>=2", False, "Installing torch>=2 with pip"),
    ],
)
def test_the_build_of_torch(
    answer: str, driver: bool, torch: str | None, from_index: bool, said: str, project: Path
) -> None:
    if driver:
        (project / "driver").touch()
    with index(project, answer) as url:
        output = make_demo(project, *([f"TORCH={torch}"] if torch else []), CPU_INDEX=url)
        installed = (project / "calls").read_text().splitlines()[0]
    assert (f" --extra-index-url {url} " in installed) == from_index
    assert installed.split()[-1].startswith(torch or "torch==")
    assert said in output


def test_uv_installs_with_the_settings_of_pip(project: Path) -> None:
    on_path = {"UV": None, "PATH": f"{project}:{os.environ['PATH']}"}
    settings = "/wheels,/more http://one/simple http://two/simple"
    uv = "uv pip install --python .venv/bin/python --quiet"
    assert calls(project, "TORCH=torch", **on_path) == [
        f"{uv} torch {settings}",
        f"{uv} --editable .[images] {settings}",
        RUN,
    ]
    first, _ = calls(project, "TORCH=torch>=2", UV_INDEX="http://mine", UV_FIND_LINKS="", **on_path)
    assert first == f"{uv} --force-reinstall torch>=2  http://mine", "settings of uv win"


def test_progress_is_shown_on_a_terminal(project: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        make_demo(project, stdout=theirs)
    finally:
        os.close(theirs)
        os.close(ours)
    first, second, _ = (project / "calls").read_text().splitlines()
    assert "--quiet" not in first + second


@pytest.mark.parametrize(
    ("npm", "said"), [(None, "npm is not here"), ("exit 1", "packages of the studio's pages could not be installed")]
)
def test_a_clone_without_npm_or_a_registry_says_so_and_goes_on(npm: str | None, said: str, tmp_path: Path) -> None:
    if npm is not None:
        (tmp_path / "npm").write_text(f"#!/bin/sh\n{npm}\n")
        (tmp_path / "npm").chmod(0o755)
    words = ["/bin/sh", ROOT / "install/studio.sh", tmp_path]
    done = subprocess.run(words, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True, timeout=60)
    assert said in done.stdout
