"""The language model components as processes: a tiny model, trained, resumed, scored, sampled and served."""

import json
import math
import random
from pathlib import Path

import pytest
import yaml
from component_processes import BOUND_SECONDS, COMPONENTS, Ended, clean, folder_of, run_script, run_small_script

from allranks.runtime.checkpoints.manifest import complete
from forked import Forked

# Each starts trainings in processes of its own: seconds apiece.
pytestmark = pytest.mark.slow

SCORE = """
import math
from types import SimpleNamespace
import numpy as np, torch
from allranks import runtime
from allranks_steps.text.scoring import score, summarize
from allranks_steps.text.windows import Scored

class Model(torch.nn.Module):
    # The next token follows from this one alone, so that windows do not matter.
    def forward(self, input_ids, **options):
        return SimpleNamespace(logits=table[input_ids])

def main(ranks):
    tokens = np.random.default_rng(0).integers(0, 5, 83).astype(np.uint16)
    for length, batch_size in ((8, 3), (82, 1), (100, 4)):
        found = summarize(score(Model(), Scored(tokens, length), batch_size, ranks.device))
        follow = torch.from_numpy(tokens.astype(np.int64))
        surprise = -table.log_softmax(dim=1).double()[follow[:-1], follow[1:]]
        right = (table.argmax(dim=1)[follow[:-1]] == follow[1:]).double()
        assert found["count"] == 82, found
        assert math.isclose(found["loss"], surprise.mean().item(), rel_tol=1e-6), found
        assert math.isclose(found["perplexity"], math.exp(found["loss"])), found
        assert math.isclose(found["accuracy"], right.mean().item()), found

table = torch.randn(5, 5, generator=torch.Generator().manual_seed(0))
runtime.main(main)
"""


EVICTED = """
import os, signal, sys
from allranks import runtime
import train, training_data

validation_loss = training_data.validation_loss

def evicted(*arguments, **options):
    os.kill(os.getpid(), signal.SIGTERM)  # on both ranks: after that of one, the other may go on to the end
    return validation_loss(*arguments, **options)

training_data.validation_loss = evicted
runtime.main(train.train, strategy="ddp")
"""

SERVE = """
import sys
from mlflow.pyfunc import load_model
sys.modules["allranks"] = sys.modules["allranks_steps"] = None  # as if they were not installed
model = load_model(sys.argv[1])
first, again, other = (model.predict(["one", "t"], params={"max_new_tokens": 8, "seed": seed}) for seed in (1, 1, 2))
assert first == again != other, (first, other)
likeliest = [model.predict(["", "one"], params={"temperature": 0, "seed": seed}) for seed in (1, 2)]
assert likeliest[0] == likeliest[1] == model.predict(["", "one"], params={"top_k": 1, "max_new_tokens": 128})
"""


SPEC = ("--spec", folder_of("train_language_model") / "component.yaml")
"""For scripts that import the component's programs."""
TINY = ["--max_seq_length", "16", "--num_hidden_layers", "2", "--num_attention_heads", "2", "--hidden_size", "16"]


def run_ranks(component: str, *arguments: object, script: Path, folder: Path, ranks: int = 1) -> Ended:
    """Run a script with a component's code, in a folder of its own, on so many ranks."""
    return run_script(component, *map(str, arguments), script=script, folder=folder, ranks=ranks)


def train(data: Path, folder: Path, *arguments: object, ranks: int = 1) -> Ended:
    """Train a tiny model; its outputs are below the folder."""
    places = ["--data", data, "--model", folder / "model", "--checkpoints", folder / "checkpoints"]
    places += ["--history", folder / "history.json"]
    script = COMPONENTS / "language_modelling/train_language_model/train.py"
    return run_ranks("train_language_model", *places, *TINY, *arguments, script=script, folder=folder, ranks=ranks)


def _script(folder: Path, content: str) -> Path:
    file = folder / "script.py"
    file.write_text(content)
    return file


@pytest.fixture(scope="module")
def verses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts in which little is left to chance, as prepare_text prepares them."""
    folder = tmp_path_factory.mktemp("verses")
    (folder / "texts").mkdir()
    for number in range(20):
        counts = random.Random(number).sample(range(90), 60)
        verse = [f"{count} green bottles hanging on the wall,\n" for count in counts]
        (folder / "texts" / f"{number}.txt").write_text("".join(verse))
    settings = ("--vocabulary_size=280", "--validation_fraction=0.1", "--shard_tokens=5000")
    places = (f"--folder={folder}/texts", f"--text={folder}/out")
    ended = run_small_script("prepare_text", *places, *settings, folder=folder)
    assert ended.codes == [0], ended.errors
    return folder / "out"


@pytest.fixture(scope="module")
def model_of_verses(verses: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what a training on two ranks left."""
    folder = tmp_path_factory.mktemp("model")
    settings = ["--max_steps", 30, "--learning_rate", 0.01, "--save_steps", 20, "--per_device_train_batch_size", 4]
    ended = train(verses, folder, *settings, "--eval_steps", 15, "--precision", "auto", ranks=2)
    assert ended.codes == [0, 0], ended.errors
    assert "on 2 ranks by ddp in float32, 30 steps" in ended.output
    return folder


def losses(history: Path) -> dict[int, float]:
    """The points of a history."""
    return {point["step"]: point["loss"] for point in json.loads(history.read_text())["points"]}


def test_two_ranks_leave_a_model_checkpoints_and_a_history(model_of_verses: Path) -> None:
    assert len(list((model_of_verses / "checkpoints").glob("step_*"))) == 2
    history = json.loads((model_of_verses / "history.json").read_text())
    assert (history["strategy"], history["world_size"]) == ("ddp", 2)
    assert (history["sample"], history["samples_per_step"], history["instance_count"]) == ("token", 8 * 16, 1)
    assert len(history["machines"]) == 1
    assert history["started"] < history["ended"]
    assert [point["step"] for point in history["points"]] == [1, 10, 20, 30]
    assert {point["samples"] for point in history["points"]} == {8 * 16}
    assert history["points"][-1]["loss"] < history["points"][0]["loss"] - 1
    assert all(point["seconds"] > 0 and point["peak_memory"] > 1 for point in history["points"])
    assert [evaluation["step"] for evaluation in history["evaluations"]] == [15, 30]
    described = yaml.safe_load((model_of_verses / "model/MLmodel").read_text())
    assert described["flavors"]["python_function"]["artifacts"]["huggingface"]["path"] == "artifacts/huggingface"


def test_one_process_resumes_what_two_ranks_left(model_of_verses: Path, verses: Path, tmp_path: Path) -> None:
    checkpoints = model_of_verses / "checkpoints"
    settings = ["--max_steps", 40, "--gradient_accumulation_steps", 2, "--per_device_train_batch_size", 4]
    ended = train(verses, tmp_path, *settings, "--resume_from_checkpoint", checkpoints)
    assert ended.codes == [0], ended.errors
    assert "step 40 of 40" in ended.output
    assert "step 30 of" not in ended.output
    assert list(losses(tmp_path / "history.json")) == [1, 10, 20, 30, 40]


def test_an_eviction_during_a_validation_saves_and_the_next_attempt_makes_it(
    model_of_verses: Path, verses: Path, tmp_path: Path
) -> None:
    """In a training that starts from the weights of another."""
    words = [*SPEC, "--data", verses, "--max_steps", 3, "--eval_steps", 2, "--max_eval_samples", 6]
    words += ["--per_device_eval_batch_size", 1, "--save_steps", 100, "--initial_model", model_of_verses / "model"]
    words += [word for name in ("model", "checkpoints", "history") for word in (f"--{name}", tmp_path / name)]
    script = _script(tmp_path, EVICTED)
    ended = run_ranks("train_language_model", *words, script=script, folder=tmp_path, ranks=2)
    assert ended.codes == [143, 143], ended.errors
    assert "validation loss" not in ended.output
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step_000000002"]
    script = COMPONENTS / "language_modelling/train_language_model/train.py"
    ended = run_ranks("train_language_model", *words, script=script, folder=tmp_path, ranks=2)
    assert ended.codes == [0, 0], ended.errors
    history = json.loads((tmp_path / "history").read_text())
    assert [evaluation["step"] for evaluation in history["evaluations"]] == [2, 3]
    assert [point["step"] for point in history["points"]] == [1, 3]
    assert history["points"][0]["loss"] < losses(model_of_verses / "history.json")[20]
    found = {entry.step: entry.manifest.metric for entry in complete(tmp_path / "checkpoints") if entry.manifest}
    assert found == {evaluation["step"]: evaluation["loss"] for evaluation in history["evaluations"]}


def test_every_token_counts_once_where_ranks_have_unequal_shares(tmp_path: Path) -> None:
    script = tmp_path / "score.py"
    script.write_text(SCORE)
    ended = run_ranks("evaluate_language_model", script=script, folder=tmp_path / "run", ranks=2)
    assert ended.codes == [0, 0], ended.errors


def test_the_metrics_of_a_trained_model(model_of_verses: Path, verses: Path, tmp_path: Path) -> None:
    places = ["--data", verses, "--model", model_of_verses / "model", "--metrics", tmp_path / "metrics"]
    script = COMPONENTS / "language_modelling/evaluate_language_model/evaluate.py"
    ended = run_ranks("evaluate_language_model", *places, script=script, folder=tmp_path)
    assert ended.codes == [0], ended.errors
    described = json.loads((verses / "description.json").read_text())
    metrics = json.loads((tmp_path / "metrics/metrics.json").read_text())
    assert metrics["count"] == described["tokens"]["validation"] - 1
    assert metrics["perplexity"] == pytest.approx(math.exp(metrics["loss"]))
    bits = metrics["loss"] * metrics["count"] / math.log(2)
    assert metrics["bits_per_byte"] == pytest.approx(bits / described["bytes"]["validation"])
    assert 1 < metrics["perplexity"] < described["unigram_perplexity"] == metrics["unigram_perplexity"]
    assert metrics["times_below_unigram"] == pytest.approx(metrics["unigram_perplexity"] / metrics["perplexity"])
    assert 0 < metrics["accuracy"] < 1
    assert f"validation perplexity {metrics['perplexity']:.2f}" in ended.output
    # The training's own evaluation scores the whole windows.
    history = json.loads((model_of_verses / "history.json").read_text())
    assert history["evaluations"][-1]["loss"] == pytest.approx(metrics["loss"], rel=0.02)


def test_samples_are_written_and_printed(model_of_verses: Path, tmp_path: Path) -> None:
    script = COMPONENTS / "language_modelling/sample_text/sample.py"
    places = ["--model", model_of_verses / "model", "--text", tmp_path / "out/text"]
    ended = run_ranks("sample_text", *places, "--prompt", "1 green", "--samples", 3, script=script, folder=tmp_path)
    assert ended.codes == [0], ended.errors
    assert ended.output == (tmp_path / "out/text").read_text()
    samples = ended.output.split("\n" + "-" * 40 + "\n")
    assert len(set(samples)) == 3
    assert all(sample.startswith("1 green") for sample in samples)


def test_the_model_loads_in_mlflow_without_this_code(model_of_verses: Path, tmp_path: Path) -> None:
    arguments = [str(model_of_verses / "model")]
    serving = Forked(_script(tmp_path, SERVE), arguments, clean(), tmp_path, tmp_path / "served")
    assert serving.wait(BOUND_SECONDS) == 0, (tmp_path / "served.err").read_text()
