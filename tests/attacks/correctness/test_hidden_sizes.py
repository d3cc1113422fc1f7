"""Kernels whose special size stands nowhere: arithmetic hides it, two sizes make it, or it is beyond what is
counted. Each is an honest kernel with a few words changed, and must fail in every draw."""

from __future__ import annotations

from evokernel_core.verifier.gates.equations import solutions
from tests.attacks.correctness.test_learned import (
    DRAWS,
    NUMERIC,
    RELU,
    SCALE,
    TOTAL,
    Cheat,
    changed,
    home,
    task_of,
    verdict_of,
)
from tests.tables import few
from tests.verifier.conftest import make_task, read_source

__all__ = ["home"]

UNWRITTEN = frozenset({"output-not-written"})
WRONG = "AscendC::Muls(y, y, 1.125f, length);"
CLIPPED = (
    "float most = 1.0f; for (int i = 0; i < 83; ++i) { most = most + most; } "
    f"AscendC::Mins(x, x, most, length); AscendC::PipeBarrier<PIPE_V>(); {RELU}"
)


def _host(condition: str) -> dict[str, str]:
    """Wrong where the host code says so in a word of its own."""
    return {
        "uint32_t tile;": "uint32_t tile; uint32_t special;",
        TOTAL: f"{TOTAL} tiling.special = ({condition}) ? 1 : 0;",
        RELU: f"{RELU} if (wrong_) {{ {WRONG} }}",
        "tile_ = tiling.tile;": "tile_ = tiling.tile; wrong_ = tiling.special != 0;",
        "uint32_t tile_ = 0;": "uint32_t tile_ = 0; bool wrong_ = false;",
    }


def _rows(condition: str) -> dict[str, str]:
    return {SCALE: f"Muls(values, values, ({condition} ? 1.1f : 1.0f) / sum, columns);"}


HIDDEN = [
    Cheat("a product of the size that is one number", "relu", _host("total * 7 == 1393"), NUMERIC),
    Cheat("a remainder", "relu", _host("total > 200 && total % 97 == 13"), NUMERIC),
    Cheat("a square, which no text names", "relu", _host("total > 300 && total / 23 == 23"), NUMERIC),
    Cheat("the same product on the device", "softmax", _rows("(columns * 7 == 1393)"), NUMERIC),
    Cheat("as many rows as columns", "softmax", _rows("(rows == columns && rows > 9)"), NUMERIC),
    Cheat("values beyond 2**83", "relu", {RELU: CLIPPED}, NUMERIC),
    Cheat("a range of sizes' product", "softmax",
          _rows("(rows * columns > 3000 && rows * columns < 3100)"), NUMERIC),
    Cheat("values beyond 2**127", "relu", {RELU: CLIPPED.replace("83", "127")}, NUMERIC),
    Cheat("rows in 16 bits", "softmax", {"uint32_t row = GetBlockIdx(); row < rows;":
          "uint32_t row = GetBlockIdx(); row < static_cast<uint16_t>(rows);"}, UNWRITTEN),
]  # fmt: skip


@few("cheat", HIDDEN, keep=(1, 4), ids=lambda cheat: cheat.wants)
def test_what_is_special_to_a_hidden_size_fails_in_every_draw(cheat: Cheat) -> None:
    for draw in DRAWS:
        failed = verdict_of(task_of(cheat), changed(cheat), draw).failed_gate
        assert failed is not None and failed.code in cheat.codes, failed


BITS = Cheat("2**32 elements", "relu", {"sizes[0] >> 32": "sizes[0] < 0"}, frozenset({"index-width"}))


def test_more_elements_than_are_counted_fail_where_a_verification_is_thorough() -> None:
    failed = verdict_of(make_task("relu"), changed(BITS), thorough=True).failed_gate
    assert failed is not None and failed.code in BITS.codes, failed
    assert verdict_of(make_task("relu"), read_source("relu"), thorough=True).feasible


def test_an_honest_kernels_text_has_few_solutions() -> None:
    """No attack: what an honest text asks is no size that it hides."""
    assert len(solutions(read_source("softmax").files.values())) < 20
