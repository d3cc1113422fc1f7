"""A sentence of the twin's library is the same in Python, and known as what it is made of."""

from __future__ import annotations

import pytest

from evokernel_core.twin.said import sentence_said, template_of


@pytest.mark.parametrize(
    ("written", "template"),
    [
        ("PipeBarrier<PIPE_S> is not allowed.", "PipeBarrier<PIPE_S> is not allowed."),
        ("%s reads %llu of %5.2f, %u and %zu.", "{a} reads {b} of {c}, {d} and {e}."),
        ("%d %% of {x}", "{a} % of {{x}}"),
        ("100 %% of {x}", "100 % of {x}"),
    ],
)
def test_a_format_is_a_template(written: str, template: str) -> None:
    assert template_of(written) == template


BYTES = {
    "format": "bytes %llu to %llu of %s",
    "values": ["0", "63", {"format": "global memory", "values": []}],
}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("No memory {here}.", "No memory {here}."),
        ({"format": "It is %s.", "values": ["{x}"]}, "It is {x}."),
        ({"format": "%s reads %s.", "values": ["Add", BYTES]}, "Add reads bytes 0 to 63 of global memory."),
    ],
)
def test_the_sentence_of_what_the_runner_writes(data: object, text: str) -> None:
    assert sentence_said(data) == text
