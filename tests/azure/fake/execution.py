"""Runs submitted jobs with the local engine, from their REST bodies alone. (First: every job stays queued.)"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fake.jobs import Job
    from fake.service import FakeAzure


class Execution:
    def __init__(self, azure: FakeAzure) -> None:
        self._azure = azure

    def start(self, job: Job) -> None:
        """Begins to run a job, when those before it have ended."""

    def cancel(self, job: Job) -> None:
        job.move("Canceled")

    def refresh(self, job: Job) -> None:
        """Takes over what is new."""

    def close(self) -> None:
        """Ends what still runs."""
