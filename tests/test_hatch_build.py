"""The description of a release, which hatch_build.py makes from the README."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("link", "absolute"),
    [
        ("[`a` [b]](docs/a.md#part)", "[`a` [b]](https://host/us/blob/v1.0/docs/a.md#part)"),
        ("[limits](#limits)", "[limits](https://host/us/blob/v1.0/README.md#limits)"),
        ("![A run](docs/pictures/run.svg)", "![A run](https://host/us/raw/v1.0/docs/pictures/run.svg)"),
        ("[page](https://other/page)", "[page](https://other/page)"),
    ],
)
def test_links_lead_to_the_repository_that_the_project_names(link: str, absolute: str, tmp_path: Path) -> None:
    spec = spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "README.md").write_text(f"See {link}.")
    made = {"version": "1.0", "urls": {"Source": "https://host/us"}}
    module.Description(str(tmp_path), {}).update(made)
    assert made["readme"] == {"content-type": "text/markdown", "text": f"See {absolute}."}
