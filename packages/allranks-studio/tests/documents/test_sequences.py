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
from edit_sequences import (
    EXAMPLES,
    CachedReader,
    Draw,
    Named,
    Outlined,
    Written,
    an_edit,
    opened_copy,
    pick,
    public_pipelines,
)
from hypothesis import HealthCheck, Phase, given, seed, settings
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
NAMES = ("image_classification", "train_until_good", "tune_image_classifier")
SOME = (f"{HERE}/blocks.yml", f"{HERE}/flow.yml", *(f"pipelines/{name}.py" for name in NAMES))
ALL = (*SOME[:2], *(f"pipelines/{file.name}" for file in sorted((ROOT / "pipelines").glob("*.py"))))
SEQUENCES, SEED = int(os.environ.get("SEQUENCES", "2000")), int(os.environ.get("SEED", "53"))


class Project:
    """Copies of pipelines that are read as if they were where they are. Its readings are those of one reader."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.reader = folder, CachedReader()
        self.items: Named[Node] = Named()
        self.files: Named[tuple[Path, str, str, Graph]] = Named()
        self.unread: dict[str, str] = {}
        steps = "".join(f"  {name}: {{component: {shipped_specs()[name]}}}\n" for name in COMPONENTS)
        (folder / "items.yml").write_text(f"type: pipeline\njobs:\n{steps}")
        graph = Document(folder, "items.yml", self.reader).graph
        assert graph is not None
        self.items.update({f"library:{node.name}": node for node in graph.nodes})

    def add(self, root: Path, name: str) -> Document | None:
        """Add a file of a folder, and return its document; None if it contains no pipeline."""
        document = opened_copy(root, name, self.folder / str(len(self.files) + len(self.unread)), self.reader)
        state = document.state()
        if document.graph is None:
            self.unread[name] = "; ".join(finding["found"] for finding in state["findings"])
            return None
        self.files[name] = document.folder, document.path, state["text"], document.graph
        return document

    def outlined(self, draw: Draw, most: int) -> tuple[Outlined, Path, str]:
        """Make random edits of a random file."""
        folder, name, text, graph = self.files[pick(draw, sorted(self.files))]
        outlined = Outlined(folder / name, text, graph, self.items)
        for _ in range(draw(st.integers(1, most))):
            outlined.edit(an_edit(draw, outlined.graph, self.items))
        return outlined, folder, name

    def written(self, draw: Draw) -> str:
        """Make random edits of a random file as a document, and return what became of them."""
        outlined, folder, name = self.outlined(draw, 2)
        if not outlined.done:
            return "impossible"
        refused = Written(folder, name, self.reader).edit(outlined.done)
        return re.sub(r"[/'\"\d].*", "", refused.partition("\n")[0].partition(": ")[2] or refused) or "written"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project(tmp_path_factory.mktemp("project"))
    for name in SOME:
        assert project.add(ROOT, name), project.unread
    yield project
    project.reader.close()


QUICK = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


@settings(QUICK, max_examples=294, phases=[Phase.generate])
@given(data=st.data())
def test_the_outline_after_edits_is_the_intended_one(data: st.DataObject, project: Project) -> None:
    project.outlined(data.draw, 3)


@settings(QUICK, max_examples=6, phases=[Phase.generate])
@given(data=st.data())
def test_what_is_read_after_edits_is_the_intended_graph(data: st.DataObject, project: Project) -> None:
    project.written(data.draw)


@pytest.mark.recipe
@pytest.mark.timeout(3 * 3600)
def test_2000_sequences_are_read(tmp_path: Path) -> None:
    """All pipelines of this repository, and public ones in Python and YAML. About half an hour."""
    project, outcomes = Project(tmp_path), Counter[str]()
    for name in (*ALL, "template/pipelines/two_spirals.py"):
        assert project.add(ROOT, name), project.unread
    for name in public_pipelines():
        project.add(Path(EXAMPLES), name)

    failures: list[str] = []

    @settings(QUICK, max_examples=SEQUENCES, derandomize=False, phases=[Phase.generate])
    @seed(SEED)
    @given(data=st.data())
    def sequences(data: st.DataObject) -> None:
        try:
            outcomes[project.written(data.draw)] += 1
        except Exception as error:
            failures.append(f"{type(error).__name__}: {str(error)[:2000]}")

    sequences()
    project.reader.close()
    print(f"seed {SEED}, {len(project.files)} files, {dict(outcomes.most_common(30))}", *failures, sep="\n")
    assert not failures
    assert outcomes["written"] > SEQUENCES / 2
