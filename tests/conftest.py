from __future__ import annotations

from hypothesis import settings

# How long an example takes says nothing about it.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
