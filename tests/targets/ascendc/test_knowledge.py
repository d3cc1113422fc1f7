"""The knowledge that ships: made of the table, complete for what is emitted, and chosen for a prompt."""

from __future__ import annotations

import re
import sys
import tomllib
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from attrs import evolve

from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import Latency, LatencySource
from evokernel_core.hardware.ascend.api import api_rows
from evokernel_core.hardware.ascend.api.rows import UNITS
from evokernel_core.hardware.ascend.chip import Chip, load_chip
from evokernel_core.memory.experiences import experience_id
from evokernel_core.targets.ascendc.audit.rules.callees import TILING_FUNCTIONS
from evokernel_core.targets.ascendc.author import initial, launched, moves, write
from evokernel_core.targets.ascendc.kernels.family import Cores
from evokernel_core.targets.ascendc.kernels.registry import FAMILIES
from evokernel_core.targets.ascendc.knowledge import (
    KernelKind,
    bindings_of,
    cards,
    common_knowledge,
    expected_bindings,
    further_cards,
    kind_of,
    practices_for,
    prompting,
    rules,
)
from evokernel_core.targets.ascendc.knowledge.cards import Card, used_cards
from evokernel_core.targets.ascendc.knowledge.exemplars import (
    LONGEST,
    Typical,
    exemplar,
    nearest,
    simplified,
    source_of,
    typical_tasks,
)
from evokernel_core.targets.ascendc.knowledge.practices import BINDINGS, practices
from evokernel_core.targets.ascendc.knowledge.prompting import system_message
from evokernel_core.targets.ascendc.source import KERNEL
from evokernel_core.twin.lexer import CppTokenKind as TokenKind
from evokernel_core.twin.lexer import tokenize

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from api_table import interface_names

CHIP = load_chip()


def task(op: str, dtype: str = "float32", size: int = 64) -> KernelTask:
    spec = TensorSpec((size, size), dtype)
    node = Node("y", op, (ValueRef("x"),), (), (spec,))
    graph = Graph((GraphInput("x", spec),), (node,), (ValueRef("y"),))
    return KernelTask("t", graph, (), TOLERANCES["float32"], "other")


# -- cards ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("card", cards(), ids=lambda card: card.experience.title)
def test_a_card_is_short_and_named_as_a_memory_names_it(card: Card) -> None:
    shown = card.experience
    assert shown.id == experience_id(shown.kind, shown.title, shown.body)
    assert shown.title and 10 < len(shown.body) < 3000
    assert card.cores and (card.names or card.dtypes or card.ops)


def test_every_row_of_the_table_has_a_card() -> None:
    known = [key for card in cards() for key in card.rows]
    assert sorted(set(known)) == sorted(row.key for row in api_rows())
    titles = [card.experience.title for card in cards()]
    assert len(set(titles)) == len(titles)


@cache
def interface() -> frozenset[str]:
    return frozenset(interface_names())


def called(text: str) -> set[str]:
    """What a kernel calls of the interface and does not define itself."""
    own = set(re.findall(r"__aicore__ inline [\w<>&:* ]+? (\w+)\(", text))
    tokens = tokenize(text)
    used = {a.text for a, b in pairwise(tokens) if a.kind is TokenKind.NAME and b.text in "(<"}
    return (used & interface()) - own


@pytest.mark.parametrize("typical", typical_tasks(), ids=lambda item: item.name)
def test_what_the_author_calls_has_a_card_on_its_cores(typical: Typical) -> None:
    """Of the first kernel of every kind, and of what its refinements make of it."""
    strategy = initial(typical.task, CHIP)
    units = kind_of(typical.task, CHIP).units
    offered = moves(typical.task, strategy, CHIP)
    for item in (strategy, *(move.strategy for move in offered[:: max(1, len(offered) // 2)])):
        text = write(typical.task, item, CHIP).files[KERNEL]
        names = called(text)
        assert "DataCopyPad" in names or "DataCopy" in names
        carded = {name for card in used_cards([text], units) for name in card.names}
        assert names <= carded


def test_cards_of_the_other_cores_are_left_out() -> None:
    text = "DataCopy(a, b, params); Mmad(c, a, b, p); Gather(x, y, z, 0, n);"
    on = {cores: {card.experience.title for card in used_cards([text], cores)} for cores in Cores}
    assert {"Gather and GatherMask"} & on[Cores.VECTOR] and not {"Mmad: products in L0"} & on[Cores.VECTOR]
    assert {"Mmad: products in L0"} & on[Cores.CUBE] and not {"Gather and GatherMask"} & on[Cores.CUBE]
    assert {"Mmad: products in L0", "Gather and GatherMask"} <= on[Cores.BOTH]
    hand_over = "Hand-over between cube and vector cores"
    assert [hand_over in on[cores] for cores in Cores] == [False, False, True]


def test_what_a_topic_explains_has_no_second_card() -> None:
    text = "DataCopy(a, b, p); Nd2NzParams p; LoadData(c, d, q); LoadData2DParams q; Cast(e, f, mode, n);"
    titles = {card.experience.title for card in used_cards([text], Cores.BOTH)}
    assert "LoadData: fractals from L1 into L0A and L0B" in titles
    assert not {title for title in titles if re.match(r"DataCopy|LoadData|ScalarCast", title)} & {
        f"{row.key} as documented" for row in api_rows()
    }


def test_overloads_are_told_apart_by_their_structs() -> None:
    def keys(text: str) -> set[str]:
        return {key for card in used_cards([text], Cores.BOTH) for key in card.rows if not card.always}

    assert "DataCopySliceIn" in keys("DataCopy(a, b, slices, slices, 2); SliceInfo slices[2];")
    assert "DataCopySliceIn" not in keys("DataCopy(a, b, DataCopyParams{1, 2, 0, 0});")


FACTS = (
    ("DataCopyPad: exact copies", "blockLen 0..2097151 (bytes)"),
    ("DataCopyPad: exact copies", "DataCopyExtParams dataCopyParams"),
    (
        "Element-wise arithmetic",
        "Add Sub Mul Max Min(dst, src0, src1, count) on V: half float int16_t int32_t.",
    ),
    ("Element-wise arithmetic", "Cost of Div Exp Ln Sqrt: class transcendental."),
    ("Mmad: ", "m 0..4095 (rows)"),
    ("Mmad: ", "half x half"),
    ("Fixpipe: ", "float -> bfloat16_t"),
    ("DataCopy with Nd2NzParams", "srcDValue 1..65535 (elements from row to row)"),
    ("LoadData: ", "dst at multiples of 512 bytes"),
    ("Waits by hand", "eventID 0..7"),
    ("Sort32 as documented", "repeatTime 0..255 (repeats of 32 elements)"),
)


@pytest.mark.parametrize(("title", "said"), FACTS)
def test_a_card_says_what_the_table_says(title: str, said: str) -> None:
    (card,) = [card for card in cards() if card.experience.title.startswith(title)]
    assert said in card.experience.body


@pytest.mark.parametrize(
    ("title", "said"),
    [
        (
            "DataCopyPad: exact",
            "blockLen is in BYTES; left and right padding are in ELEMENTS, at most 32 bytes",
        ),
        ("Cast: conversions", "int32_t->half takes its scale from SetDeqScale"),
        ("GlobalTensor: addressing", "in a mixed kernel a vector core's counts to twice GetBlockNum()"),
        ("GlobalTensor: addressing", "data cache of 32 KB, in lines of 64 bytes"),
        ("Fill: ", "in L0A and L0B it runs on MTE1 and a block is a fractal of 512 bytes"),
        ("DataCopy with Nd2NzParams", "Cost: by bytes, rows and copies."),
        ("Waits by hand", "ids go to 7;"),
    ],
)
def test_a_card_says_what_the_documentation_says_beside_the_table(title: str, said: str) -> None:
    (body,) = (card.experience.body for card in cards() if card.experience.title.startswith(title))
    assert said in body


def test_units_are_of_rows_and_of_everything_with_a_length() -> None:
    data = tomllib.loads(UNITS.read_text(encoding="utf-8"))
    assert data["rows"].keys() <= {row.key for row in api_rows()}
    for row in api_rows():
        for item in row.limits:
            measures = re.search(r"Stride|Gap|Len$|[nd]Value$|Size$|count", item.parameter)
            rare = row.key in ("DataCopyNz2Nd", "SetLoadDataRepeat", "SetFixpipeNz2ndFlag", "TransposeImage")
            assert item.parameter in row.units or not measures or rare, (row.key, item.parameter)


# -- kinds and exemplars --------------------------------------------------------------------------


@pytest.mark.parametrize("typical", typical_tasks(), ids=lambda item: item.name)
def test_a_typical_task_is_of_its_kind(typical: Typical) -> None:
    kind = kind_of(typical.task, CHIP)
    assert (kind.family, kind.cores) == (typical.family, typical.cores)
    is_long = sum(map(len, source_of(typical, CHIP).files.values())) > LONGEST
    assert is_long or nearest(kind, CHIP).family == typical.family
    text = source_of(typical, CHIP).files[KERNEL]
    assert ("__cube__" in text or "ASCEND_IS_AIC" in text) == (kind.units is not Cores.VECTOR)


def test_every_family_of_schedules_stands_in_an_exemplar() -> None:
    found = {
        item.family
        for typical in typical_tasks()
        for item in launched(typical.task, initial(typical.task, CHIP), CHIP)
    }
    assert {name for family in FAMILIES for name in family.strategies} == found


@pytest.mark.parametrize("cores", Cores)
def test_a_kind_without_an_exemplar_gets_one_of_its_cores(cores: Cores) -> None:
    assert nearest(KernelKind("", cores, cores), CHIP).cores is cores


def test_a_task_of_no_family_is_of_the_cores_of_its_operations() -> None:
    assert kind_of(task("aten.unheard_of.default"), CHIP) == KernelKind("", Cores.VECTOR, Cores.VECTOR)
    spec = TensorSpec((64, 64), "float32")
    operands = (GraphInput("x", spec), GraphInput("w", spec))
    product = Node("p", "aten.mm.default", (ValueRef("x"), ValueRef("w")), (), (spec,))
    unknown = Node("y", "aten.unheard_of.default", (ValueRef("p"),), (), (spec,))
    graph = Graph(operands, (product, unknown), (ValueRef("y"),))
    mixed = evolve(task("aten.relu.default"), graph=graph)
    assert kind_of(mixed, CHIP) == KernelKind("", Cores.BOTH, Cores.BOTH)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("if (1 < 1 || a < 1 || 1 < 1 || b < 1) {", "if (a < 1 || b < 1) {"),
        ("if (a < 1 || 1 < 1) {", "if (a < 1) {"),
        ("{rows, static_cast<uint32_t>((w - w) * sizeof(half)), 0}", "{rows, 0, 0}"),
        ("(width - width) * sizeof(float), 1", "0, 1"),
        ("SetFlag<E>(SLAB_EVENTS + 0);", "SetFlag<E>(SLAB_EVENTS);"),
        ("if (rows * 16 < 16 || a || b * 2 < 2) {", "if (rows * 16 < 16 || a || b * 2 < 2) {"),
        (
            "(w - v) * sizeof(half) + 0.5f, 11 < 1 || 1 < 10 || a",
            "(w - v) * sizeof(half) + 0.5f, 11 < 1 || 1 < 10 || a",
        ),
    ],
)
def test_what_says_nothing_is_left_out_of_an_exemplar(text: str, shown: str) -> None:
    assert simplified(text) == shown


@pytest.mark.parametrize("typical", typical_tasks(), ids=lambda typical: typical.name)
def test_an_exemplar_has_no_leftovers_and_says_where_it_is_narrow(typical: Typical) -> None:
    body = exemplar(typical, CHIP).body
    assert not re.search(r"(?:\(|\|\| )([\w.]+) (?:-|<) \1(?:\)| \|\|)", body)
    assert ("Repeats and repeat strides are uint8_t, 255 at most" in body) == (
        "static_cast<uint8_t>(" in source_of(typical, CHIP).files[KERNEL]
    )


def test_common_knowledge_ends_with_the_exemplar() -> None:
    *_, last = known = common_knowledge(kind_of(task("aten.relu.default"), CHIP), CHIP)
    assert last.kind is ExperienceKind.EXEMPLAR and "GM_ADDR" in last.body
    assert {item.kind for item in known[:-1]} == {ExperienceKind.RULE, ExperienceKind.API_CARD}
    assert len({item.id for item in known}) == len(known)


# -- what one task needs --------------------------------------------------------------------------


def titles(items: tuple[Experience, ...]) -> str:
    return " | ".join(item.title for item in items)


def test_further_cards_follow_the_ops_the_dtypes_and_the_code_shown() -> None:
    kind = KernelKind("pointwise", Cores.VECTOR, Cores.VECTOR)
    plain = titles(further_cards(task("aten.add.Tensor"), kind, []))
    assert "Softmax" not in plain and "bfloat16 is" not in plain and "Gather and" not in plain
    assert "Softmax over rows" in titles(further_cards(task("aten._softmax.default"), kind, []))
    assert "bfloat16 is computed" in titles(further_cards(task("aten.add.Tensor", "bfloat16"), kind, []))
    shown = ["Gather(dst, src, offsets, 0, n);"]
    assert "Gather and GatherMask" in titles(further_cards(task("aten.add.Tensor"), kind, shown))


@pytest.mark.parametrize("units", Cores)
def test_rules_forbid_one_thing_each(units: Cores) -> None:
    for rule in rules(units, CHIP):
        assert rule.body.startswith("You cannot ") and len(rule.body) < 300
        assert "{" not in rule.body


# -- practices ------------------------------------------------------------------------------------


def latency(
    us: float, pipes: tuple[tuple[str, float], ...], balance: float = 1.0, blocks: int = 48
) -> Latency:
    return Latency(us, LatencySource.MODELLED, CHIP.name, blocks, pipes, "", 1.0, 99.0, balance=balance)


BOUND = (
    (latency(100, (("MTE2", 80.0), ("V", 30.0))), ("MTE2",)),
    (latency(100, (("V", 80.0), ("S", 30.0))), ("V",)),
    (latency(100, (("M", 80.0), ("MTE1", 70.0))), ("M",)),
    (latency(100, (("MTE1", 80.0),)), ("MTE1",)),
    (latency(100, (("FIX", 80.0),)), ("FIX",)),
    (latency(100, (("MTE3", 80.0),)), ("MTE3",)),
    (latency(100, (("S", 80.0),)), ("S",)),
    (latency(100, (("MTE2", 30.0), ("V", 28.0))), ("MTE2", "overlap")),
    (latency(100, (("V", 80.0),), balance=0.5), ("imbalance", "V")),
    (latency(100, (("V", 80.0),), balance=0.5, blocks=24), ("V",)),
    (latency(100, (("V", 80.0),), balance=0.25, blocks=24), ("imbalance", "V")),
    (latency(100, (("M", 80.0),), balance=0.5, blocks=12), ("M",)),
    (latency(100, (("M", 80.0),), balance=0.5, blocks=24), ("imbalance", "M")),
    (latency(10, (("V", 1.9),)), ("launch", "V")),
    (latency(10, (), blocks=1), ()),
)


@pytest.mark.parametrize(("figures", "expected"), BOUND)
def test_what_binds_is_read_from_the_figures(figures: Latency, expected: tuple[str, ...]) -> None:
    assert bindings_of(figures, CHIP) == expected


def test_every_binding_is_met_and_every_practice_reaches_a_prompt() -> None:
    met = {binding for figures, _ in BOUND for binding in bindings_of(figures, CHIP)}
    assert met == set(BINDINGS)
    reached = {
        item.title for binding in met for units in Cores for item in practices_for([binding], units, CHIP)
    }
    assert reached == {practice.title for practice in practices()}
    for binding in BINDINGS:
        on = Cores.CUBE if binding in ("M", "MTE1", "FIX") else Cores.VECTOR
        assert practices_for([binding], on, CHIP), binding


@pytest.mark.parametrize(("size", "expected"), [(4096, ("MTE2",)), (64, ("launch", "MTE2"))])
def test_a_draft_gets_practices_for_what_its_bounds_say(size: int, expected: tuple[str, ...]) -> None:
    assert expected_bindings(task("aten.relu.default", size=size), CHIP) == expected


def test_practices_name_the_chip_that_is_asked_about() -> None:
    slow: Chip = evolve(CHIP, launch=evolve(CHIP.launch, launch_us=77.0))
    (item,) = practices_for(["launch"], Cores.VECTOR, slow)
    assert "A launch takes 77 us" in item.body


def words_of(units: Cores, chip: Chip) -> str:
    """All that is told of such cores in general: the system message, rules and practices."""
    items = (*rules(units, chip), *practices_for(BINDINGS, units, chip))
    return "\n".join([system_message(units, chip, structured=True), *(item.body for item in items)])


FIGURES = {
    Cores.VECTOR: """mte.load_latency_cycles mte.load_bytes_per_cycle mte.store_bytes_per_cycle
        mte.min_copy_cycles
        mte.min_burst_cycles mte.aligned_bytes gm.requests_per_cycle gm.same_address_cost gm.hbm_achieved_gbps
        gm.l2_gbps launch.launch_us launch.per_block_us launch.start_us scalar.issue_cycles
        scalar.local_access_cycles vector.startup_cycles vector.startup_transcendental_cycles
        vector.read_write_conflict_cycles vector.bank_bytes""",
    Cores.CUBE: """mte.load_latency_cycles mte.cube_load_hit_bytes_per_cycle mte.aligned_bytes
        gm.requests_per_cycle
        gm.same_address_cost gm.hbm_achieved_gbps launch.launch_us launch.per_block_us launch.start_us
        scalar.issue_cycles cube.mmad_overhead_cycles cube.mmad_latency_cycles cube.l1_l0a_bytes_per_cycle
        cube.l1_l0b_bytes_per_cycle cube.fixpipe_overhead_cycles cube.load_overhead_cycles memory.l1_bytes""",
    Cores.BOTH: "sync.cross_core_cycles sync.sync_all_cycles gm.requests_per_cycle vector.startup_cycles",
}


@pytest.mark.parametrize(
    ("units", "name"), [(units, name) for units, names in FIGURES.items() for name in names.split()]
)
def test_a_figure_that_is_told_is_that_of_the_chip_file(units: Cores, name: str) -> None:
    section, _, field = name.partition(".")
    part = getattr(CHIP, section)
    number = getattr(part, field)
    other = evolve(CHIP, **{section: evolve(part, **{field: type(number)(3 * number)})})
    assert words_of(units, other) != words_of(units, CHIP)


@pytest.mark.parametrize("units", Cores)
def test_the_functions_of_a_tiling_are_those_that_the_audit_lets_pass(
    units: Cores, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"may call {', '.join(sorted(TILING_FUNCTIONS))} (" in words_of(units, CHIP)
    monkeypatch.setattr(prompting, "TILING_FUNCTIONS", frozenset({"fma", "min"}))
    assert "may call fma, min (" in words_of(units, CHIP)


def test_what_is_told_of_cube_cores_alone_is_none_of_a_unified_buffer() -> None:
    told = words_of(Cores.CUBE, CHIP)
    for word in ("in UB", "into UB", "DataCopyPad with", "Brcb", "GetValue of"):
        assert word not in told
    assert all(item.body for item in practices_for(["S", "MTE2", "M", "MTE1", "FIX"], Cores.CUBE, CHIP))


@pytest.mark.parametrize("units", Cores)
def test_all_topics_of_such_cores_are_listed(units: Cores) -> None:
    told = system_message(units, CHIP, structured=True)
    for card in cards():
        if card.is_topic:
            assert (units in card.cores) == (
                f"{card.experience.title.partition(': ')[0]};" in told.replace(".", ";")
            )


@pytest.mark.parametrize(("units", "blocks"), [(Cores.VECTOR, 48), (Cores.CUBE, 24), (Cores.BOTH, 72)])
def test_what_a_launch_on_all_cores_costs_is_told(units: Cores, blocks: int) -> None:
    assert f"for each block{', three of them' if units is Cores.BOTH else ''}" in words_of(units, CHIP)
    assert f": {CHIP.launch_of(blocks):.1f} us on all cores." in words_of(units, CHIP)


def test_how_memory_is_shared_is_told() -> None:
    told = words_of(Cores.VECTOR, CHIP)
    assert "One core reads at most 59 GB/s of it, so that 25 cores fill it" in told
    assert "requests of at most 512 bytes" in told


def test_costs_of_copies_and_of_scalar_accesses_are_those_of_the_chip() -> None:
    scalar = evolve(CHIP.scalar, local_access_cycles=12.5)
    other = evolve(CHIP, mte=evolve(CHIP.mte, load_latency_cycles=333), scalar=scalar)
    practice = {item.title: item.body for item in practices_for(["MTE2"], Cores.VECTOR, other)}
    assert "Each copy takes 333 cycles" in practice["Tiles of 16 KB and more"]
    rule = {item.title: item.body for item in rules(Cores.VECTOR, other)}
    assert "each takes 12.5 cycles" in rule["Scalar loops"]
