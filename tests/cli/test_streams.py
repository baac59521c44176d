"""Terminals and pipes: closed streams, readers that go away, encodings that lack characters."""

import contextlib
import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import bounded
from allranks.cli.console import console
from allranks_command import PATIENCE, allranks, environment, words, write_job

BROKEN = """
import os, sys
from allranks.cli import streams
streams.prepare()
reader, writer = os.pipe()
os.dup2(writer, 1)
os.close(reader)
os.close(writer)
with streams.unbroken():
    for _ in range(3):
        print("x" * 100_000, flush=True)
    sys.stdout.buffer.write(b"y")
print("z", flush=True)
print("still there", file=sys.stderr)
"""
CLOSED = """
import os, sys
from allranks.cli import streams
streams.prepare()
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
print("printed")
print("an error", file=sys.stderr)
sys.stdin.read()
sys.stdout.flush()
os.write(file, b"written")
"""


def _python(script: str, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True, **options)  # type: ignore[call-overload,no-any-return]


def test_a_console_without_unicode_draws_tables_and_trees_in_ascii() -> None:
    from rich.table import Table
    from rich.tree import Tree

    output = io.BytesIO()
    out = console(io.TextIOWrapper(output, encoding="ascii"))
    table = Table("a", "b")
    table.add_row("✗", "│")
    tree = Tree("root")
    tree.add("leaf")
    out.print(table)
    out.print(tree)
    out.file.flush()
    assert output.getvalue().isascii()


def test_output_continues_into_nothing_when_the_reader_has_gone() -> None:
    assert _python(BROKEN).stderr == "still there\n"


def test_closed_streams_do_not_give_their_numbers_to_files(tmp_path: Path) -> None:
    file = tmp_path / "file"
    command = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", CLOSED, str(file)]
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=True)
    assert file.read_bytes() == b"written"


def test_a_run_continues_when_the_reader_of_its_output_has_gone(tmp_path: Path) -> None:
    job = write_job(tmp_path, "echo ${{outputs.done}}; sleep 0.3; exit 3", outputs={"done": {"type": "uri_folder"}})
    pipe = " ".join(words("run", job.name, "--instances", "loopback", "--no-track"))
    done = subprocess.run(
        ["bash", "-c", f"{pipe} | head -1; echo ${{PIPESTATUS[0]}}"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    first, code = done.stdout.splitlines()
    assert "run " in first
    assert (code, done.stderr) == ("1", "")
    shown = allranks("show", "latest", "--json", folder=tmp_path).json
    assert shown["status"] == "Failed"
    assert shown["steps"][0]["verdict"]["exit_code"] == 3


def test_a_dumb_terminal(tmp_path: Path) -> None:
    job = write_job(tmp_path, "true")
    terminal, own = pty.openpty()
    command = words("run", job.name, "--instances", "loopback", "--no-track")
    with bounded.Popen(command, cwd=tmp_path, env=environment(TERM="dumb"), stdin=own, stdout=own, stderr=own) as run:
        os.close(own)
        text = b""
        with contextlib.suppress(OSError):  # at the end, the other side is closed
            while chunk := os.read(terminal, 1 << 16):
                text += chunk
    os.close(terminal)
    assert run.returncode == 0
    assert b"completed in" in text
    assert b"\x1b" not in text
