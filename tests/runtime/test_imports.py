import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # each imports in a new process

HEAVY = {"azure", "mlflow", "typer", "rich", "pydantic", "yaml", "jinja2", "cattrs", "mldesigner"}
STACKS = {"torch", "numpy", "deepspeed", "horovod", "tensorflow", "lightning", "mpi4py"}


def loaded(code: str) -> set[str]:
    code += "; import sys; print(*{name.partition('.')[0] for name in sys.modules})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    return set(ended.stdout.split())


def test_the_runtime_brings_nothing_heavy() -> None:
    """It is copied beside a component's code, where only torch may be installed."""
    brought = loaded("from allranks.runtime import *")
    assert "torch" in brought
    assert not brought & (HEAVY | STACKS - {"torch", "numpy"})


def test_what_other_libraries_scripts_use_needs_no_torch() -> None:
    names = "Evicted, Metrics, TrainingSettings, arguments, lifecycle, note, prepare_libraries, stage"
    assert not loaded(f"from allranks.runtime import {names}") & (HEAVY | STACKS)


def test_the_package_has_what_it_names() -> None:
    import allranks.runtime

    assert all(getattr(allranks.runtime, name) for name in allranks.runtime.__all__)
    assert callable(allranks.runtime.main)
    assert not hasattr(allranks.runtime, "nothing")
