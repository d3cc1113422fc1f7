"""Runs and times candidates on a GPU, from cubins and records: one request a line, one answer a line.

    python child judge

The first line that it writes says what machine this is, or why it cannot judge. A request has ``op``:

``execute``: ``{"call", "inputs": [tensor], "outputs": [tensor], "scratch": {name: bytes}, "repeat", "seed"}``
with a tensor as ``{"name", "bytes", "file", "part"}``. Answer: ``{"hazards": [[code, name]]}``; outputs are
in their files.

``measure``: ``{"systems": [{"call", "scratch"}], "inputs": [{"name", "bytes", "dtype", "shape", "file"}],
"outputs", "runs", "seed"}``, with one system ``runs`` runs of it, with two as many pairs. Answer:
``{"how", "kernels", "times": [...], "readings", "changed": [...], "strays": [...]}``.

Any request may be answered ``{"error", "broken"}``; a broken process has ended.
"""

from __future__ import annotations

import importlib
import json
import os
import queue
import random
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from . import state
from .arena import Arena, needed
from .device import Cuda
from .driver import NO_CONTEXT_LEFT, Driver, DriverError
from .launching import Launches, Modules
from .tensors import drawn, filled, written
from .timing import Clock, CubinSystem, abba, is_first

WARM_UPS = 5
FEWEST = 2
"""Runs of a case at least, each on other bytes."""


class Judge:
    """One device, with its context made."""

    def __init__(self, device: Any, driver: Driver, clock: Callable[[], Any]) -> None:
        """``clock`` makes what times runs, when it is first needed."""
        self._device, self._modules = device, Modules(driver)
        self._make_clock = clock
        self._clock: Any = None

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What came of a request. Raises DriverError, torch's errors, OSError."""
        self._modules.trim()
        if request["op"] == "execute":
            return self._execute(request)
        return self._measure(request)

    def _execute(self, request: Mapping[str, Any]) -> dict[str, Any]:
        numbers = random.Random(request["seed"])
        masters = {one["name"]: filled(self._device, one) for one in request["inputs"]}
        outputs = {one["name"]: one for one in request["outputs"]}
        system = self._system(request, masters, numbers)
        first: dict[str, Any] = {}
        hazards: list[list[str]] = []
        for turn in range(max(FEWEST, request["repeat"])):
            system.stage()
            system.go()
            self._device.wait()
            seen = {name: system.tensor(name).clone() for name in outputs}
            unwritten = {name: system.unwritten(name) for name in outputs}
            if turn:
                hazards += _compared(first, seen, unwritten)
            else:
                first = {name: (seen[name], unwritten[name]) for name in outputs}
            stray = system.strays()
            hazards += [_hazard(stray)] if stray else []
            if hazards:
                break
        for name, one in outputs.items():
            written(self._device.torch, first[name][0], one)
        return {"hazards": hazards}

    def _system(
        self, request: Mapping[str, Any], masters: dict[str, Any], numbers: random.Random
    ) -> CubinSystem:
        launches = Launches(self._modules, request["call"], self._device.torch)
        sizes = _sizes(launches, request, masters)
        arena = Arena(self._device.torch, self._device.name, sizes, numbers)
        return CubinSystem(self._device, launches, arena, masters, _outputs(request))

    def _in_turn(
        self, request: Mapping[str, Any], masters: dict[str, Any], numbers: random.Random
    ) -> list[CubinSystem]:
        """Systems that take turns in the same memory, and in each pair of runs at the same places: where
        memory lies on the device makes runs up to a thousandth slower, in all of a session's runs alike."""
        torch, seed = self._device.torch, numbers.getrandbits(64)
        calls = [Launches(self._modules, one["call"], torch) for one in request["systems"]]
        sizes = [
            _sizes(call, {**request, **one}, masters)
            for call, one in zip(calls, request["systems"], strict=True)
        ]
        block = torch.empty(max(map(needed, sizes)), dtype=torch.uint8, device=self._device.name)
        arenas = [Arena(torch, self._device.name, one, random.Random(seed), block) for one in sizes]
        return [
            CubinSystem(self._device, call, arena, masters, _outputs(request))
            for call, arena in zip(calls, arenas, strict=True)
        ]

    def _stray(self, system: CubinSystem) -> str | None:
        """What one more run does beside its outputs; others have used the memory since its last."""
        system.stage()
        system.go()
        self._device.wait()
        return system.strays()

    def _measure(self, request: Mapping[str, Any]) -> dict[str, Any]:
        numbers = random.Random(request["seed"])
        masters = {one["name"]: drawn(self._device, one, request["seed"] + place)
                   for place, one in enumerate(request["inputs"])}  # fmt: skip
        systems = self._in_turn(request, masters, numbers)
        if self._clock is None:
            self._clock = self._make_clock()
        runs = request["runs"]
        order = list(abba(systems[0], systems[1], runs)) if len(systems) > 1 else systems * runs
        for system in systems * WARM_UPS:
            _once(system)
        times = self._clock.run(order)
        sides = (is_first, lambda place: not is_first(place)) if len(systems) > 1 else (lambda place: True,)
        return {
            "how": times.how,
            "kernels": times.kernels,
            "times": [times.data(side) for side in sides],
            "readings": self._clock.readings,
            "changed": [system.changed_runs() for system in systems],
            "strays": [self._stray(system) for system in systems],
        }


def _sizes(launches: Launches, request: Mapping[str, Any], masters: Mapping[str, Any]) -> dict[str, int]:
    """Bytes of all tensors of a call but those that libraries make."""
    inputs = {name: master.numel() for name, master in masters.items()}
    outputs = {one["name"]: one["bytes"] for one in request["outputs"]}
    sizes = {**inputs, **outputs, **request["scratch"], **launches.scratch()}
    return {name: nbytes for name, nbytes in sizes.items() if name not in launches.made()}


def _outputs(request: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(one["name"] for one in request["outputs"])


def _once(system: CubinSystem) -> None:
    system.stage()
    system.go()
    system.finish()


def _compared(
    first: Mapping[str, Any], seen: Mapping[str, Any], unwritten: Mapping[str, Any]
) -> list[list[str]]:
    """What two runs on the same inputs say: outputs that differ, or that nobody wrote."""
    hazards = []
    for name, now in seen.items():
        then, missing = first[name]
        if bool((missing & unwritten[name] & (now != then)).any()):
            hazards.append(["output-not-written", name])
        elif bool((now != then).any()):
            hazards.append(["nondeterministic", name])
    return hazards


def _hazard(stray: str) -> list[str]:
    what, _, name = stray.partition(" ")
    return ["input-modified" if what == "input" else "out-of-bounds", name]


def _opened() -> tuple[Judge | None, dict[str, Any]]:
    """The judge, or what is missing for one."""
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        return None, {"missing": "torch"}
    if not torch.cuda.is_available() or torch.version.cuda is None:
        return None, {"missing": "gpu"}
    try:
        driver = Driver()
        torch.zeros(1, device="cuda")  # makes the context
        monitor = state.Monitor(state.bus_id(torch))
        conditions = state.conditions(torch, monitor, driver.version())
    except (OSError, DriverError, RuntimeError) as error:
        return None, {"missing": "driver", "error": str(error)[:500]}
    return Judge(Cuda(torch), driver, lambda: Clock(torch, monitor)), {"ready": conditions}


def failed(error: BaseException) -> dict[str, Any]:
    """An answer that says what went wrong, and whether the process is of no use any more."""
    code = error.code if isinstance(error, DriverError) else 0
    memory = type(error).__name__ == "OutOfMemoryError"
    broken = code in NO_CONTEXT_LEFT or (isinstance(error, RuntimeError) and not memory)
    said = str(error).strip().splitlines() or [type(error).__name__]
    return {"error": said[0][:400], "broken": broken, "memory": memory}


def _read(requests: queue.SimpleQueue[str]) -> None:
    """Ends the process with its input, even while it waits for a kernel that never ends."""
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


def main(arguments: list[str]) -> None:
    """Answers until the input ends or the context is lost."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    judge, hello = _opened()
    print(json.dumps(hello), file=answers)
    if judge is None:
        return
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    while True:
        try:
            answer = judge.answer(json.loads(requests.get()))
        except Exception as error:
            answer = failed(error)
        print(json.dumps(answer), file=answers)
        if answer.get("broken"):
            answers.flush()
            os._exit(3)  # torch would wait for a context that answers nothing more
