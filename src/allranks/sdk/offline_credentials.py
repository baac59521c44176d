"""Credentials without a sign-in, for reading users' files on this machine."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any, NamedTuple

from allranks.sdk.offline_values import Unknown


class _Token(NamedTuple):
    """Equivalent to `azure.core.credentials.AccessToken`."""

    token: str
    expires_on: int


class _Credential:
    """A replacement for each of azure-identity's credentials."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def get_token(self, *scopes: str, **options: Any) -> _Token:
        return _Token("offline", 1 << 32)

    get_token_info = get_token

    def close(self) -> None:
        pass

    def __enter__(self) -> _Credential:
        return self

    def __exit__(self, *raised: object) -> None:
        pass


def identity() -> Any:
    """Return a replacement for the module azure.identity, which takes half a second to import."""
    module = ModuleType("azure.identity")
    real = importlib.util.find_spec("azure.identity")
    module.__path__ = list(real.submodule_search_locations or ()) if real else []

    def attribute(name: str) -> Any:
        if name.endswith("Credential"):
            return _Credential
        if name.endswith("Error"):
            return Exception
        if name.startswith("__"):
            raise AttributeError(name)
        return Unknown(f"azure.identity.{name}")

    vars(module)["__getattr__"] = attribute
    return module
