"""Public pipelines in YAML, and in notebooks, whose code stands in a Python file here."""

from collections import Counter
from pathlib import Path

import pytest
from edit_sequences import EXAMPLES, opened_copy, public_pipelines

from allranks_studio.documents.canvas import Graph
from allranks_studio.documents.reading import Reader

pytestmark = [
    pytest.mark.recipe,
    pytest.mark.skipif(not EXAMPLES, reason="ALLRANKS_EXAMPLES: no checkout of Azure/azureml-examples"),
]


def test_each_opens_with_few_locked_steps_and_is_saved_unchanged(tmp_path: Path) -> None:
    reader, unread = Reader(), dict[str, str]()
    counts, opened = Counter[tuple[str, str]](), Counter[str]()
    for number, name in enumerate(public_pipelines()):
        document = opened_copy(Path(EXAMPLES), name, tmp_path / str(number), reader)
        file = document.folder / document.path
        before, state = file.stat(), document.state()
        document.write(document.digest, state["text"])
        assert (file.stat().st_mtime_ns, file.read_bytes()) == (before.st_mtime_ns, state["text"].encode())
        language = state["language"]
        if document.graph is None:
            unread[name] = "; ".join(finding["found"] for finding in state["findings"])[:200]
        else:
            opened[language] += 1
            counts.update((language, each) for each in locks(document.graph))
    reader.close()
    steps = Counter(language for language, _ in counts.elements())
    print(f"opened {dict(opened)}, {dict(steps)} steps")
    for (language, reason), count in sorted(counts.items()):
        print(f"{language:7} {reason:12} {count:5} {count / steps[language]:6.1%}")
    print("not read:", *(f"{name}: {found}" for name, found in unread.items()), sep="\n  ")
    assert sum(count for (_, reason), count in counts.items() if reason) <= 0.1 * sum(steps.values())


def locks(graph: Graph) -> list[str]:
    """Return the reason of the lock of each step that is in the file, "" for none."""
    found: list[str] = []
    for node in graph.nodes:
        found.append(node.lock.reason if node.lock is not None else "")
        if node.graph is not None and node.lock is None and any(each.first for each in node.graph.nodes):
            found += locks(node.graph)
    return found
