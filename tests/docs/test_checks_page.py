"""The page of checks is what the tables of rules say, and every error has a source."""

from __future__ import annotations

import runpy
from pathlib import Path

from allranks.checks import component, environment, plan
from allranks.errors import Level

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_of_these_rules() -> None:
    """Where it is not: python docs/make_checks.py"""
    made = runpy.run_path(str(DOCS / "make_checks.py"))
    assert (DOCS / "checks.md").read_text(encoding="utf-8") == made["page"]()


def test_every_rule_says_what_it_finds_and_every_error_and_warning_has_a_source() -> None:
    tables = (component.catalogue(), plan.catalogue(), environment.catalogue(), environment.own_catalogue())
    rules = dict.fromkeys(rule for table in tables for rule in table)  # an image that moves is of two tables
    codes = [rule.code for rule in rules]
    assert len(codes) == len(set(codes))
    for rule in rules:
        assert rule.what, rule
        assert rule.fix, rule
        assert rule.source, rule
        # The project's own taste refuses nothing.
        assert rule.source != "style" or rule.level is Level.ADVICE, rule
