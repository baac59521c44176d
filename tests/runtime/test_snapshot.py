"""What Azure ML copies beside a component's code that includes this package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import allranks

PACKAGE = Path(allranks.__file__).parent

COMPONENT = f"""
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: train
version: "1"
code: ./code
additional_includes: [{PACKAGE}]
environment: azureml:any@latest
command: python train.py
"""


def test_only_the_training_process_s_part(tmp_path: Path) -> None:
    from azure.ai.ml import load_component

    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("import allranks.runtime; print(allranks.__file__)")
    (tmp_path / "component.yaml").write_text(COMPONENT)
    with load_component(tmp_path / "component.yaml")._build_code() as code:
        snapshot = Path(code.path)
        copied = {path.name for path in (snapshot / "allranks").iterdir()}
        assert copied == {"__init__.py", "errors.py", "py.typed", "contract", "hardware", "runtime"}
        assert not list(snapshot.rglob("__pycache__"))
        command = [sys.executable, "-B", "train.py"]
        ended = subprocess.run(command, cwd=snapshot, capture_output=True, text=True, timeout=120, check=False)
        assert ended.stdout.strip() == str(snapshot / "allranks" / "__init__.py"), ended
