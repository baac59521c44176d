"""The rows of a subscription's quota, and which of them limit a step."""

from types import SimpleNamespace
from typing import Any

from allranks.azure.checks import core_limit

FAMILY = "standardNCADSA100v4Family"


def row(name: str, limit: int | None, of: str) -> Any:
    kind = f"Microsoft.MachineLearningServices/{of}/usages" if of else None
    return SimpleNamespace(name={"value": name, "localizedValue": name}, limit=limit, type=kind)


def test_a_family_is_found_in_both_forms_of_its_name() -> None:
    for name in ("Standard NCADSA100v4 Family Cluster Dedicated vCPUs", FAMILY, "STANDARDNCADSA100V4FAMILY"):
        limits = [row(name, 48, "vmFamily/dedicatedCores")]
        assert core_limit(limits, FAMILY, low_priority=False) == (48, f"dedicated cores of {FAMILY}")
        assert core_limit(limits, "standardNCADSH100v5Family", low_priority=False) is None


def test_the_lowest_limit_counts_and_an_unlimited_row_is_none() -> None:
    rows = [row(FAMILY, 48, "vmFamily/dedicatedCores"), row(FAMILY, -1, "workspaces/vmFamily/dedicatedCores")]
    for given in (rows, rows[::-1]):
        assert core_limit(given, FAMILY, low_priority=False) == (48, f"dedicated cores of {FAMILY}")
    rows.append(row("Total Cluster Dedicated Regional vCPUs", 24, "totalDedicatedCores"))
    assert core_limit(rows, FAMILY, low_priority=False) == (24, "all dedicated cores of the region")
    assert core_limit([row(FAMILY, None, "vmFamily/dedicatedCores")], FAMILY, low_priority=False) is None


def test_a_limit_of_zero_is_a_limit() -> None:
    limits = [row(FAMILY, 0, "vmFamily/dedicatedCores")]
    assert core_limit(limits, FAMILY, low_priority=False) == (0, f"dedicated cores of {FAMILY}")


def test_low_priority_cores_are_pooled() -> None:
    rows = [row(FAMILY, 0, "vmFamily/dedicatedCores"), row("TotalLowPriorityCores", 96, "totalLowPriorityCores")]
    limits = rows
    assert core_limit(limits, FAMILY, low_priority=True) == (96, "all low-priority cores of the region")
    assert core_limit(limits, FAMILY, low_priority=False) == (0, f"dedicated cores of {FAMILY}")


def test_a_number_of_clusters_is_none_of_cores() -> None:
    assert core_limit([row(FAMILY, 1, "workspaces/computes")], FAMILY, low_priority=False) is None
    assert core_limit([row(FAMILY, 1, "")], FAMILY, low_priority=False) == (1, f"dedicated cores of {FAMILY}")
