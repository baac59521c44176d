"""What train_gradient_boosting draws at random: the same in a training that goes on from a checkpoint."""

from collections.abc import Callable
from typing import Any

import lightgbm
import numpy as np
import pytest

from allranks.errors import InputError

pytestmark = pytest.mark.slow  # LightGBM takes seconds to import

Importer = Callable[[str, str], Any]

ITERATIONS = 12
DEFAULTS = {"objective": "binary", "verbosity": -1, "num_threads": 1, "seed": 0, "learning_rate": 0.3}
DEFAULTS |= {"bagging_freq": 0, "feature_fraction": 1.0, "min_data_in_leaf": 5}
HALF = {"bagging_fraction": 0.5}


@pytest.fixture
def sampling(code: Importer) -> Any:
    return code("train_gradient_boosting", "sampling")


def train(
    sampling: Any, count: int, *, rank: int = 0, model: lightgbm.Booster | None = None, **parameters: Any
) -> lightgbm.Booster:
    """Return a model with so many more trees."""
    features = np.random.default_rng(0).normal(size=(600, 6))
    labels = features[:, 0] + features[:, 1] * features[:, 2] > 0
    settings = DEFAULTS | parameters
    callback = sampling.Sampling(settings, rank)
    return lightgbm.train(
        settings | callback.initial | {"num_iterations": count},
        lightgbm.Dataset(features, labels),
        init_model=model,
        keep_training_booster=True,
        callbacks=[callback],
    )


def trees(booster: lightgbm.Booster) -> list[Any]:
    """Return the splits of each tree. The values of leaves differ by rounding."""

    def splits(node: dict[str, Any]) -> Any:
        if "split_feature" not in node:
            return node.get("leaf_count")
        return node["split_feature"], node["threshold"], splits(node["left_child"]), splits(node["right_child"])

    return [splits(tree["tree_structure"]) for tree in booster.dump_model()["tree_info"]]


@pytest.mark.parametrize("done", [4, 5])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {**HALF, "bagging_freq": 1},
        {**HALF, "bagging_freq": 3},
        {"bagging_freq": 2, "pos_bagging_fraction": 0.8, "neg_bagging_fraction": 0.4},
        {"feature_fraction": 0.5},
        {"feature_fraction_bynode": 0.5, "extra_trees": "true"},
    ],
    ids=str,
)
def test_trees_after_a_checkpoint_are_those_of_an_uninterrupted_training(
    sampling: Any, parameters: dict[str, Any], done: int
) -> None:
    whole = train(sampling, ITERATIONS, **parameters)
    begun = train(sampling, done, **parameters)
    saved = lightgbm.Booster(model_str=begun.model_to_string(num_iteration=-1))
    resumed = train(sampling, ITERATIONS - done, model=saved, **parameters)
    assert trees(resumed) == trees(whole)
    assert len(set(map(str, trees(whole)))) == ITERATIONS, "each tree is another one"


def test_rows_are_drawn_as_often_as_bagging_freq_says(sampling: Any) -> None:
    """Of each tree, the rows that it was made from: half of them, other ones after each third iteration."""
    found = {
        frequency: trees(train(sampling, ITERATIONS, bagging_freq=frequency, **HALF)) for frequency in (1, 3, 1000)
    }
    rows = {frequency: [_total(tree) for tree in made] for frequency, made in found.items()}
    assert all(200 < count < 400 for made in rows.values() for count in made)
    assert len(set(rows[1000])) == 1
    assert [rows[3][start : start + 3] for start in range(0, ITERATIONS, 3)] == [[count] * 3 for count in rows[3][::3]]
    assert len(set(rows[3])) > 2
    assert len(set(rows[1])) > 4


def test_ranks_draw_other_rows_and_the_same_features(sampling: Any) -> None:
    settings = {**HALF, "bagging_freq": 1}
    assert trees(train(sampling, 3, rank=0, **settings)) != trees(train(sampling, 3, rank=1, **settings))
    settings = {"feature_fraction": 0.5}
    assert trees(train(sampling, 3, rank=0, **settings)) == trees(train(sampling, 3, rank=1, **settings))
    assert trees(train(sampling, 3, **settings, seed=1)) != trees(train(sampling, 3, **settings))


def test_too_few_rows_for_bagging_are_refused(sampling: Any) -> None:
    sampling.check_rows(DEFAULTS | HALF, 3)  # without a bagging_freq all rows are taken
    sampling.check_rows(DEFAULTS | HALF | {"bagging_freq": 1}, 32)
    with pytest.raises(InputError, match=r"bagging_fraction: 0\.5 of the 31 rows of a rank"):
        sampling.check_rows(DEFAULTS | HALF | {"bagging_freq": 1}, 31)
    with pytest.raises(InputError, match=r"neg_bagging_fraction: 0\.1 of the 100 rows"):
        sampling.check_rows(DEFAULTS | {"bagging_freq": 1, "neg_bagging_fraction": "0.1"}, 100)


def _total(tree: Any) -> int:
    return _total(tree[2]) + _total(tree[3]) if isinstance(tree, tuple) else int(tree)
