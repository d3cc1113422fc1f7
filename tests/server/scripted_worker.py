"""A worker that follows a script: the protocol of the real one without torch, compiler or verifier.

It finds ``torch.softmax(NAME, dim=-1)``, "verifies" kernels of decreasing latency and keeps them in the
memory. Behaviour comes from the environment: SCRIPT_PAUSE_S between attempts, SCRIPT_AWAY names a file
whose presence means that nobody can judge, for the reason in it (by default the verifier is away);
SCRIPT_DEAD is what a synthesis says that finds no endpoint.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from attrs import evolve

from evokernel_core import paths
from evokernel_core.domain.call_site import CallSite
from evokernel_core.domain.experience import Stage
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.task import TOLERANCES, KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Latency, LatencySource, Verdict
from evokernel_core.memory.candidates import Attempt
from evokernel_core.memory.store import Memory
from evokernel_core.package.backup import back_up_changed
from evokernel_core.package.integrity import sealed
from evokernel_core.targets.ascendc.source import KERNEL, ascendc_source

PAUSE_S = float(os.environ.get("SCRIPT_PAUSE_S", "0.02"))
AWAY = os.environ.get("SCRIPT_AWAY", "")
DEAD = os.environ.get("SCRIPT_DEAD", "")
DEVICE = {"chip": "ascend910b1"}
VERIFIER = "scripted"
SOFTMAX = re.compile(r"(?<!else )torch\.softmax\((\w+), dim=-1\)")
IMPORT = "from evokernel_kernels import {name}\n"
lock = threading.Lock()
cancelled: set[int] = set()


def configure(params: dict[str, Any]) -> dict[str, object]:
    """Kernels are for the chip of the settings from now on."""
    DEVICE["chip"] = str(params["chip"])
    return {}


def send(message: dict[str, object]) -> None:
    with lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def make_region(path: str, text: str, match: re.Match[str], ordinal: int) -> Region:
    name = match[1] if match.lastindex else "x"
    spec = TensorSpec((1024, 4096 + ord(name[0])), "float16")
    node = Node("y", "aten._softmax.default", (ValueRef("x"), -1, False), (), (spec,))
    graph = Graph((GraphInput("x", spec, expression=name),), (node,), (ValueRef("y"),))
    task = KernelTask("softmax", graph, (), TOLERANCES["float16"], "softmax")
    line = text.count("\n", 0, match.start()) + 1
    column = match.start() - (text.rfind("\n", 0, match.start()) + 1)
    digest = hashlib.sha256(match[0].encode()).hexdigest()
    return Region(
        id=f"forward/{ordinal}/{digest[:8]}",
        file=path,
        symbol="Model.forward",
        span=Span(line, column, line, column + len(match[0])),
        source=match[0],
        source_hash=digest,
        op_category="softmax",
        status=RegionStatus.CANDIDATE,
        task=task,
        site=CallSite("{call} if {holds} else {original}", match[0], parameters=match.groups()[:1]),
    )


def regions(params: dict[str, str]) -> dict[str, object]:
    text = params["text"]
    estimate = {
        "now_us": 412.0,
        "after_us": 35.0,
        "bound_us": 31.0,
        "source": "modelled",
        "chip": DEVICE["chip"],
    }
    seen: Counter[str] = Counter()
    found = []
    for match in SOFTMAX.finditer(text):  # as in the real worker: the number among equals
        found.append(make_region(params["path"], text, match, seen[match[0]]))
        seen[match[0]] += 1
    if "import broken" in text:
        raise Failure(
            "import_failed", "Importing it failed at line {line} (ImportError): correct the file.", line=4
        )
    if params.get("programs") and "import slow" in text:
        time.sleep(600)  # ends with the process
    if params.get("programs") and len(found) > 1:
        found.append(around(found, text))
    if "import hopeless" in text:
        estimate["after_us"] = 400.0
    if "import internal" in text:
        raise Failure("internal", "This work met a defect of EvoKernel while answering: please report it.")
    if "import pause" in text:
        time.sleep(1.0)
    answer = [{"region": to_data(region), "estimate": estimate} for region in found]
    answer += [{"region": to_data(item), "estimate": None} for item in without(params)]
    return {"regions": answer, "interpreter": "/usr/bin/python3 (python3 on PATH)"}


def without(params: dict[str, str]) -> list[Region]:
    """Regions without a kernel: Fourier transforms, and functions called ``needy``."""
    text, found = params["text"], []
    for n, match in enumerate(re.finditer(r"torch\.fft\.fft\(x\)|needy(?=\()", text)):
        region = make_region(params["path"], text, match, n)
        needs = match[0] == "needy"
        status = RegionStatus.NEEDS_SHAPES if needs else RegionStatus.UNSUPPORTED
        line = region.span.line
        reason = Sentence("Line {line} uses aten.fft.", line=line)
        if needs:
            reason = Sentence("Nothing says the shapes of needy's inputs.")
        found.append(evolve(region, id=f"without/{n}", status=status, reason=reason, task=None))
    return found


def around(found: list[Region], text: str) -> Region:
    """The whole lines from the first region to the last, as a program of kernels would take them."""
    first, last = found[0].span.line, found[-1].span.line
    lines = text.splitlines(keepends=True)[first - 1 : last]
    span = Span(first, 0, last, len(lines[-1].rstrip()))
    source = "".join(lines).rstrip()
    return evolve(found[0], id="forward/whole", span=span, source=source, op_category="program")


class Failure(Exception):
    def __init__(self, reason: str, message: str, **values: object) -> None:
        super().__init__(message)
        self.reason, self.sentence = reason, Sentence(message, **values)


def latency_of(n: int) -> float:
    return max(31.0, 60.0 - 5.0 * n)


def attempt(memory: Memory, task: KernelTask, job_id: str, n: int) -> Verdict:
    source = ascendc_source("// tiling", f"// kernel {n}\n", Strategy("rowwise", {"tile": n}))
    gates = tuple(GateResult(gate, GateStatus.PASSED) for gate in GateName)
    latency = Latency(latency_of(n), LatencySource.MODELLED, DEVICE["chip"], 48, (), "MTE2", 31.0, 412.0)
    verdict = Verdict(task.task_id, source.source_id, VERIFIER, gates, latency)
    memory.record_candidate(source)
    memory.record_verdict(verdict, DEVICE["chip"])
    stage = Stage.DRAFT if n == 1 else Stage.REFINE
    memory.record_attempt(
        Attempt(
            job_id, n, task.task_id, source.source_id, "", stage, "scripted", VERIFIER, DEVICE["chip"], True
        ),
        [f"item-{n}"],
    )
    return verdict


def synthesise(number: int, params: dict[str, object]) -> dict[str, object]:
    region = from_data(params["region"], Region)
    assert region.task is not None
    job_id, budget = str(params["job_id"]), int(str(params["budget"]))
    with Memory(paths.memory_path()) as memory:
        memory.record_task(region.task, {"softmax": 1.0})
        done = len(memory.attempts(job_id=job_id))
        last = min(budget, 1 if params["mode"] == "generate" else 5)
        offset = 0 if params["mode"] == "generate" else 1
        for n in range(done + 1, last + 1):
            time.sleep(PAUSE_S)
            if DEAD:
                raise Failure("endpoint_error", DEAD)
            if number in cancelled:
                raise Failure("cancelled", "The synthesis was cancelled.")
            if AWAY and Path(AWAY).exists():
                reason = Path(AWAY).read_text("utf-8") or "verifier_unavailable"
                raise Failure(reason, "Nobody can judge now; make it possible.")
            verdict = attempt(memory, region.task, job_id, n + offset)
            assert verdict.latency is not None
            send(
                {
                    "id": number,
                    "event": {
                        "kind": "attempt", "n": n, "budget": budget, "stage": "draft", "feasible": True,
                        "latency_us": verdict.latency.us, "best_us": verdict.latency.us,
                        "best_source": verdict.latency.source.value,
                        "verdict_summary": "feasible",
                    },
                }
            )  # fmt: skip
        best = memory.best(region.task.task_id, DEVICE["chip"], LatencySource.MODELLED)
        if best is None:  # the person turned all of them down
            return {"status": "infeasible", "reason": "all were rejected", "attempts": last, "best": None}
        return {
            "status": "verified",
            "reason": "",
            "attempts": last,
            "first_latency_us": latency_of(1),
            "best": {
                "source_id": best.source.source_id,
                "latency": to_data(best.verdict.latency),
                "verifier": VERIFIER,
            },
        }


def package(params: dict[str, object]) -> dict[str, object]:
    region = from_data(params["region"], Region)
    assert region.task is not None
    name = f"softmax_{region.task.task_id[:8]}"
    folder = Path(region.file).parent / "evokernel_kernels" / name
    with Memory(paths.memory_path()) as memory:
        source = memory.source(str(params["source_id"]))
        verdict = memory.verdict(region.task.task_id, str(params["source_id"]), VERIFIER, DEVICE["chip"])
    assert source is not None
    folder.parent.mkdir(exist_ok=True)
    backup = back_up_changed(folder)
    temporary = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=folder.parent))
    call = {"site": {"original": region.source}}
    manifest = {"verdict": to_data(verdict), "name": name, "call": call}
    files = {"op_kernel.cpp": source.files[KERNEL], "__init__.py": ""}
    for file_name, text in {**files, "kernel.json": sealed(manifest, files)}.items():
        (temporary / file_name).write_text(text)
    if folder.exists():
        for file in temporary.iterdir():
            file.replace(folder / file.name)
        temporary.rmdir()
    else:
        temporary.rename(folder)
    return {"name": name, "dir": str(folder), "backup": str(backup or "")}


def plan(params: dict[str, object]) -> dict[str, object]:
    """As the real one: nothing is written, and a text that calls the kernel already needs no edits."""
    region = from_data(params["region"], Region)
    assert region.task is not None
    name = f"softmax_{region.task.task_id[:8]}"
    edits = edit({**params, "name": name})["edits"] if "text" in params else []
    expression = region.task.graph.inputs[0].expression
    return {"name": name, "edits": edits, "guards": [f"{expression} is float16."], "rival": None}


def timeline(params: dict[str, object]) -> dict[str, object]:
    folder = paths.cache_dir() / "timelines"
    folder.mkdir(exist_ok=True)
    page = folder / f"{params['source_id']}.html"
    page.write_text("<!doctype html>")
    return {"path": str(page)}


def offsets(text: str, span: Span) -> tuple[int, int]:
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:n])) for n in range(len(lines) + 1)]
    return starts[span.line - 1] + span.column, starts[span.end_line - 1] + span.end_column


def point(text: str, offset: int) -> dict[str, int]:
    line = text.count("\n", 0, offset)
    return {"line": line, "character": offset - (text.rfind("\n", 0, offset) + 1)}


def change(text: str, start: int, end: int, new: str) -> dict[str, object]:
    return {"range": {"start": point(text, start), "end": point(text, end)}, "new_text": new}


def edit(params: dict[str, object]) -> dict[str, object]:
    region, text, name = from_data(params["region"], Region), str(params["text"]), str(params["name"])
    assert region.task is not None
    start, end = offsets(text, region.span)
    if text[start:end] != region.source:
        raise Failure("edit_conflict", "The text changed since the edit was planned; ask again.")
    argument = region.task.graph.inputs[0].expression
    after_import = text.index("import torch\n") + len("import torch\n")
    return {
        "edits": [
            change(text, after_import, after_import, IMPORT.format(name=name)),
            change(text, start, end, guarded(name, argument, region.source)),
        ]
    }


def guarded(name: str, argument: str, source: str) -> str:
    return f"({name}.run({argument}) if {name}.holds({argument}) else {source})"


def revert_edit(params: dict[str, object]) -> dict[str, object]:
    region, text, name = from_data(params["region"], Region), str(params["text"]), str(params["name"])
    match = re.search(
        rf"\({name}\.run\((\w+)\) if {name}\.holds\(\1\) else {re.escape(region.source)}\)", text
    )
    if match is None:
        raise Failure("edit_conflict", f"The call of {name} is not in the file.")
    line = IMPORT.format(name=name)
    start = text.index(line)
    return {
        "edits": [
            change(text, start, start + len(line), ""),
            change(text, match.start(), match.end(), region.source),
        ]
    }


def answer(message: dict[str, object]) -> None:
    number, params = int(str(message["id"])), message["params"]
    assert isinstance(params, dict)
    try:
        match message["method"]:
            case "synthesise":
                result = synthesise(number, params)
            case "regions":
                result = regions(params)
                if len(found := SOFTMAX.findall(params["text"])) > 0:
                    began = {"kind": "regions", "done": 0, "total": len(found), "offer": None}
                    send({"id": number, "event": began})
            case method:
                result = METHODS[str(method)](params)
    except Failure as failure:
        send({"id": number, "error": {"reason": failure.reason, "message": failure.sentence.data()}})
    except Exception as error:
        send({"id": number, "error": {"reason": "internal", "message": repr(error)}})
        raise
    else:
        send({"id": number, "result": result})


METHODS = {
    "configure": configure,
    "package": package,
    "plan": plan,
    "timeline": timeline,
    "edit": edit,
    "revert_edit": revert_edit,
}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if message["method"] == "cancel":
            cancelled.add(message["params"]["id"])
        else:
            threading.Thread(target=answer, args=(message,), daemon=True).start()
    os._exit(0)


if __name__ == "__main__":
    main()
