"""Every rule says what it finds, and every error and warning has a source."""

from allranks.errors import Level, Rule


def test_every_rule_says_what_it_finds_and_every_error_and_warning_has_a_source() -> None:
    tables = map(Rule.all_about, ("component", "plan", "environment"))
    rules = dict.fromkeys(rule for table in tables for rule in table)  # an image that moves is of two tables
    codes = [rule.code for rule in rules]
    assert len(codes) == len(set(codes))
    for rule in rules:
        assert rule.what, rule
        assert rule.fix, rule
        assert rule.source, rule
        # The project's own taste refuses nothing.
        assert rule.source != "style" or rule.level is Level.ADVICE, rule
