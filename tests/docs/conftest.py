"""Azure for the commands that talk to it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "azure"))

from fake.fixtures import azure, azure_server

__all__ = ["azure", "azure_server"]
