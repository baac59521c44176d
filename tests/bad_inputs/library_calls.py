"""Pipelines that use the library in a wrong way, and layouts that cannot be launched."""

from bad_inputs.row import Row

HEAD = """\
import allranks
from allranks.library import prepare_images, run_torchrun, train_image_classifier
from azure.ai.ml.dsl import pipeline

@pipeline
def one(count: int = 2):
"""


def _of(statement: str, *said: str) -> Row:
    return Row("run file.py", ("file.py:7", *said), files={"file.py": f"{HEAD}    {statement}\n"})


def _layout(step: str, layout: str, *said: str) -> Row:
    return _of(f"allranks.layout({step}, {layout})", "layout", *said)


def _after(statements: str, *said: str) -> Row:
    inner = "@pipeline\ndef other():\n    return {'images': prepare_images().outputs.images}\n\n"
    head = HEAD.replace("@pipeline\n", f"{inner}@pipeline\n")
    return Row("run file.py:one", ("file.py:", "after", *said), files={"file.py": f"{head}    {statements}\n"})


_TWO = "a = prepare_images(); b = train_image_classifier(data=a.outputs.images);"

ROWS = {
    "a name that the library has not": Row(
        "run file.py",
        (
            "file.py:1",
            "allranks.library has no component trian_image_classifier",
            "did you mean train_image_classifier?",
        ),
        files={"file.py": "from allranks.library import trian_image_classifier\n"},
    ),
    "an input that the component has not": _of(
        "train_image_classifier(data='x', num_train_epoch=3)",
        "train_image_classifier",
        "it has no input num_train_epoch",
        "did you mean num_train_epochs?",
    ),
    "a text for a number": _of(
        "train_image_classifier(data='x', num_train_epochs='many')",
        "train_image_classifier, input num_train_epochs",
        "'many'",
        "a whole number",
    ),
    "a number below its range": _of("prepare_images(image_size=0)", "input image_size", "0", "at least 8"),
    "a value outside its enum": _of(
        "prepare_images(source='digit')", "'digit'", "one of digits", "did you mean digits?"
    ),
    "no instance": _layout("train_image_classifier()", "0", "instance_count", "0", "at least 1"),
    "processes for a component that starts them": _layout(
        "run_torchrun()",
        "2, 4",
        "process_count_per_instance",
        "4",
        "the component starts the processes",
        "omit it",
    ),
    "instances for a step without distribution": _layout(
        "prepare_images()", "count", "instance_count", "no distribution", "step.distribution = PyTorchDistribution()"
    ),
    "more processes than the size has GPUs": _layout(
        "train_image_classifier()", "2, 16, size='ND96asr_v4'", "16 processes on the 8 GPUs of Standard_ND96asr_v4"
    ),
    "an unknown size": _layout("train_image_classifier()", "size='ND96as_v4'", "'ND96as_v4'", "Standard_ND96asr_v4"),
    "a step after itself": _after(f"{_TWO} allranks.after(a, a)", "prepare_images would wait for itself"),
    "a condition after a step": _after(
        "from azure.ai.ml.dsl._condition import condition; "
        f"{_TWO} allranks.after(condition(condition=True, true_block=a), b)",
        "a value of ConditionNode",
        "name the steps of its blocks",
    ),
    "a step after one of another pipeline": _after(
        f"{_TWO} c = other(); allranks.after(b, next(iter(c.component.jobs.values())))",
        "prepare_images is a step of another pipeline",
        "steps of the same pipeline",
    ),
}
