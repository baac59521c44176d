"""The ends of logs on a page."""

from pathlib import Path

from allranks.history.page.log_excerpts import excerpts
from allranks.history.page.page import page
from allranks.history.records import RankRecord, RunRecord, Status, StepRecord, Verdict
from run_records import NOW, make_ranks, make_run, make_step
from shown_page import Page


def step_with_logs(folder: Path, *texts: str, name: str = "train") -> StepRecord:
    step = make_step(name)
    for rank, text in enumerate(texts):
        log = folder / f"{name}_{rank}.txt"
        log.write_text(text, "utf-8")
        step.ranks.append(RankRecord(rank, 0, rank, "host", Status.COMPLETED, log=str(log)))
    return step


def test_a_short_log_is_on_the_page_as_a_whole_and_a_long_one_links_to_the_rest(tmp_path: Path) -> None:
    step = step_with_logs(tmp_path, "first\nlast\n", "".join(f"line {index}\n" for index in range(10_000)))
    short, long = excerpts([step]).values()
    assert (short.text, short.complete) == ("first\nlast", True)
    assert str(long.text).endswith("line 9998\nline 9999")
    assert str(long.text).startswith("line ")
    assert not long.complete
    shown = Page(page(make_run(step, folder=str(tmp_path)), NOW))
    assert "The whole log: train_1.txt" in shown.text
    assert ("a", {"href": "train_1.txt"}) in shown.tags


def test_logs_are_text_without_control_characters_and_secrets(tmp_path: Path) -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 40 + "-----END PRIVATE KEY-----\n"
    text = (
        "<script>alert(1)</script>\n\x1b[31mred\x1b[0m\n0%\r50%\r100%\nHF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345\n"
        f"my-own-secret-value\n{key}end\n"
    )
    step = step_with_logs(tmp_path, text)
    (excerpt,) = excerpts([step], frozenset({"my-own-secret-value"})).values()
    assert "&lt;script&gt;" in excerpt.text
    assert "\nred\n100%\n" in excerpt.text
    for secret in ("abcdefghijklmnopqrstuvwxyz", "my-own-secret", "MIIEvQ"):
        assert secret not in excerpt.text


def test_a_key_that_begins_before_an_excerpt_is_masked_too(tmp_path: Path) -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 40 + "-----END PRIVATE KEY-----\n"
    step = step_with_logs(tmp_path, "x\n" * 50_000 + key + "word " * 6200 + "\n")
    (excerpt,) = excerpts([step]).values()
    assert "word" in excerpt.text
    assert "MIIEvQ" not in excerpt.text


def test_a_line_of_a_megabyte_is_cut(tmp_path: Path) -> None:
    step = step_with_logs(tmp_path, "<" * 1_000_000)
    (excerpt,) = excerpts([step]).values()
    assert 0 < len(excerpt.text) <= 32_000
    assert not excerpt.complete


def test_missing_empty_and_odd_logs_have_no_excerpt(tmp_path: Path) -> None:
    step = step_with_logs(tmp_path, "")
    step.ranks += make_ranks(1, 1)
    for log in ("/nowhere/at/all", str(tmp_path), "\0", "<script>"):
        step.ranks.append(RankRecord(9, 0, 9, "host", log=log))
    assert excerpts([step]) == {}


def test_where_there_is_no_room_for_all_logs_those_of_failed_ranks_are_shown(tmp_path: Path) -> None:
    steps = [step_with_logs(tmp_path, "a line of a log\n" * 80, name=f"step_{index}") for index in range(1500)]
    steps[7].status = steps[7].ranks[0].status = Status.FAILED
    steps[7].verdict = Verdict("step_7", "bad", 0)
    found = excerpts(steps)
    assert len(found) < 1500
    assert steps[7].ranks[0].log in found
    assert sum(len(excerpt.text) for excerpt in found.values()) <= 800_000


def make_64_ranks(folder: Path) -> RunRecord:
    step = make_step("train", distribution="pytorch", instance_count=8, process_count_per_instance=8)
    step.ranks = make_ranks(8, 8)
    for rank in step.ranks:
        log = folder / f"std_log_process_{rank.rank}.txt"
        log.write_text("".join(f"<step {index}> loss & accuracy of rank {rank.rank}\n" for index in range(5000)))
        rank.log = str(log)
    return make_run(step, folder=str(folder))


def test_the_page_of_64_ranks_with_long_logs_is_smaller_than_two_megabytes(tmp_path: Path) -> None:
    html = page(make_64_ranks(tmp_path), NOW)
    assert len(html.encode()) < 2_000_000
    assert html.count('<pre class="log"') == 64
