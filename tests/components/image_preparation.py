"""prepare_images with inputs of a test, for the tests of its sources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from component_processes import folder_of

from allranks.runtime import arguments

Prepare = Callable[..., Any]


@pytest.fixture
def prepare(code: Callable[[str, str], Any]) -> Prepare:
    """Runs prepare_images on inputs that are not the defaults, and returns the description."""
    inputs = {"archive_url": "http://127.0.0.1:1/cifar.tar.gz", "image_size": 8, "validation_fraction": 0.2}

    def run(**changes: Any) -> Any:
        argv = [f"--{name}={value}" for name, value in (inputs | changes).items()]
        spec = folder_of("prepare_images") / "component.yaml"
        return code("prepare_images", "prepare_images").prepare(arguments(spec, argv))

    return run
