"""Tables that go to a pipe."""

from __future__ import annotations

import pytest
from rich.table import Table

from evokernel_core.cli.tables import WIDTH, add_row, column, print_table


@pytest.mark.parametrize("length", [10, WIDTH // 2, WIDTH])
def test_a_name_is_whole_and_words_have_room(length: int, capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(column("where"), column("gain"), "words")
    add_row(table, "f" * length, "g" * length, "word " * 60)
    print_table(table)
    printed = capsys.readouterr().out
    assert f" {'f' * length} " in printed and f" {'g' * length} " in printed and "word word word" in printed
