"""Prints caught and total by class at the end of a run that holds attacks."""

from __future__ import annotations

import pytest

from tests.attacks.report import Tally

_tally = Tally()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    why = str(report.longrepr[2]) if report.skipped and isinstance(report.longrepr, tuple | list) else ""
    _tally.hear(report.nodeid, report.when or "", report.outcome, why)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _tally.classes:
        terminalreporter.section("attacks")
        for line in _tally.lines():
            terminalreporter.write_line(line)
