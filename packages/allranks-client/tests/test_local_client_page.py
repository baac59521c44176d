"""The script in docs/how-to/local-client.md runs as the page says."""

from pathlib import Path

import pytest

from allranks.project.files import create, template
from allranks_command import allranks
from documents import FENCE

PAGE = Path(__file__).resolve().parents[3] / "docs/how-to/local-client.md"


@pytest.mark.recipe
def test_the_script(tmp_path: Path) -> None:
    create(tmp_path, template())
    blocks = FENCE.findall(PAGE.read_text(encoding="utf-8"))
    script = next(code for language, code in blocks if language == "python")
    line = next(code for language, code in blocks if language == "console").strip()
    (tmp_path / "submit.py").write_text(script)
    words = line.removeprefix("$ allranks ").split()
    done = allranks(*words, folder=tmp_path)
    assert done.code == 0, done.err
    assert "COMPLETED" in done.out.splitlines()[-1].upper()
    assert done.out.count("Execution Summary") == 2
    assert any((tmp_path / "downloaded/named-outputs/report").rglob("*"))
