"""Runs that do not exist, damaged databases, workspaces of other users, and streams that are closed."""

import os
import sqlite3
from pathlib import Path

from bad_inputs.row import Make, Row, job

DATABASE = ".allranks/allranks.db"
JOB = {"job.yml": job()}


def _state(command: str, *said: str, make: Make | None = None, code: int = 2, **keys: object) -> Row:
    return Row(command, said, code, JOB, make, runs=True, **keys)  # type: ignore[arg-type]


def _write(name: str, content: bytes) -> Make:
    return lambda folder: (folder / name).write_bytes(content)


def _flip(folder: Path) -> None:
    """Changes the bytes of every page after the first, which holds the schema."""
    path = folder / DATABASE
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (page,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    content = path.read_bytes()
    path.write_bytes(content[:page] + bytes(byte ^ 0xFF for byte in content[page:]))


def _flip_records(folder: Path) -> None:
    """Changes what the rows hold, in a file that SQLite can read."""
    connection = sqlite3.connect(folder / DATABASE, isolation_level=None)
    connection.execute("UPDATE run SET record = replace(record, '{', '['), plan = replace(plan, '{', '[')")
    connection.execute("UPDATE node SET record = replace(record, '\"', 'x')")
    connection.close()


def _truncate(folder: Path) -> None:
    os.truncate(folder / DATABASE, 5000)


def _later(folder: Path) -> None:
    connection = sqlite3.connect(folder / DATABASE)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def _folder(name: str) -> Make:
    def make(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()

    return make


def _closed(name: str, mode: int = 0o700) -> Make:
    """Takes the permissions of others away."""
    return lambda folder: (folder / name).chmod(mode)


def _open_workspace(folder: Path) -> None:
    """Lets everybody use a workspace, but for the lock of its runs."""
    for parent, folders, files in os.walk(folder / ".allranks"):
        for name in folders:
            os.chmod(os.path.join(parent, name), 0o777)
        for name in files:
            os.chmod(os.path.join(parent, name), 0o600 if name == "engine.lock" else 0o666)
    (folder / ".allranks").chmod(0o777)


ROWS = {
    "no workspace": Row("show latest", ("run latest", "there is no workspace", "--folder DIR")),
    "no such run": _state("show zzzz", "run zzzz", "no such run", "allranks runs"),
    "a run with a control character": _state("show a\x1b[31mb", "no such run"),
    "no such step": _state("show bad trian", "trian", "fail"),
    "a step path of brackets": _state("show bad fail[1", "fail[1"),
    "a run that is complete": _state("resume good", "is complete", "allranks rerun"),
    "a run to cancel that is over": _state("cancel bad", "it is Failed", "a run that has not ended"),
    "a step to cancel of a run that is over": _state("cancel bad fail", "it is Failed"),
    "no terminal to ask": _state("clean --older-than 0d", "there is no terminal to ask", "--yes", prints=True),
    "a workspace file": Row(
        "runs",
        (".allranks", "it cannot become a workspace: Not a directory", "--folder DIR"),
        files={".allranks": "hello"},
    ),
    **{
        f"{command} with pages that are damaged": _state(
            command, "allranks.db", "database disk image is malformed", "--folder DIR", make=_flip
        )
        for command in ("runs", "run job.yml")
    },
    "records that are damaged": _state(
        "show latest", "allranks.db", "not a store that can be used", "--folder DIR", make=_flip_records
    ),
    "a database that was cut off": _state("runs", "allranks.db", "not a store that can be used", make=_truncate),
    "a database of text": _state("runs", "allranks.db", "file is not a database", make=_write(DATABASE, b"hello" * 99)),
    "a database of a later version": _state("runs", "allranks.db", "version 99", make=_later),
    "a database that is a folder": _state(
        "runs", "allranks.db", "unable to open database file", make=_folder(DATABASE)
    ),
    "another user's workspace": _state(
        "runs",
        ".allranks",
        "this user may not read or enter it",
        "belongs to root",
        "--folder DIR",
        make=_closed(".allranks"),
        other=True,
    ),
    "another user's database": _state(
        "show latest",
        "allranks.db",
        "this user may not read it",
        "belongs to root",
        make=_closed(".allranks", 0o755),
        other=True,
    ),
    "another user's database to run in": _state("run job.yml", "this user may not", "belongs to root", other=True),
    "another user's lock": _state(
        "resume bad",
        "engine.lock",
        "this user may not read or write it",
        "belongs to root",
        make=_open_workspace,
        other=True,
    ),
    "another user's folder": _state(
        "run job.yml --folder mine",
        "mine",
        "it cannot become a workspace: Permission denied",
        "--folder DIR",
        make=lambda folder: (folder / "mine").mkdir(mode=0o755),
        other=True,
    ),
    "another user's closed folder": Row(
        "run closed/job.yml",
        ("closed/job.yml", "Permission denied"),
        files={"closed/job.yml": job()},
        make=_closed("closed"),
        other=True,
    ),
    "another user's file": Row(
        "run job.yml",
        ("job.yml", "cannot be read", "Permission denied"),
        files=JOB,
        make=_closed("job.yml", 0o600),
        other=True,
    ),
    "another user's folder in the code": Row(
        "run job.yml",
        ("code/own", "cannot be read: Permission denied", ".amlignore"),
        files={"job.yml": job(code="./code"), "code/own/main.py": ""},
        make=_closed("code/own"),
        other=True,
    ),
    "another user's data": Row(
        "run job.yml",
        ("data.csv cannot be read: permission denied", "data that you may read"),
        files={
            "job.yml": job(command="cat ${{inputs.a}}", inputs={"a": {"type": "uri_file", "path": "data.csv"}}),
            "data.csv": "",
        },
        make=_closed("data.csv", 0o600),
        other=True,
    ),
    "a closed standard output": _state("runs", code=0, closed=(1,)),
    "a closed standard error": _state("show zzzz", closed=(2,)),
    "every stream closed": _state("show latest", code=0, closed=(0, 1, 2)),
}
