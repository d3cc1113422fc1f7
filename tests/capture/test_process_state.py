"""What a whole function asks of the process around it, and does to that, besides computing with tensors.

A question that the kernel's call can ask again is a guard; where the code asks or does anything else, the
reason names it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from evokernel_core.domain.region import Region
from tests.capture.edited import edited_module, runs
from tests.capture.test_program_state import Row, evaluating, imported, outcome, same, state_capture

__all__ = ["evaluating", "state_capture"]

MODULES = "collections contextvars datetime logging os random sys threading time warnings"
IMPORTS = "".join(f"\nimport {name}" for name in MODULES.split()) + "\n"
TWICE = "return torch.relu(x) * 2.0"
ACQUIRED = "Semaphore.acquire" if sys.version_info >= (3, 11) else "threading.acquire"
HELPER = """
@torch.{mode}()
def helped(x):
    return torch.relu(x) * 2.0
"""


def row(forward: str, init: str = "pass", tail: str = "") -> Row:
    return Row(forward, lambda module, model, undo: None, init=init, tail=IMPORTS + tail)


@contextmanager
def setting(set_it: Callable[[Any], Any], value: Any, before: Any) -> Iterator[None]:
    set_it(value)
    try:
        yield
    finally:
        set_it(before)


def asked(question: str) -> Row:
    return row(f"return torch.relu(x) * (2.0 if {question} else 3.0)")


GUARDED: dict[str, tuple[str, Callable[[], AbstractContextManager[Any]]]] = {
    "gradients": ("torch.is_grad_enabled()", torch.enable_grad),
    "inference": ("torch.is_inference_mode_enabled()", torch.inference_mode),
    "deterministic algorithms": ("torch.are_deterministic_algorithms_enabled()",
        lambda: setting(torch.use_deterministic_algorithms, True, False)),
    "warnings": ("torch.is_warn_always_enabled()", lambda: setting(torch.set_warn_always, True, False)),
    "precision of products": ("torch.get_float32_matmul_precision() == 'highest'",
        lambda: setting(torch.set_float32_matmul_precision, "high", "highest")),
    "default device": ("torch.get_default_device().type == 'cpu'",
        lambda: setting(torch.set_default_device, "meta", "cpu")),
}  # fmt: skip
REFUSED: dict[str, tuple[Row, str]] = {
    "seed": (asked("torch.initial_seed() == 5"), "torch.initial_seed"),
    "threads": (asked("torch.get_num_threads() == 1"), "torch.get_num_threads"),
    "seeding": (row(f"torch.manual_seed(3)\n{TWICE}"), "torch.random.manual_seed"),
    "seed of a generator": (
        row(f"self.g.manual_seed(3)\n{TWICE}", "self.g = torch.Generator()"), "Generator.manual_seed"),
    "a generator's answer": (
        row("return torch.relu(x) * (self.g.initial_seed() % 7)", "self.g = torch.Generator()"),
        "Generator.initial_seed"),
    "Python's own generator": (
        row("return torch.relu(x) * self.r.random()", "self.r = random.Random(0)"), "Random.random"),
    "a thread": (asked("threading.current_thread().name == 'T'"), "threading.current_thread"),
    "depth": (asked("sys.getrecursionlimit() == 5000"), "sys.getrecursionlimit"),
    "a clock": (asked("time.time() > 0"), "time.time"),
    "a date": (asked("datetime.datetime.now().year > 2000"), "datetime.now"),
    "a process": (asked("os.getpid() > 0"), "os.getpid"),
    "a file": (asked("os.path.exists('/nowhere')"), "os.path.exists"),
    "a warning": (row(f"warnings.warn('hm')\n{TWICE}"), "warnings.warn"),
    "a message": (row(f"logging.getLogger('a').info('hm')\n{TWICE}"), "logging"),
    "a deque": (row(f"self.q.append(1)\n{TWICE}", "self.q = collections.deque(maxlen=5)"), "deque.append"),
    "a deque of the file": (
        row(f"Q.append(1)\n{TWICE}", tail="Q = collections.deque(maxlen=5)\n"), "deque.append"),
    "a semaphore": (row(f"SEM.acquire(False)\n{TWICE}", tail="SEM = threading.Semaphore(9)\n"), ACQUIRED),
    "a variable of a context": (
        row(f"GAIN.set(GAIN.get() + 1)\n{TWICE}", tail="GAIN = contextvars.ContextVar('gain', default=0)\n"),
        "ContextVar.set"),
    "a number of a class": (
        row(f"type(self).count += 1\n{TWICE}", tail="Model.count = 0\n"), "rebinds Model.count"),
    "a variable of a thread": (
        row(f"LOCAL.count += 1\n{TWICE}", tail="LOCAL = threading.local()\nLOCAL.count = 0\n"),
        "rebinds LOCAL.count"),
    "a namespace": (
        row(f"self.n.count += 1\n{TWICE}", "self.n = types.SimpleNamespace(count=0)"),
        "rebinds self.n.count"),
    "an iterator": (row("return torch.relu(x) * next(self.it)", "self.it = iter([2.0] * 99)"), "self.it is"),
    "a loop over an iterator": (
        row("for k in self.it:\n    break\nreturn torch.relu(x) * k", "self.it = reversed([2.0] * 99)"),
        "self.it is"),
    "a counter of the file": (
        row("return torch.relu(x) * next(COUNTER)", tail="import itertools\nCOUNTER = itertools.count()\n"),
        "COUNTER is"),
    "a generator": (
        row("return torch.relu(x) * next(self.it)", "self.it = (float(k) for k in range(99))"), "self.it is"),
    "arguments of the program": (asked("'-v' in sys.argv"), "sys.argv"),
    "modules of the program": (asked("'nowhere' in sys.modules"), "sys.modules"),
    "a list of the module's": (
        row("return {'y': torch.relu(x) * 2.0, 'c': self.c}", "self.c = [1]"), "holds self.c itself"),
    "gradients switched on": (
        row("with torch.enable_grad():\n    y = torch.relu(x) * 2.0\nreturn y"), "torch.enable_grad"),
    "gradients set on": (
        row("with torch.set_grad_enabled(True):\n    y = torch.relu(x) * 2.0\nreturn y"),
        "torch.set_grad_enabled"),
    "gradients left off": (row(f"torch.set_grad_enabled(False)\n{TWICE}"), "torch.set_grad_enabled"),
    "inference within": (
        row("with torch.inference_mode():\n    y = torch.relu(x) * 2.0\nreturn y"), "torch.inference_mode"),
    "inference of a helper": (
        row("return helped(x)", tail=HELPER.format(mode="inference_mode")),
        "torch.inference_mode"),
    "a result that wants gradients": (row("return (torch.relu(x) + 1.0).requires_grad_()"), "requires_grad_"),
}  # fmt: skip
KEPT = {
    "gradients switched off": row("with torch.no_grad():\n    y = torch.relu(x) * 2.0\nreturn y"),
    "gradients set off": row("with torch.set_grad_enabled(False):\n    y = torch.relu(x) * 2.0\nreturn y"),
    "a helper without gradients": row(
        "return helped(x)", tail=HELPER.format(mode="no_grad")),
    "a deque of the call's own": row(
        "q = collections.deque()\nq.append(2.0)\nreturn torch.relu(x) * q.pop()"),
    "a deque that is read": row(
        "return torch.relu(x) * self.q[-1]", "self.q = collections.deque([1.0, 2.0])"),
    "a list that is copied": row("return torch.relu(x) * 2.0, list(self.c)", "self.c = [1]"),
    "checks": row(f"torch._check(x.shape[1] == 64)\nassert torch.is_tensor(x)\n{TWICE}"),
    "an iterator of the call's own": row("it = iter([2.0])\nreturn torch.relu(x) * next(it)"),
}  # fmt: skip


@pytest.mark.parametrize("name", GUARDED)
def test_a_question_is_asked_again_by_the_guard(name: str, state_capture: Any, tmp_path: Path) -> None:
    question, context = GUARDED[name]
    text, x = asked(question).text, torch.randn(16, 64)
    (region,) = [item for item in state_capture(text, whole=True) if item.task]
    original, edited = imported(text, tmp_path), edited_module(text, region)
    models = [module.Model().eval() for module in (original, edited)]
    assert same(*(outcome(*pair, x) for pair in zip((original, edited), models, strict=True)))
    assert runs(edited), "no kernel ran"
    with context():
        assert same(*(model(x) for model in models))


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_guard_can_ask_is_named(name: str, state_capture: Any) -> None:
    case, wanted = REFUSED[name]
    regions: tuple[Region, ...] = state_capture(case.text, whole=True)
    assert [region for region in regions if wanted in region.reason and region.task is None]


@pytest.mark.parametrize("name", KEPT)
def test_what_a_call_does_by_itself_keeps_its_kernel(name: str, state_capture: Any, tmp_path: Path) -> None:
    (region,) = [item for item in state_capture(KEPT[name].text, whole=True) if item.task]
    edited = edited_module(KEPT[name].text, region)
    with torch.no_grad():
        edited.Model().eval()(torch.randn(16, 64))
    assert runs(edited)
