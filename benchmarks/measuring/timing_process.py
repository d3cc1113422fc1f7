"""Times ours, from cubins, beside a problem's own file, eager and compiled, and beside kernels that others
published; one problem a request.

    python timing_process.py CACHE LOCK DEVICE

A request: ``{"file", "inputs", "outputs", "scratch", "call", "double", "strict", "others", "tuned",
"seconds"}`` with inputs and outputs as ``problems.Prepared`` has them, ``call`` as the judge takes it or
null, ``double`` whether a reference in float64 fits, ``strict`` whether TF32 makes a difference, ``others``
files of kernels by system, ``tuned`` whether torch.compile runs with max-autotune, too. Answer: ``{"systems":
{name: {"error", "why"}}, "classes": {name: {...}}, ...}`` or ``{"error", "broken", "memory"}``.
"""

from __future__ import annotations

import copy
import functools
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

from benchmarks.measuring import flags
from benchmarks.measuring.classes import AS_LEFT, COMPILE, EAGER, MODES, OURS, STRICT, TUNED, TUNED_MODE
from benchmarks.measuring.errors import worst
from benchmarks.measuring.files import SEED, THREADS, Opened, alone, forget, is_drawn
from benchmarks.measuring.others import Other
from benchmarks.measuring.torch_system import TorchSystem
from benchmarks.measuring.turns import Turn, Turns
from evokernel_core.targets.triton.backends.child import state
from evokernel_core.targets.triton.backends.child.arena import Arena
from evokernel_core.targets.triton.backends.child.device import Cuda
from evokernel_core.targets.triton.backends.child.driver import Driver
from evokernel_core.targets.triton.backends.child.judge import failed
from evokernel_core.targets.triton.backends.child.launching import Launches, Modules
from evokernel_core.targets.triton.backends.child.timing import CubinSystem

SESSIONS = ("decision", "figure")
"""Which rows are edited is decided on one; the figures come from another."""
SLOW_US, SLOWER, SLOW_ROUNDS = 10_000.0, 2.0, 4
"""What is not PyTorch's is timed apart, a few times, where it takes so long and so many times as long."""
_COPIED = 1 << 30
"""Bytes of the copy that tells the memory's rate."""


class Timer:
    """One device on which problems are timed, one after another."""

    def __init__(self, torch: Any, device: Any, modules: Modules, turns: Any, lock: str) -> None:
        self._torch, self._device, self._modules = torch, device, modules
        self._turns, self._lock = turns, lock

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What came of a problem. Raises DriverError, torch's errors, and what the file raises."""
        self._modules.trim()
        with self._torch.no_grad():
            return Timed(self._torch, self._device, self._modules, self._turns, request).told(self._lock)


class Timed:
    """A problem's systems, ours, PyTorch's and others', on the same inputs."""

    def __init__(
        self, torch: Any, device: Any, modules: Modules, turns: Any, request: Mapping[str, Any]
    ) -> None:
        self._torch, self._device, self._request, self._turns = torch, device, request, turns
        self._opened = Opened(torch, request["file"], device.name)
        given = [one for one in request["inputs"] if one["kind"] != "scalar"]
        self._drawn = any(is_drawn(one["expression"]) for one in given)
        self._before = _state(self._opened.model)
        self._exact = False
        self._outputs = 0
        self._others: dict[str, Other] = {}
        self._verified: dict[str, Any] = {}
        self._systems: dict[str, Any] = {}
        self._why: dict[str, str] = {}
        if request["call"] is not None:
            masters = {one["name"]: self._master(one["expression"]) for one in given}
            _require_sizes(masters, given)
            self._systems[OURS] = self._ours(modules, masters)

    def _master(self, expression: str) -> Any:
        """The bytes of an input; a copy where the model itself changes them."""
        value = self._opened.value(expression).detach().contiguous()
        if any(value.data_ptr() == buffer.data_ptr() for buffer in self._opened.model.buffers()):
            value = value.clone()
        return value.view(-1).view(self._torch.uint8)

    def _ours(self, modules: Modules, masters: dict[str, Any]) -> CubinSystem:
        request, numbers = self._request, random.Random(SEED)
        launches = Launches(modules, request["call"], self._torch)
        outputs = {one["name"]: one["bytes"] for one in request["outputs"]}
        inputs = {name: master.numel() for name, master in masters.items()}
        sizes = {**inputs, **outputs, **request["scratch"], **launches.scratch()}
        sizes = {name: nbytes for name, nbytes in sizes.items() if name not in launches.made()}
        arena = Arena(self._torch, self._device.name, sizes, numbers)
        return CubinSystem(self._device, launches, arena, masters, tuple(outputs))

    def told(self, lock: str) -> dict[str, Any]:
        """Errors of all systems in each class, then their times."""
        began = time.monotonic()
        opened, classes = self._opened, [AS_LEFT, *([STRICT] if self._request["strict"] else [])]
        model = self._torch.compile(opened.model)
        self._systems[EAGER] = self._system(opened.model)
        self._systems[COMPILE] = self._system(model)
        tuned = self._tuned(lock)
        errors, reference = self._errors(classes, {EAGER: opened.model, COMPILE: model, TUNED: tuned})
        looked = time.monotonic()
        with alone(lock):
            told = {name: self._sessions(name) for name in classes}
        return {
            "classes": {name: {**told[name], "errors": errors[name]} for name in classes},
            "why": self._why,
            "reference": reference,
            "drawn": self._drawn,
            "exact": self._exact,
            "parameters": {name: other.parameters for name, other in self._others.items()},
            "flags": {name: other.flags for name, other in self._others.items()},
            "strays": self._systems[OURS].strays() if OURS in self._systems else None,
            "seconds": [round(looked - began, 1), round(time.monotonic() - looked, 1)],
        }

    def _system(self, function: Callable[..., Any]) -> TorchSystem:
        return TorchSystem(self._torch, function, self._opened.inputs, SEED, self._device.name)

    def _tuned(self, lock: str) -> Any:
        """Has what tunes itself do so, on a device that nobody else uses: others' kernels, and the model
        with max-autotune, which it returns, without CUDA graphs as nothing else has them."""
        model = self._torch.compile(self._opened.model, mode=TUNED_MODE) if self._request["tuned"] else None
        firsts: dict[str, Callable[[], Any]] = {
            name: functools.partial(self._other, name, path) for name, path in self._request["others"].items()
        }
        if model is not None:
            flags.write(self._torch, flags.of_class(AS_LEFT))
            firsts = {TUNED: lambda: self._results(model), **firsts}
            self._systems[TUNED] = self._system(model)
        for name, first in firsts.items():
            try:
                with alone(lock):
                    first()
                    self._device.wait()
            except Exception as error:
                self._lose(name, error)
        return model

    def _other(self, name: str, path: str) -> None:
        other = self._others[name] = Other(self._torch, path, self._opened)
        other.first()
        self._systems[name] = self._system(other.call)

    def _lose(self, system: str, error: Exception) -> None:
        """Goes on without a system. Raises the error where the device had too little memory for one that may
        be left out, and torch's where the device is of no use any more."""
        if system not in (OURS, EAGER, COMPILE) and failed(error)["memory"]:
            raise error
        self._why[system] = f"{type(error).__name__}: {error}"[:300]
        self._systems.pop(system, None)
        self._device.wait()

    def _errors(
        self, classes: Sequence[str], models: Mapping[str, Any]
    ) -> tuple[dict[str, dict[str, float]], str]:
        """How far each system is from the reference in each class, and what that is."""
        kind, wanted = self._reference()
        self._exact = not all(one.is_floating_point() for one in wanted)
        errors: dict[str, dict[str, float]] = {name: {} for name in classes}
        for name in classes:
            for system in [one for one in (*MODES, *self._others, OURS) if one in self._systems]:
                flags.write(self._torch, self._flags(system, name))
                try:
                    errors[name][system] = self._error(system, name, models.get(system), wanted)
                except Exception as error:
                    if failed(error)["broken"] and system == OURS:
                        raise
                    self._lose(system, error)
        return errors, kind

    def _error(self, system: str, name: str, model: Any, wanted: Sequence[Any]) -> float:
        """Of others the outputs count, of PyTorch's modes and ours what a call changes in the model, too."""
        if system in self._others:
            return worst(_flat(self._others[system].results()), wanted[: self._outputs])
        if system == OURS:
            got = self._our_results()
            self._verified[name] = self._digest()
            return worst(got, wanted)
        got = self._results(model)
        return worst(got, wanted[: len(got)])

    def _flags(self, system: str, name: str) -> dict[str, bool]:
        own = self._others[system].flags if system in self._others else {}
        return {**flags.of_class(name), **own}

    def _reference(self) -> tuple[str, list[Any]]:
        """By the model in float64 where that is possible, else in float32 without TF32."""
        torch, opened = self._torch, self._opened
        if self._request["double"] and not self._drawn:
            try:
                model = copy.deepcopy(opened.model).double()
                inputs = [_doubled(one) for one in opened.inputs]
                flags.write(torch, flags.of_class(STRICT))
                return "float64", self._called(model, inputs)
            except (RuntimeError, TypeError, ValueError):
                model, inputs = None, []
                torch.cuda.empty_cache()
        flags.write(torch, flags.of_class(STRICT))
        return "float32 strict", self._results(opened.model)

    def _results(self, function: Any) -> list[Any]:
        """The model's outputs and the state that a call changed, which it has back afterwards."""
        results = self._called(function, self._opened.inputs)
        with self._torch.no_grad():
            _restore(self._opened.model, self._before)
        return results

    def _called(self, function: Any, inputs: Sequence[Any]) -> list[Any]:
        self._torch.manual_seed(SEED)
        outputs = _flat(function(*inputs))
        self._outputs = len(outputs)
        model = function if hasattr(function, "named_buffers") else self._opened.model
        after = _state(getattr(model, "_orig_mod", model))
        both = [(after[name], before) for name, before in self._before.items()]
        return outputs + [now for now, before in both if now.is_floating_point() and _differs(now, before)]

    def _our_results(self) -> list[Any]:
        """Ours, as tensors in the shapes that the caller sees."""
        system = self._systems[OURS]
        system.stage()
        system.go()
        self._device.wait()
        return [
            system.tensor(one["name"])
            .view(getattr(self._torch, one["dtype"]))
            .view(one["shape"])
            .permute(one["order"])
            for one in self._request["outputs"]
        ]

    def _digest(self) -> Any:
        """What tells the results of the last run of ours from others."""
        system = self._systems[OURS]
        system.finish()
        return system.digests.pop()

    def _sessions(self, name: str) -> dict[str, Any]:
        turns = []
        if OURS in self._systems:
            self._systems[OURS].digests = [self._verified[name]]
        for system in [one for one in (OURS, *MODES, *self._others) if one in self._systems]:
            turn = Turn(system, self._systems[system], self._flags(system, name))
            self._turns.warm(turn)
            turns.append(turn)
        slow = [turn for turn in turns if turn.name not in MODES and _is_slow(turn, turns)]
        turns = [turn for turn in turns if turn not in slow]
        rounds = self._turns.rounds(turns, self._request["seconds"])
        sessions = {one: self._turns.session(turns, rounds) for one in SESSIONS}
        if slow:
            apart = self._turns.session(slow, SLOW_ROUNDS)
            sessions["figure"]["times"] |= apart["times"]
            sessions["figure"]["kernels"] |= apart["kernels"]
            turns = [*turns, *slow]
        ours = self._systems.get(OURS)
        changed = None if ours is None else ours.changed_runs()
        walls = {turn.name: round(turn.wall_us, 1) for turn in turns}
        return {**sessions, "changed": changed, "wall_us": walls}


def _is_slow(turn: Turn, turns: Sequence[Turn]) -> bool:
    modes = [one.wall_us for one in turns if one.name in MODES]
    return bool(modes) and turn.wall_us > max(SLOW_US, SLOWER * min(modes))


def _flat(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [tensor for one in value for tensor in _flat(one)]
    return [value] if hasattr(value, "dtype") else []


def _state(model: Any) -> dict[str, Any]:
    """Buffers, and tensors that modules have as plain attributes, which a call may bind anew."""
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    return buffers | {f"{path}.{name}": value.clone() for path, _, name, value in _attributes(model)}


def _attributes(model: Any) -> list[tuple[str, Any, str, Any]]:
    return [
        (path, module, name, value)
        for path, module in model.named_modules()
        for name, value in vars(module).items()
        if hasattr(value, "data_ptr")
    ]


def _restore(model: Any, before: Mapping[str, Any]) -> None:
    for name, buffer in model.named_buffers():
        buffer.copy_(before[name])
    for path, module, name, _ in _attributes(model):
        setattr(module, name, before[f"{path}.{name}"].clone())


def _differs(now: Any, before: Any) -> bool:
    return now.shape != before.shape or not bool((now == before.to(now.dtype)).all())


def _doubled(value: Any) -> Any:
    return value.double() if hasattr(value, "is_floating_point") and value.is_floating_point() else value


def _require_sizes(masters: Mapping[str, Any], inputs: Sequence[Mapping[str, Any]]) -> None:
    for one in inputs:
        if masters[one["name"]].numel() != one["bytes"]:
            has = masters[one["name"]].numel()
            raise ValueError(f"{one['expression']} has {has} bytes, the task {one['bytes']}")


def _copy_rate(torch: Any) -> float:
    """Bytes read and written in a microsecond by a copy on the device."""
    one = torch.zeros(_COPIED, dtype=torch.uint8, device="cuda")
    other = torch.empty_like(one)
    times: list[float] = []
    for _ in range(6):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        other.copy_(one)
        end.record()
        torch.cuda.synchronize()
        times.append(1000 * begin.elapsed_time(end))
    return round(2 * _COPIED / min(times[1:]))


def main() -> None:
    """Answers until its input ends or the context is lost."""
    cache, lock, device = sys.argv[1:4]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    os.environ |= {"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    os.environ["TRITON_CACHE_DIR"] = str(Path(cache) / "triton")  # others' kernels are compiled beforehand
    import torch

    torch.set_num_threads(THREADS)
    if not torch.cuda.is_available():
        print(json.dumps({"missing": "gpu"}), file=answers)
        return
    driver = Driver()
    torch.zeros(1, device=device)  # makes the context
    monitor = state.Monitor(state.bus_id(torch))
    with alone(lock):
        rate = _copy_rate(torch)
    forget(torch)
    ready = {**state.conditions(torch, monitor, driver.version()), "copy_bytes_us": rate}
    timer = Timer(torch, Cuda(torch), Modules(driver), Turns(torch, monitor), lock)
    print(json.dumps({"ready": ready}), file=answers)
    for line in sys.stdin:
        try:
            answer = timer.answer(json.loads(line))
        except Exception as error:
            answer = failed(error)
        print(json.dumps(answer), file=answers)
        if answer.get("broken"):
            answers.flush()
            os._exit(3)
        forget(torch)


if __name__ == "__main__":
    main()
