"""Command line, editor and coding agents give a file the same lines, ids, kinds, reasons and estimates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.clients import CLIENTS, Row, compare, figures, said, written
from evokernel_core.domain.settings import Settings
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.session import Session
from tests import warm
from tests.homes import own_home

TESTS = Path(__file__).parent
QUICK = (*sorted((TESTS / "data" / "offers").glob("*.py")), TESTS / "data" / "meaning" / "attention.py")
THOROUGH = sorted(
    {
        *(TESTS / "data" / "meaning").glob("*.py"),
        *(TESTS / "capture" / "models").glob("*.py"),
        *(TESTS.parent / "examples").glob("*_*.py"),
    }.difference(QUICK)
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("clients")
    with own_home(folder), pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIRTUAL_ENV", str(Path(warm.interpreter()).parents[1]))
        with Memory(folder / "memory.db") as memory, Session(Settings(), folder, memory) as session:
            yield session


@pytest.mark.parametrize(
    "file",
    [
        *(pytest.param(file, id=file.stem) for file in QUICK),
        *(pytest.param(file, id=file.stem, marks=pytest.mark.thorough) for file in THOROUGH),
    ],
)
def test_every_client_says_the_same(session: Session, file: Path) -> None:
    rows, differences = compare(session, file)
    assert rows
    assert not differences


def test_what_only_a_program_computes_is_offered_and_written(session: Session) -> None:
    """`y = self.inner(x)`, which the command line called unsupported; whether it gains is another matter."""
    file = TESTS / "data" / "offers" / "product_alone.py"
    for client in CLIENTS.values():
        (product,) = (row for row in said(client, session, file) if row.kind == "matmul")
        assert (product.lines, product.reason) == ((13, 13), "")
        eager_us, kernel_us, _, gain = product.figures
        assert gain == pytest.approx(1 - kernel_us / eager_us, abs=0.01)
    (tried,) = (row for row in written(session, file) if row["op_category"] == "matmul")
    assert tried["status"] == "infeasible", "it was tried, in vain here"


@pytest.mark.parametrize("programs", [False, True])
def test_a_reason_says_whether_programs_compute_it(session: Session, programs: bool) -> None:
    """ "The kernels on offer do not compute" stood over products that programs compute."""
    folder = TESTS / "data" / "offers"
    files = (folder / "product_alone.py", folder / "layers_before_qr.py")
    found = [offer for file in files for offer in session.offers(file, programs=programs)]
    reasons = [str(offer.region.reason) for offer in found if offer.estimate is None]
    single = [reason for reason in reasons if "not supported as a single fused kernel" in reason]
    assert [reason.partition(",")[0] for reason in single] == (
        [] if programs else [f"Line {line} computes a matrix product (aten.addmm)" for line in (13, 13)]
    )
    assert reasons[-1] == "Line 14 computes aten.linalg_qr, which no kernel supports."


def test_a_row_that_one_client_lacks_is_told(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    file = TESTS / "data" / "offers" / "product_alone.py"
    whole = CLIENTS["editor"]
    monkeypatch.setitem(CLIENTS, "editor", lambda *given: whole(*given)[1:])  # type: ignore[index]
    rows, differences = compare(session, file)
    assert isinstance(rows[0], Row)
    assert differences == [f"editor: {rows[0]}"]


@pytest.mark.parametrize("gain", [0.90496, 0.904951, 0.905, 0.00495, 0.99996])
def test_figures_of_one_estimate_are_equal_however_a_client_rounds_them(gain: float) -> None:
    """An agent is told 0.905 where the command line says 0.90496: rounded again that was 0.91 and 0.9."""
    assert figures(54.6, 5.19, None, gain) == figures(54.6, 5.19, None, round(gain, 4))
    assert figures(54.6, 5.19, None, gain) != figures(54.6, 5.19, None, gain + 0.01)
