"""Checks and times points of a task on a GPU, from cubins; many points a request.

    python timing_process.py

A request: ``{"op", "task", "inputs", "outputs", "systems": [{"call", "scratch"}], "runs", "seed"}`` with
inputs and outputs as ``recording.described`` has them. ``op``:

``points``: each system is compared with PyTorch once; those that are right take turns, a run each, so often.
Answer: ``{"systems": [{"us": [...]} or {"why"}], "how", "readings"}``.
``pairs``: the first two take turns, forwards and backwards. Answer: ``{"us": [[...], [...]], "how"}``.

Any request may be answered ``{"error", "broken", "at"}``: the system that ended the process, None where it
was not one alone.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.pop(0)  # the folder of this file, whose modules are not for everybody
sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.landscape import functions
from benchmarks.measuring import flags
from benchmarks.measuring.classes import STRICT
from benchmarks.measuring.errors import worst
from benchmarks.measuring.gpu_rows import MOST_ERROR
from evokernel_core.targets.triton.backends.child import state
from evokernel_core.targets.triton.backends.child.arena import Arena, needed
from evokernel_core.targets.triton.backends.child.device import Cuda
from evokernel_core.targets.triton.backends.child.driver import Driver, DriverError
from evokernel_core.targets.triton.backends.child.judge import failed
from evokernel_core.targets.triton.backends.child.launching import Launches, Modules
from evokernel_core.targets.triton.backends.child.timing import Clock, CubinSystem, abba, is_first

SLOW_RUNS, SLOW_S = 5, 0.4
"""Of a point whose runs would take longer than so many seconds, so many are made."""


class Opened:
    """A task's inputs on the device, what PyTorch makes of them, and how far its own results are off."""

    def __init__(self, torch: Any, device: str, request: Mapping[str, Any]) -> None:
        self.name = request["task"]
        self._torch = torch
        function, numbers = getattr(functions, self.name), torch.Generator(device=device)
        numbers.manual_seed(request["seed"])
        given = {one["expression"]: self._drawn(one, numbers) for one in request["inputs"]}
        self.masters = {
            one["name"]: given[one["expression"]].view(-1).view(torch.uint8) for one in request["inputs"]
        }
        with torch.no_grad():
            exact = {
                name: value.double() if value.is_floating_point() else value for name, value in given.items()
            }
            self.wanted = function(**exact)
            own = worst([function(**given)], [self.wanted])
        self.tolerance = max(MOST_ERROR, 2 * own)  # of whole numbers the share that differs: ties

    def _drawn(self, one: Mapping[str, Any], numbers: Any) -> Any:
        torch, shape = self._torch, one["shape"]
        dtype, how = getattr(torch, one["dtype"]), {"generator": numbers, "device": numbers.device}
        if dtype.is_floating_point:
            return torch.randn(shape, **how).to(dtype)
        return torch.randint(0, one["below"], shape, dtype=dtype, **how)


class Timer:
    """One device on which points of a task after the other are timed."""

    def __init__(self, device: Any, driver: Driver, clock: Any) -> None:
        self._device, self._modules, self._clock = device, Modules(driver), clock
        self._opened: Opened | None = None
        self.at: int | None = None
        """The system that runs alone."""

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What came of a request. Raises DriverError, torch's errors."""
        self._modules.trim()
        if self._opened is None or self._opened.name != request["task"]:
            self._opened = None
            self._opened = Opened(self._device.torch, self._device.name, request)
        systems = self._systems(self._opened, request)
        return (self._points if request["op"] == "points" else self._pairs)(systems, request)

    def _systems(self, opened: Opened, request: Mapping[str, Any]) -> list[CubinSystem | str]:
        """Systems in the same memory, or why one does not load."""
        torch, outputs = self._device.torch, {one["name"]: one["bytes"] for one in request["outputs"]}
        inputs = {name: master.numel() for name, master in opened.masters.items()}
        calls: list[tuple[Launches, dict[str, int]] | str] = []
        for one in request["systems"]:
            try:
                launches = Launches(self._modules, one["call"], torch)
                calls.append((launches, {**inputs, **outputs, **one["scratch"], **launches.scratch()}))
            except DriverError as error:
                calls.append(_words(error))
        most = max((needed(one[1]) for one in calls if not isinstance(one, str)), default=0)
        block = torch.empty(most, dtype=torch.uint8, device=self._device.name)

        def system(launches: Launches, sizes: dict[str, int]) -> CubinSystem:
            arena = Arena(torch, self._device.name, sizes, random.Random(request["seed"]), block)
            return CubinSystem(self._device, launches, arena, opened.masters, tuple(outputs))

        return [one if isinstance(one, str) else system(*one) for one in calls]

    def _points(self, systems: Sequence[CubinSystem | str], request: Mapping[str, Any]) -> dict[str, Any]:
        told: list[dict[str, Any]] = []
        for place, system in enumerate(systems):
            self.at = place
            told.append({"why": system} if isinstance(system, str) else self._checked(system, request))
        self.at = None
        answer: dict[str, Any] = {"systems": told, "how": "", "readings": []}
        for runs, slow in ((request["runs"], False), (SLOW_RUNS, True)):
            pairs = zip(told, systems, strict=True)
            right = [(one, system) for one, system in pairs if one.get("slow") is slow]
            if right:
                answer |= self._timed(right, runs)
        return answer

    def _timed(self, right: Sequence[tuple[dict[str, Any], Any]], runs: int) -> dict[str, Any]:
        """Adds their times to what is told of systems."""
        times = self._clock.run([system for _, system in right] * runs)
        for place, (one, system) in enumerate(right):
            one["us"] = [round(us, 2) for us in times.span[place :: len(right)]]
            del one["slow"]
            if system.changed_runs():
                one["why"] = "nondeterministic"
        return {"how": times.how, "readings": self._clock.readings}

    def _checked(self, system: CubinSystem, request: Mapping[str, Any]) -> dict[str, Any]:
        """Whether a system is right, and slow. Raises what breaks the device."""
        try:
            us = [self._once(system) for _ in range(2)][-1]
        except DriverError as error:
            if failed(error)["broken"]:
                raise
            return {"why": _words(error)}
        (output,) = request["outputs"]
        assert self._opened is not None
        torch = self._device.torch
        got = system.tensor(output["name"]).view(getattr(torch, output["dtype"])).view(output["shape"])
        off = worst([got], [self._opened.wanted])
        if not off <= self._opened.tolerance:
            return {"why": f"wrong: {off:.1e} of the root mean square"}
        stray = system.strays()
        if stray:
            return {"why": f"wrote {stray}"}
        return {"slow": us * request["runs"] > 1e6 * SLOW_S}

    def _once(self, system: CubinSystem) -> float:
        """Microseconds of a run, with what the host takes."""
        system.stage()
        self._device.wait()
        begun = time.perf_counter()
        system.go()
        self._device.wait()
        return 1e6 * (time.perf_counter() - begun)

    def _pairs(self, systems: Sequence[Any], request: Mapping[str, Any]) -> dict[str, Any]:
        first, second = systems
        for system in (first, second) * 2:
            self._once(system)
        times = self._clock.run(list(abba(first, second, request["runs"])))
        sides: list[Callable[[int], bool]] = [is_first, lambda place: not is_first(place)]
        kept = [[round(us, 3) for place, us in enumerate(times.span) if which(place)] for which in sides]
        for system in (first, second):
            system.changed_runs()
        return {"us": kept, "how": times.how}


def _words(error: BaseException) -> str:
    return f"launch: {error}"[:200]


def main() -> None:
    """Answers until its input ends or the context is lost."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    import torch

    if not torch.cuda.is_available():
        print(json.dumps({"missing": "gpu"}), file=answers)
        return
    driver = Driver()
    torch.zeros(1, device="cuda")  # makes the context
    flags.write(torch, flags.of_class(STRICT))
    monitor = state.Monitor(state.bus_id(torch))
    timer = Timer(Cuda(torch), driver, Clock(torch, monitor))
    print(json.dumps({"ready": state.conditions(torch, monitor, driver.version())}), file=answers)
    for line in sys.stdin:
        timer.at = None
        try:
            answer = timer.answer(json.loads(line))
        except Exception as error:
            answer = {**failed(error), "at": timer.at}
        print(json.dumps(answer), file=answers)
        if answer.get("broken"):
            answers.flush()
            os._exit(3)


if __name__ == "__main__":
    main()
