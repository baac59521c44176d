"""The skeleton of allranks.yaml."""

import re
from pathlib import Path

from allranks.plan.assets import mapping_file
from allranks.plan.assets.asset_id import parse
from allranks.plan.assets.lookup import Use, line_for, skeleton

REGISTRY = "azureml://registries/azureml/components"


def use(text: str, kind: str, where: str, path: Path | None = None) -> Use:
    asset = parse(text, kind)
    return Use(asset, where, line_for(asset), path)


USES = (
    use("azureml:titanic:1", "data", "step a, key inputs.x"),
    use("azureml:train:3", "component", "step a, key component"),
    use("azureml:train:3", "component", "step b, key component"),
    use("azureml:found:3", "component", "step c, key component", Path("/found.yaml")),
    use("https://a/b#c", "data", "step a, key inputs.y"),
)

NEW = """\
# Paths on this machine for the names in pipelines. Paths are relative to this file.
# Remove the # in front of a line, and write the path.

components:  # a component's YAML file, or a folder of such files
  # step a, key component
  # step b, key component
  # train:3: path/to/component.yaml

data:  # a file or folder
  # step a, key inputs.x
  # titanic:1: path/to/data
  # step a, key inputs.y
  # https://a/b#c: path/to/data
"""


def test_each_missing_line_with_the_places_that_need_it() -> None:
    assert skeleton(USES) == NEW
    assert skeleton(USES[3:4]) == ""


def test_several_components_of_a_registry_may_be_in_one_folder() -> None:
    uses = [use(f"{REGISTRY}/{name}/labels/latest", "component", f"step {name}") for name in ("a", "b")]
    lines = [line.removeprefix("  # ") for line in skeleton(uses).splitlines() if "path/to" in line]
    assert lines == [
        "registries/azureml/components/a/labels/latest: path/to/component.yaml",
        "registries/azureml/components/b/labels/latest: path/to/component.yaml",
        "registries/azureml/components/*: path/to/specs",
    ]


def test_the_lines_hold_when_the_mark_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "allranks.yaml"
    path.write_text(re.sub(r"# (\S+: path/)", r"\1", NEW))
    keys = [entry.key for entries in mapping_file.read(path).entries.values() for entry in entries]
    assert keys == ["train:3", "titanic:1", "https://a/b#c"]
