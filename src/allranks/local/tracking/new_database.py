"""Create MLflow's database quickly."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def create(client: Callable[[str], Any], tracking_uri: str) -> None:
    """Create the database of a tracking URI, if it is a file that does not exist yet.

    client: creates the tables when it is called with a URI, as `MlflowClient`

    MLflow creates its tables by replaying the history of their definitions, in hundreds of transactions. Each waits for
    the disk, which takes seconds. Here, they are written to a file beside the database without waiting. The file is
    saved as a whole, and becomes the database in one step, so an interrupted creation leaves no incomplete database.
    """
    from sqlalchemy.engine import make_url

    url = make_url(tracking_uri)
    if url.get_backend_name() != "sqlite" or not url.database or os.path.exists(url.database):
        return
    database = Path(url.database)
    database.parent.mkdir(parents=True, exist_ok=True)
    unfinished = database.with_name(f"{database.name}.{os.getpid()}.new")
    try:
        with _not_waiting_for_the_disk():
            client(url.set(database=str(unfinished)).render_as_string(hide_password=False))
        with open(unfinished, "rb") as file:
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.link(unfinished, database)
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            Path(f"{unfinished}{suffix}").unlink(missing_ok=True)


@contextlib.contextmanager
def _not_waiting_for_the_disk() -> Iterator[None]:
    """Let SQLAlchemy's connections to SQLite be made with this setting inside of the block. Close them at its end."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    opened: list[Any] = []

    def connected(connection: Any, _: Any) -> None:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA journal_mode = MEMORY")
        opened.append(connection)

    event.listen(Engine, "connect", connected)
    try:
        yield
    finally:
        event.remove(Engine, "connect", connected)
        for connection in opened:
            connection.close()
