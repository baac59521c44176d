"""The components of the library, each as a function that creates a step::

    from allranks.library import prepare_images, train_image_classifier

    prepare = prepare_images(source="digits")
    train = train_image_classifier(data=prepare.outputs.images, num_train_epochs=3)

A function has the name of its component's folder. It takes the component's inputs and returns azure-ai-ml's node, as
the result of `load_component` does. Its attribute `component` is the SDK's component. A component is loaded when its
function is first imported.

The build creates library.pyi, which declares the same functions for editors and type checkers.
"""

import sys
from typing import Any

from allranks.catalog import shipped_specs
from allranks.catalog.functions import component_function, unknown


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return list(shipped_specs())
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in shipped_specs():
        raise unknown(name, sys._getframe(1))
    return globals().setdefault(name, component_function(name, shipped_specs()[name]))


def __dir__() -> list[str]:
    return list(shipped_specs())
