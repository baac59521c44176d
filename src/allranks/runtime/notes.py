"""Notes about a training for its user."""

import sys

from allranks.contract import report


def note(text: str) -> None:
    """Print one line to stderr and add it to the run's notes. A full disk is ignored."""
    report.append(report.Note(text))
    print(f"allranks: {text}", file=sys.stderr, flush=True)
