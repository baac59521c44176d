"""Each port is passed to the program, and the inputs are in the order and the words that a form needs."""

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from allranks.catalog.find import find_specs

COMPONENTS = Path(__file__).parents[2] / "components"
SPECS = [spec for spec in find_specs(COMPONENTS) if spec.suffix == ".yaml"]


@pytest.mark.parametrize("spec", SPECS, ids=[spec.parent.name for spec in SPECS])
def test_each_port_is_the_value_of_one_option(spec: Path) -> None:
    """As `allranks.runtime.arguments` needs it."""
    document = yaml.safe_load(spec.read_text(encoding="utf-8"))
    program = r"(?:--[\w-]+|verify\.py)"  # of verify_environment: not one of ours
    option = re.compile(rf"(?:^|\s|\[\[){program}[ =](['\"]?)\$\{{\{{(inputs|outputs)\.(\w+)\}}\}}\1(?=\s|]]|$)")
    uses = Counter((kind, name) for _, kind, name in option.findall(document["command"]))
    assert uses == {(kind, name): 1 for kind in ("inputs", "outputs") for name in document.get(kind) or ()}
    assert len(uses) == document["command"].count("${{")


_TRAINING = "num_train_epochs per_device_train_batch_size learning_rate strategy precision"
MOST_USED = {
    "compare_scaling": "history_1 history_2 history_3 history_4 title price_per_hour min_efficiency warm_up_steps",
    "train_image_classifier": f"data model pretrained_model {_TRAINING} initial_model resume_from_checkpoint",
    "train_lightning": f"data preset {_TRAINING} devices num_nodes resume_from_checkpoint",
    "train_tensorflow": "data preset image_size num_train_epochs max_steps per_device_train_batch_size learning_rate "
    "precision save_steps resume_from_checkpoint",
    "create_base_model": "text vocab_size hidden_size num_hidden_layers num_attention_heads max_seq_length max_steps "
    "per_device_train_batch_size learning_rate seed",
    "finetune_language_model": "base_model data validation_data objective method num_train_epochs "
    "per_device_train_batch_size learning_rate max_seq_length strategy",
    "finetune_text_classifier": "base_model data validation_data text_column label_column problem_type "
    "num_train_epochs per_device_train_batch_size learning_rate strategy",
    "train_language_model": f"data model_size max_seq_length {_TRAINING} initial_model resume_from_checkpoint",
    "promote_model": "model metrics champion name metric goal margin threshold selection trigger_time",
    "prepare_table": "source folder task label_column validation_fraction test_fraction categorical_columns "
    "ignored_columns weight_column seed",
    "train_gradient_boosting": "data objective label_column num_iterations learning_rate num_leaves max_depth metric "
    "early_stopping_round tree_learner",
    "run_pytorch": "source script arguments data data_2 data_3 file initial_model",
}
"""The inputs that most users set, of the components with more than ten."""


@pytest.mark.parametrize("spec", SPECS, ids=[spec.parent.name for spec in SPECS])
def test_a_form_begins_with_the_inputs_that_most_users_set(spec: Path) -> None:
    inputs = list(yaml.safe_load(spec.read_text(encoding="utf-8")).get("inputs") or ())
    of_component = {MOST_USED.get(folder) for folder in (spec.parent.name, spec.parents[1].name)} - {None}
    assert len(inputs) <= 10 or any(inputs[: len(first.split())] == first.split() for first in of_component if first)


@pytest.mark.parametrize("spec", SPECS, ids=[spec.parent.name for spec in SPECS])
def test_a_description_begins_with_a_line_on_what_the_value_does(spec: Path) -> None:
    """It does not begin with a condition, a value or a reference."""
    for name, port in (yaml.safe_load(spec.read_text(encoding="utf-8")).get("inputs") or {}).items():
        first = re.split(r"(?<=\.)\s", " ".join(port["description"].split()))[0]
        assert 10 <= len(first) <= 100, (name, first)
        assert not re.match(r"(For|By|Without|With|When|If|In|Of|After|Otherwise|The same|\d)\b", first), (name, first)
