"""The fake has the operations and the fields of azure-ai-ml's own REST client, and no others."""

import inspect
import re
from collections.abc import Iterator

from azure.ai.ml._restclient.arm_ml_service.operations import _operations
from fake import names, routing

ELSEWHERE = {
    ("GET", "locations/{}/mfeoperationsstatus/{}"),  # what a long-running operation gives as its address
    ("GET", "locations/{}/mfeoperationresults/jc:{}:{}"),
}


def sdk_operations() -> Iterator[tuple[str, str]]:
    """The method and the path of every request that the SDK's client can make, names left out."""
    for name, build in vars(_operations).items():
        if name.startswith("build_") and name.endswith("_request"):
            wanted = [each for each in inspect.signature(build).parameters.values() if each.default is each.empty]
            request = build(**{each.name: "{}" for each in wanted if each.kind is not each.VAR_KEYWORD})
            path = request.url.partition("?")[0].replace("%7B%7D", "{}")
            yield request.method, path.lower().rpartition("/providers/microsoft.machinelearningservices/")[2]


def fake_operations() -> Iterator[tuple[str, str]]:
    for route in routing.ROUTES:
        if route.host == names.MANAGEMENT:
            path = re.sub(r"\(\?P<\w+>\[\^/\]\+\)|\[\^/\]\+", "{}", route.pattern.pattern).replace("\\", "").lower()
            yield route.method, path.rpartition("/providers/microsoft.machinelearningservices/")[2]


def test_an_operation_is_one_of_the_sdk() -> None:
    assert set(fake_operations()) - set(sdk_operations()) == ELSEWHERE
