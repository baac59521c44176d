"""The training of tests/runtime/scripts/elastic.py, whose last instance of four leaves after step 90."""

import os
import signal
import sys
from typing import Any

sys.path.insert(0, sys.argv[1])
del sys.argv[1]
import elastic  # noqa: E402

from allranks import runtime  # noqa: E402


class Checkpoints(runtime.Checkpoints):
    def save_if_due(self, step: int, **options: Any) -> None:
        super().save_if_due(step, **options)
        if step == 90 and self._ranks.rank == 3:
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)


runtime.Checkpoints = Checkpoints  # type: ignore[misc]
runtime.main(elastic.train, timeout_seconds=60)
