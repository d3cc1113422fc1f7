"""Tables that go to a pipe."""

from __future__ import annotations

import pytest
from rich.table import Table

from evokernel_core.cli.synth import Row, _gain
from evokernel_core.cli.tables import WIDTH, add_row, column, print_table


@pytest.mark.parametrize("length", [10, WIDTH // 2, WIDTH])
def test_a_name_is_whole_and_words_have_room(length: int, capsys: pytest.CaptureFixture[str]) -> None:
    shape = f"float32 [{', '.join(['7'] * (length // 3))}]"
    table = Table(column("where"), column("shape"), "words")
    add_row(table, "f" * length, shape, "word " * 60)
    print_table(table)
    printed = capsys.readouterr().out
    assert f" {'f' * length} " in printed and f" {shape} " in printed and "word word word" in printed


@pytest.mark.parametrize(
    ("gain", "printed"), [(0.234, "23%"), (-0.004, "0%"), (-0.02, "-2%"), (None, "0%")], ids=str
)
def test_a_gain_of_nothing_has_no_sign(gain: float | None, printed: str) -> None:
    assert _gain(Row("r", 1, 1, "other", "verified", gain=gain)) == printed
