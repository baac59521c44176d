"""The line in which a step on Azure ML reports its result is a tag of its job."""

from types import SimpleNamespace

import pytest

from allranks.azure import runs
from allranks.history.records import Submission
from run_records import make_run, make_step


@pytest.mark.parametrize(("tags", "result"), [({"allranks.result": "not better"}, "not better"), ({}, ""), (None, "")])
def test_the_tag_is_the_steps_result(tags: dict[str, str] | None, result: str) -> None:
    job = SimpleNamespace(
        run_id="job",
        status="Completed",
        display_name="promote",
        name=None,
        start_time_utc=None,
        end_time_utc=None,
        error=None,
        properties={},
        tags=tags,
    )
    record = make_run(make_step("promote"), submitted=Submission("s", "g", "w"))
    runs.update_record(record, job, [job])
    assert record.step("promote").result == result
