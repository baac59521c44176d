"""What a person should know about a training, said once."""

from __future__ import annotations

import sys

from allranks.contract import report


def note(text: str) -> None:
    """Print one line to stderr, and keep it among the run's notes. Never raises for a full disk."""
    report.append(report.Note(text))
    print(f"allranks: {text}", file=sys.stderr, flush=True)
