from __future__ import annotations

import subprocess
import sys


def test_the_runtime_brings_nothing_heavy() -> None:
    """It is copied beside a component's code, where only torch may be installed."""
    code = "import allranks.runtime, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    loaded = set(ended.stdout.split())
    assert "torch" in loaded
    assert not loaded & {"azure", "mlflow", "typer", "rich", "pydantic", "yaml", "jinja2", "cattrs", "mldesigner"}
