"""Edits of a pipeline in YAML as patches, which follow the style of the file."""

import difflib
from pathlib import Path

import pytest

from allranks.errors import InputError
from allranks_studio.documents import edits
from allranks_studio.documents.canvas import Graph, InputPort, Layout, Node, OutputPort, Port
from allranks_studio.documents.edits import Edit, FromInput, FromOutput, Literal, Value
from allranks_studio.documents.placing import placed
from allranks_studio.documents.yaml import Yaml

TEXT = """\
# A pipeline.
type: pipeline
settings:
    default_compute: azureml:cpu   # the small one

inputs:
    lr: 0.1        # learning rate
    images:
        type: uri_folder
        path: ./images  # ours

outputs:
    model:
        type: uri_folder

jobs:
    # first
    prepare:
        component: ./make/component.yaml
        inputs:
            data: ${{parent.inputs.images}}
        outputs:
            model:     # empty
    train:   # the one
        component: ./make/component.yaml
        inputs: {data: "${{parent.jobs.prepare.outputs.model}}", rate: 0.5}
        outputs:
            model: ${{parent.outputs.model}}
        # ${{parent.jobs.prepare.outputs.model}}
    score:
        component: file:./make/component.yaml
        inputs:
            data: # from training
                path: ${{parent.jobs.train.outputs.model}}
                mode: download
            rate: ${{parent.inputs.lr}}
"""


def step(name: str) -> Node:
    return Node(
        name,
        name,
        "command",
        inputs=(InputPort("data", "uri_folder"), InputPort("rate", "number")),
        outputs=(Port("model", "uri_folder"), Port("score", "number")),
        layout=Layout("pytorch", Literal(1), Literal(2)),
    )


GRAPH = Graph(
    inputs=(InputPort("lr", "number"), InputPort("images", "uri_folder")),
    outputs=(OutputPort("model", "uri_folder", FromOutput("train", "model")),),
    nodes=tuple(map(step, ("prepare", "train", "score"))),
)


def edited(text: str, edit: Edit, folder: Path = Path("/project")) -> str:
    graph = placed(GRAPH, Yaml().outline(text))
    return Yaml().edited(text, edit, graph, folder / "pipeline.yml")


def changed(text: str, edit: Edit, folder: Path = Path("/project")) -> str:
    """Return the lines that an edit deletes (-) and inserts (+)."""
    after = edited(text, edit, folder)
    Yaml().outline(after)
    windows = text.replace("\n", "\r\n")
    assert edited(windows, edit, folder) == after.replace("\n", "\r\n")
    lines = difflib.unified_diff(text.splitlines(), after.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


CHANGES: list[tuple[Edit, str]] = [
    (
        edits.DeleteNode("prepare"),
        """\
-    prepare:
-        component: ./make/component.yaml
-        inputs:
-            data: ${{parent.inputs.images}}
-        outputs:
-            model:     # empty
-        inputs: {data: "${{parent.jobs.prepare.outputs.model}}", rate: 0.5}
+        inputs: {rate: 0.5}""",
    ),
    (
        edits.DeleteNode("train"),
        """\
-outputs:
-    model:
-        type: uri_folder
-
-    train:   # the one
-        component: ./make/component.yaml
-        inputs: {data: "${{parent.jobs.prepare.outputs.model}}", rate: 0.5}
-        outputs:
-            model: ${{parent.outputs.model}}
-        # ${{parent.jobs.prepare.outputs.model}}
-            data: # from training
-                path: ${{parent.jobs.train.outputs.model}}
-                mode: download""",
    ),
    (
        edits.RenameNode("train", "fit"),
        """\
-    train:   # the one
+    fit:   # the one
-                path: ${{parent.jobs.train.outputs.model}}
+                path: ${{parent.jobs.fit.outputs.model}}""",
    ),
    (
        edits.DuplicateNode("train", "again"),
        """\
+    again:   # the one
+        component: ./make/component.yaml
+        inputs: {data: "${{parent.jobs.prepare.outputs.model}}", rate: 0.5}
+        # ${{parent.jobs.prepare.outputs.model}}""",
    ),
    (
        edits.SetInput("prepare", "data", Literal("./x")),
        """\
-            data: ${{parent.inputs.images}}
+            data:
+                type: uri_folder
+                path: ./x""",
    ),
    (
        edits.SetInput("train", "data", Literal("./x")),
        """\
-        inputs: {data: "${{parent.jobs.prepare.outputs.model}}", rate: 0.5}
+        inputs: {data: {type: uri_folder, path: ./x}, rate: 0.5}""",
    ),
    (
        edits.SetInput("score", "data", FromInput("images")),
        """\
-                path: ${{parent.jobs.train.outputs.model}}
+                path: ${{parent.inputs.images}}""",
    ),
    (edits.SetInput("prepare", "rate", FromInput("lr")), "+            rate: ${{parent.inputs.lr}}"),
    (
        edits.SetInput("score", "rate", Literal(1e-5)),
        "-            rate: ${{parent.inputs.lr}}\n+            rate: 1.0e-05",
    ),
    (edits.ResetInput("prepare", "data"), "-        inputs:\n-            data: ${{parent.inputs.images}}"),
    (
        edits.SetLayout("train", Literal(2), Literal(4)),
        """\
+        resources:
+            instance_count: 2
+        distribution:
+            type: pytorch
+            process_count_per_instance: 4""",
    ),
    (
        edits.SetDistribution("score", "mpi"),
        """\
+        distribution:
+            type: mpi
+            process_count_per_instance: 2""",
    ),
    (
        edits.SetCompute("", "gpu"),
        """\
-    default_compute: azureml:cpu   # the small one
+    default_compute: azureml:gpu   # the small one""",
    ),
    (edits.SetCompute("train", "gpu"), "+        compute: azureml:gpu"),
    (edits.AddInput("", "mode", "string", "yes"), '+    mode: "yes"'),
    (
        edits.DeleteInput("", "lr"),
        "-    lr: 0.1        # learning rate\n-            rate: ${{parent.inputs.lr}}",
    ),
    (
        edits.AddOutput("", "data", "prepare", "model"),
        """\
+    data:
+        type: uri_folder
-            model:     # empty
+            model: ${{parent.outputs.data}}     # empty""",
    ),
    (
        edits.DeleteOutput("", "model"),
        """\
-
-outputs:
-    model:
-        type: uri_folder
-        outputs:
-            model: ${{parent.outputs.model}}""",
    ),
]


@pytest.mark.parametrize(("edit", "lines"), CHANGES, ids=lambda value: type(value).__name__)
def test_an_edit_changes_the_lines_that_it_must(edit: Edit, lines: str) -> None:
    assert changed(TEXT, edit) == lines


def test_an_added_step_looks_like_the_others(tmp_path: Path) -> None:
    (tmp_path / "make").mkdir()
    (tmp_path / "make" / "component.yaml").write_text("type: command\n")
    values: dict[str, Value] = {"data": FromOutput("train", "model"), "rate": Literal(0.5)}
    lines = changed(TEXT, edits.AddNode("", "project:make/component.yaml", "more", values), tmp_path)
    assert lines == (
        "+    more:\n+        type: command\n+        component: ./make/component.yaml\n+        inputs:\n"
        "+            data: ${{parent.jobs.train.outputs.model}}\n+            rate: 0.5"
    )
    typed = "type: pipeline\n\njobs:\n  a:\n    type: command\n    component: ./a.yml\n\n  b: {component: ./b.yml}"
    lines = changed(typed, edits.AddNode("", "library:register_model", "register"), tmp_path)
    assert lines.splitlines()[:-1] == ["+", "+  register:", "+    type: command"]
    (tmp_path / "allranks.yaml").write_text("components:\n  make@latest: make/component.yaml\n")
    empty = "type: pipeline\njobs: {}\n"
    lines = changed(empty, edits.AddNode("", "project:make/component.yaml", "make"), tmp_path)
    assert lines == "-jobs: {}\n+jobs:\n+  make:\n+    type: command\n+    component: azureml:make@latest"
    with pytest.raises(InputError, match=r"component project:gone\.yaml: it does not exist"):
        edited(TEXT, edits.AddNode("", "project:gone.yaml", "gone"), tmp_path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("jobs:\n  train: &a {component: ./a.yml}\n  other: *a\n", "anchor"),
        ("base: &a {compute: x}\njobs:\n  train:\n    <<: *a\n    component: ./a.yml\n", "merge"),
    ],
)
def test_shared_text_is_locked(text: str, reason: str) -> None:
    lock = Yaml().outline(text).nodes["train"].lock
    assert lock is not None
    assert reason in lock.text


@pytest.mark.parametrize(
    ("text", "edit", "message"),
    [
        ("jobs:\n  a: [\n", edits.DeleteNode("a"), "it is not YAML: .* line 3"),
        ("jobs: {% jobs %}\n", edits.DeleteNode("a"), "it is not YAML: .* line 1"),
        (TEXT, edits.AddInput("tune", "seed", "integer", 3), "open that file"),
        (TEXT.replace("    train:", "    train: &a") + "    other: *a\n", edits.DeleteNode("prepare"), "anchor"),
        (TEXT, edits.WrapNodes(("train",), "both"), "only from a YAML file of its own"),
        (
            TEXT + "    gate: {if: '${{parent.jobs.score.outputs.x}}'}\n",
            edits.DeleteNode("score"),
            "it names score",
        ),
        (TEXT.replace("component: ./make", "code: ./make"), edits.ResetInput("prepare", "data"), "only by this value"),
        (TEXT, edits.AddInput("", "steps", "integer"), "give it a default"),
        ("type: pipeline\ncomponent: ./inner.yml\n", edits.DeleteOutput("", "model"), "contains no steps"),
    ],
)
def test_impossible_edits_are_refused(text: str, edit: Edit, message: str) -> None:
    with pytest.raises(InputError, match=message):
        edited(text, edit)


def test_an_edit_of_1000_steps_changes_two_lines() -> None:
    steps = [f"    step_{n}:\n        component: ./make/component.yaml\n" for n in range(1000)]
    text = f"type: pipeline\njobs:\n{''.join(steps)}"
    graph = Graph(nodes=tuple(step(f"step_{n}") for n in range(1000)))
    edit = edits.SetInput("step_500", "data", FromOutput("step_499", "model"))
    after = Yaml().edited(text, edit, graph, Path("/project/pipeline.yml"))
    added = "        inputs:\n            data: ${{parent.jobs.step_499.outputs.model}}\n"
    assert after == text.replace(steps[500], steps[500] + added)
    assert Yaml().outline(after).nodes["step_500"].inputs["data"].line == 2 + 2 * 500 + 4
