"""The evidence for rules: who broke them, where, and what those kernels have in common."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from attrs import evolve

from evokernel_core.domain.experience import ExperienceKind, Stage
from evokernel_core.domain.kernel import Setting, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Verdict
from evokernel_core.memory.candidates import Attempt
from evokernel_core.memory.experiences import make_experience
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.engine import Engine
from evokernel_core.synthesis.rules import Precondition, Rule, SettingRange, in_words, learned_rules
from evokernel_core.targets.ascendc.lessons import RULES
from evokernel_core.targets.ascendc.source import ascendc_source

UB = RULES["ub-capacity"]


def test_a_rule_says_who_broke_it_where_and_when(engine: Engine, toy_task: Callable[..., KernelTask]) -> None:
    engine.run(toy_task(1), 40)
    (once,) = learned_rules(engine.memory)
    assert (once.text, once.known, once.tasks) == (UB, False, ("relu_1",))
    assert "takes 2 different tasks" in " ".join(in_words(once))
    engine.run(toy_task(2), 40)
    (rule,) = learned_rules(engine.memory)
    attempts = engine.memory.attempts()
    failed = [item.created for item in attempts if "ub-capacity" in item.feedback]
    assert rule.known
    assert rule.tasks == ("relu_1", "relu_2")
    assert (rule.broken, rule.first_at, rule.last_at) == (len(failed), failed[0], failed[-1])
    assert rule.judged == len({(item.task_id, item.source_id) for item in attempts})
    told = " ".join(in_words(rule))
    assert f"{rule.broken} of {rule.judged} judged kernels" in told
    assert "2 tasks: relu_1, relu_2" in told
    assert "takes 2 different tasks" not in told


def judge(memory: Memory, task: KernelTask, n: int, breaks: bool, **settings: Setting) -> None:
    """Writes down a kernel with these settings that broke the rule, or that failed in another way."""
    source = ascendc_source("", f"kernel {n}", Strategy("rows", tuple(settings.items())))
    code = "ub-capacity" if breaks else "numeric"
    gate = GateResult(GateName.CORRECTNESS, GateStatus.FAILED, code, "no")
    memory.record_task(task, {})
    memory.record_candidate(source)
    memory.record_verdict(Verdict(task.task_id, source.source_id, "twin", (gate,)), "chip")
    where = (task.task_id, source.source_id, "", Stage.DRAFT, "toy", "twin", "chip", False)
    memory.record_attempt(Attempt("job", n, *where), ())


def record_kernel(memory: Memory, task: KernelTask, n: int, *, fails: bool) -> None:
    """The same with a record of its schedule, whose tile is large where it fails."""
    judge(memory, task, n, fails, tile=4096 if fails else 64)
    source = memory.attempts()[-1].source_id
    features = (("rows.tile", math.log2(4097 if fails else 65) / 10),)
    made = TuningRecord(task.task_id, source, "chip", "twin", "rows", 9.0, 9.0, features)
    failed = evolve(made, latency_us=None, failure="correctness:ub-capacity")
    memory.record_tuning(failed if fails else made)


@pytest.mark.parametrize(
    ("broke", "kept", "conditions", "held"),
    [
        ([{"tile": 4096}, {"tile": 8192}], [{"tile": 512}, {"tile": 1024}], ("tile >= 4096",), 2),
        ([{"tile": 8}], [{"tile": 512}], ("tile is 8",), 1),
        ([{"tile": 8}, {"tile": 16}], [{"tile": 512}], ("tile <= 16",), 2),
        ([{"two": True, "tile": 9}], [{"two": False, "tile": 9}], ("two is True",), 1),
        ([{"tile": 9}], [{"tile": 9, "x": 1}], (), 2),
        ([{"tile": 9}], [], (), 1),
        ([{"tile": 9}], [{"tile": 9}, {"tile": 9}, {"tile": 4}], (), 4),
        (
            [{"a": "p", "b": "p"}],
            [{"a": "p", "b": "q"}, {"a": "q", "b": "p"}, {"a": "p", "b": "q"}],
            ("b is p", "a is p"),
            1,
        ),
        ([{"tile": 4}, {"tile": 9}], [{"tile": 6}, {"tile": 20}], ("tile <= 9",), 3),
        ([{"tile": 4, "x": 1}], [{"x": 1}], ("tile is 4",), 1),
    ],
)
def test_what_broken_kernels_have_in_common(
    memory: Memory,
    toy_task: Callable[..., KernelTask],
    broke: list[dict[str, Setting]],
    kept: list[dict[str, Setting]],
    conditions: tuple[str, ...],
    held: int,
) -> None:
    for n, settings in enumerate((*broke, *kept), 1):
        judge(memory, toy_task(1), n, n <= len(broke), **settings)
    (rule,) = learned_rules(memory)
    (found,) = rule.preconditions
    assert tuple(map(str, found.conditions)) == conditions
    assert (found.family, found.held, found.failed) == ("rows", held, len(broke))


def test_the_kind_of_task_is_a_condition(memory: Memory, toy_task: Callable[..., KernelTask]) -> None:
    judge(memory, toy_task(1, "softmax"), 1, True, tile=8)
    judge(memory, toy_task(2, "loss"), 2, False, tile=8)
    (rule,) = learned_rules(memory)
    assert [str(item) for item in rule.preconditions[0].conditions] == ["op category is softmax"]


def test_a_rule_about_schedules_has_the_failures_that_it_came_from(
    memory: Memory, toy_task: Callable[..., KernelTask]
) -> None:
    for n in range(1, 9):
        record_kernel(memory, toy_task(n % 3), n, fails=n > 4)
    about_hazards, about_schedules = sorted(learned_rules(memory), key=lambda rule: "schedule" in rule.text)
    assert about_schedules.text.startswith("You cannot use a rows schedule with tile of ")
    assert (about_schedules.broken, about_schedules.judged) == (about_hazards.broken, 8)
    assert about_schedules.preconditions == () and len(about_schedules.tasks) > 1


def test_rules_of_the_hardware_need_no_statistics(
    memory: Memory, toy_task: Callable[..., KernelTask]
) -> None:
    for n in range(1, 9):
        record_kernel(memory, toy_task(n % 3), n, fails=n > 4)
    (rule,) = learned_rules(memory, schedules=False)
    assert (rule.text, rule.broken) == (UB, 4)


def test_a_rule_of_a_pack_has_no_evidence_here(memory: Memory) -> None:
    memory.add_experience(make_experience(ExperienceKind.RULE, UB, UB))
    (rule,) = learned_rules(memory)
    assert (rule.broken, rule.known) == (0, True)
    assert "No kernel here broke it" in " ".join(in_words(rule))


def test_sentences_name_at_most_five_tasks() -> None:
    condition = SettingRange("tile", 4096, None)
    where = (Precondition("rows", (condition,), 9, 8), Precondition("model", (), 2, 1))
    rule = Rule("id", UB, True, 9, 40, tuple(f"t{n}" for n in range(7)), 1.0, 2.0, where)
    told = tuple(in_words(evolve(rule, values=((Stage.DRAFT, -0.25),))))
    assert told[0] == UB
    assert told[1].endswith("on 7 tasks: t0, t1, t2, t3, t4 and 2 more.")
    assert told[2:] == (
        "Of 9 rows kernels where tile >= 4096, 8 broke it.",
        "Of 2 model kernels, 1 broke it.",
        "Shown to a proposer in the draft stage it is worth -0.250.",
    )
