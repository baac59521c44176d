"""What azure-ai-ml says of a compiled pipeline."""

from typing import Any


def complaints(job: Any) -> dict[str, str]:
    """Return the SDK's complaints by key, with a cluster for the steps that name none, as `submit --compute` gives."""
    if not job.settings.default_compute:
        job.settings.default_compute = "cpu-cluster"
    return dict(job._validate().error_messages)
