"""The process that judges, as made-up ones that answer, hang and die."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pytest

from evokernel_core.domain.errors import VerifierUnavailable
from evokernel_core.targets.triton.backends import gpu_process
from evokernel_core.targets.triton.backends.gpu_process import (
    JudgeLost,
    JudgePool,
    JudgeProcess,
    judge_command,
)

HELLO = 'print(json.dumps({"ready": {"device": "made up", "pid": os.getpid()}}), flush=True)'
BODY = """
for line in sys.stdin:
    asked = json.loads(line)
    if asked["do"] == "hang":
        time.sleep(60)
    if asked["do"] == "die":
        print("line one\\nthe context is gone", file=sys.stderr)
        os._exit(3)
    print(json.dumps({"did": asked["do"], "pid": os.getpid(), "broken": asked["do"] == "break"}), flush=True)
"""


def process(hello: str = HELLO, body: str = BODY) -> JudgeProcess:
    return JudgeProcess(
        [sys.executable, "-S", "-E", "-u", "-c", f"import json, os, sys, time\n{hello}\n{body}"]
    )


@pytest.fixture
def judge() -> Iterator[JudgeProcess]:
    one = process()
    yield one
    one.close()


@pytest.fixture
def pool() -> Iterator[JudgePool]:
    one = JudgePool(process)
    yield one
    one.close()


def test_it_says_what_it_is_and_answers(judge: JudgeProcess) -> None:
    assert judge.ready()["device"] == "made up" and judge.ready() == judge.ready()
    assert [judge.ask({"do": word}, 20)["did"] for word in ("a", "b" * 200_000)] == ["a", "b" * 200_000]


def test_one_that_hangs_is_killed(judge: JudgeProcess) -> None:
    judge.ready()
    began = time.monotonic()
    with pytest.raises(JudgeLost) as lost:
        judge.ask({"do": "hang"}, 0.2)
    assert lost.value.hung and time.monotonic() - began < 10


def test_one_that_dies_leaves_its_last_words(judge: JudgeProcess) -> None:
    judge.ready()
    with pytest.raises(JudgeLost, match="the context is gone") as lost:
        judge.ask({"do": "die"}, 20)
    assert not lost.value.hung
    judge.close()  # twice is once


@pytest.mark.parametrize(
    ("hello", "words"),
    [
        ('print(json.dumps({"missing": "torch"}))', "has no PyTorch; install it"),
        ('print(json.dumps({"missing": "gpu"}))', "sees no CUDA device here"),
        ('print(json.dumps({"missing": "driver", "error": "libcuda.so.1"}))', "does not start: libcuda.so.1"),
        ('print(json.dumps({"missing": "driver"}))', "no driver was found"),
        ('sys.exit("no such module")', "did not start: no such module"),
        ("sys.exit(1)", "did not start: it said nothing"),
    ],
)
def test_what_cannot_judge_says_what_is_missing(hello: str, words: str) -> None:
    one = process(hello)
    with pytest.raises(VerifierUnavailable, match=words):
        one.ready()
    one.close()


def test_one_that_never_begins_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_process, "START_SECONDS", 0.3)
    with pytest.raises(VerifierUnavailable, match="did not start: it said nothing"):
        process("time.sleep(60)").ready()


@pytest.mark.parametrize("way", ["hang", "die"])
def test_another_stands_in_the_place_of_one_that_was_lost(pool: JudgePool, way: str) -> None:
    first = pool.conditions()["pid"]
    assert pool.ask({"do": "a"}, 20)["pid"] == first
    with pytest.raises(JudgeLost):
        pool.ask({"do": way}, 0.5 if way == "hang" else 20)
    assert pool.ask({"do": "b"}, 20)["pid"] != first


def test_one_without_a_context_answers_and_is_not_asked_again(pool: JudgePool) -> None:
    first = pool.ask({"do": "break"}, 20)
    assert first["did"] == "break"
    assert pool.ask({"do": "a"}, 20)["pid"] != first["pid"]


def test_the_process_is_in_the_interpreter_that_is_named() -> None:
    assert judge_command("/usr/bin/python9")[0] == "/usr/bin/python9"
    assert judge_command("")[0] == sys.executable and judge_command("")[-1] == "judge"
