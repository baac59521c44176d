"""Random sequences of edits: the text means what was intended, keeps the rest, and returns to its first byte.

Most sequences compare the text's outline with the intended graph, which takes milliseconds. Some are written as one
group of edits, which azure-ai-ml reads.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from edit_sequences import CachedReader, Named, Outlined, Written, an_edit, overlay, pick
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from allranks.catalog import shipped_specs
from allranks_studio.documents.canvas import Graph, Node
from allranks_studio.documents.document import Document

ROOT = Path(__file__).parents[4]
HERE = "packages/allranks-studio/tests/documents/pipelines"
COMPONENTS = (
    "prepare_images",
    "train_image_classifier",
    "evaluate_image_classifier",
    "register_model",
    "prepare_table",
)
NAMES = ("image_classification", "train_until_good", "tune_image_classifier", "own_script", "score_images")
SOME = (f"{HERE}/blocks.yml", f"{HERE}/flow.yml", *(f"pipelines/{name}.py" for name in NAMES))
ALL = (*SOME[:2], *(f"pipelines/{file.name}" for file in sorted((ROOT / "pipelines").glob("*.py"))))
EXAMPLES = os.environ.get("ALLRANKS_EXAMPLES", "")


class Project:
    """Copies of pipelines that are read as if they were where they are. Its readings are those of one reader."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.reader = folder, CachedReader()
        self.items: Named[Node] = Named()
        self.files: Named[tuple[Path, str, str, Graph]] = Named()
        self.unread: dict[str, str] = {}
        steps = "".join(f"  {name}: {{component: {shipped_specs()[name]}}}\n" for name in COMPONENTS)
        (folder / "items.yml").write_text(f"type: pipeline\njobs:\n{steps}")
        graph = Document.open(folder, "items.yml", self.reader).graph
        assert graph is not None
        self.items.update({f"library:{node.name}": node for node in graph.nodes})

    def add(self, root: Path, name: str) -> Document | None:
        """Add a file of a folder, and return its document; None if it contains no pipeline."""
        folder = overlay(root, name, self.folder / str(len(self.files) + len(self.unread)))
        if name.endswith("flow.yml"):
            (folder / name).write_bytes((root / name).read_bytes().replace(b"\n", b"\r\n"))
        document = Document.open(folder, name, self.reader)
        state = document.state()
        if document.graph is None:
            self.unread[name] = "; ".join(finding["found"] for finding in state["findings"])
            return None
        self.files[name] = folder, name, state["text"], document.graph
        return document

    def outlined(self, data: st.DataObject) -> tuple[Outlined, Path, str]:
        """Make random edits of a random file."""
        folder, name, text, graph = self.files[pick(data.draw, sorted(self.files))]
        outlined = Outlined(folder / name, text, graph, self.items)
        for _ in range(data.draw(st.integers(1, 6))):
            outlined.edit(an_edit(data.draw, outlined.graph, self.items))
        return outlined, folder, name

    def written(self, data: st.DataObject) -> str:
        outlined, folder, name = self.outlined(data)
        refused = Written(folder, name, self.reader).edit(outlined.done)
        return "nothing to write" if not outlined.done else (re.sub(r"\W.*", "", refused) and "refused") or "written"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project(tmp_path_factory.mktemp("project"))
    for name in SOME:
        assert project.add(ROOT, name), project.unread
    yield project
    project.reader.close()


QUICK = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


@settings(QUICK, max_examples=290, phases=[Phase.generate])
@given(data=st.data())
def test_the_outline_after_edits_is_the_intended_one(data: st.DataObject, project: Project) -> None:
    project.outlined(data)


@settings(QUICK, max_examples=10, phases=[Phase.generate])
@given(data=st.data())
def test_what_is_read_after_edits_is_the_intended_graph(data: st.DataObject, project: Project) -> None:
    project.written(data)


@pytest.mark.recipe
def test_2000_sequences_are_read(tmp_path: Path) -> None:
    """All pipelines of this repository, and public ones in Python and YAML. About half an hour."""
    project, outcomes = Project(tmp_path), Counter[str]()
    for name in (*ALL, "template/pipelines/two_spirals.py"):
        assert project.add(ROOT, name), project.unread
    for name in public_pipelines(tmp_path):
        project.add(tmp_path / "public" if name.startswith("notebooks/") else Path(EXAMPLES), name)

    @settings(QUICK, max_examples=2000, derandomize=False, phases=[Phase.generate])
    @given(data=st.data())
    def sequences(data: st.DataObject) -> None:
        outcomes[project.written(data)] += 1

    sequences()
    project.reader.close()
    print(len(project.files), "files:", dict(outcomes))
    assert outcomes["written"] > 1000


def public_pipelines(folder: Path) -> Iterator[str]:
    """Yield the public pipelines, relative to the checkout; notebooks as Python files in `folder`/public."""
    examples = Path(EXAMPLES)
    for file in sorted(examples.rglob("*.y*ml")) if EXAMPLES else ():
        if re.search(r"^type: *[\"']?pipeline", file.read_text(errors="replace"), re.MULTILINE):
            yield str(file.relative_to(examples))
