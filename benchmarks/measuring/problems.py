"""Problems of a suite, made ready to be timed: our first draft as cubins, torch.compile's cache filled."""

from __future__ import annotations

import atexit
import json
import multiprocessing
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen

from benchmarks.measuring.classes import OURS
from benchmarks.measuring.room import Room
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.compiler.family import Family
from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.graph import Graph, InputKind, ValueRef, literal
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.serial import from_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.hardware.products import multiply_adds
from evokernel_core.targets import author_for
from evokernel_core.targets.triton.backends.compiled import call_of, operands_of
from evokernel_core.targets.triton.backends.compiler import TritonCompiler
from evokernel_core.targets.triton.backends.gpu_process import JudgeLost, JudgeProcess
from evokernel_core.targets.triton.launch import read_launches, tensor_names
from evokernel_core.targets.triton.source import LAUNCH
from evokernel_core.targets.triton.target import Triton

HERE = Path(__file__).parent
_WARM_SECONDS = 240.0
_TRIED_SECONDS = 120.0
_TRIED_ROOM = 4
"""Times the inputs' bytes that a kernel of others takes, with what it keeps on the way."""
_MOST_DOUBLE = 2e12
"""Multiply-adds that a GPU does in float64 within seconds."""
PRODUCTS = frozenset(("aten.convolution.default",))
"""What PyTorch computes in TF32 as it leaves its flags; matrix products only where the caller asks for it."""


@frozen
class Problem:
    """A file of a suite and the task that was captured of it. ``others``: files of kernels that others
    published for it, by system; ``tuned``: whether it was drawn to be timed with max-autotune, too."""

    level: int
    name: str
    file: Path
    task_file: Path
    others: Mapping[str, Path] = field(factory=dict)
    tuned: bool = False

    @property
    def number(self) -> int:
        return int(self.name.split("_")[0])

    def task(self) -> KernelTask:
        return from_data(json.loads(self.task_file.read_text())["task"], KernelTask)


def problems_of(suite: Path, tasks: Path, levels: list[int]) -> list[Problem]:
    """Those of a suite's levels whose task is known, in the order of the levels, by number."""
    known = [
        Problem(level, file.stem, file, tasks / f"level{level}-{file.stem}.json")
        for level in levels
        for file in (suite / f"level{level}").glob("*.py")
    ]
    chosen = [one for one in known if one.task_file.exists()]
    return sorted(chosen, key=lambda one: (levels.index(one.level), one.number))


@frozen
class Setting:
    """Where things lie, for which device, and by which interpreter."""

    device: str
    python: str
    folder: Path
    torch_device: str = "cuda"

    @property
    def cache(self) -> Path:
        return self.folder / "inductor"

    @property
    def lock(self) -> Path:
        return self.folder / "device.lock"

    @property
    def cubins(self) -> Path:
        return self.folder / "cubins"

    def command(self, script: str) -> list[str]:
        """A process of the person's interpreter."""
        arguments = [str(self.cache), str(self.lock), self.torch_device]
        return [self.python or sys.executable, str(HERE / script), *arguments]


@frozen
class WithoutLibraries(Triton):
    """The target with kernels of its own alone."""

    def families(self) -> Sequence[Family]:
        return tuple(family for family in super().families() if family.name != "library")


class Preparer:
    """Makes problems ready, in a process of its own, with another beside it that has torch."""

    def __init__(self, setting: Setting, room: Room) -> None:
        self._setting, self._room = setting, room
        self._author: KernelAuthor = author_for(setting.device, "triton")
        self._without_libraries = KernelAuthor(WithoutLibraries(), self._author.device)
        self._warm: JudgeProcess | None = None

    def prepared(self, problem: Problem) -> dict[str, Any]:
        """The request to time it, what rows say of it, and ``why`` systems are not in the request."""
        task = problem.task()
        gpu = self._author.device
        assert isinstance(gpu, Gpu)
        inputs = _inputs(task)
        warmed = self._warmed(problem, task, inputs)
        products = [multiply_adds(node, task.graph, task.sizes) for node in task.graph.nodes]
        request: dict[str, Any] = {
            "file": str(problem.file),
            "inputs": inputs,
            "outputs": _outputs(task),
            "scratch": {},
            "call": None,
            "double": sum(products) <= _MOST_DOUBLE,
            "strict": any(node.op in PRODUCTS for node in task.graph.nodes),
            "tuned": problem.tuned,
        }
        about = {"roofline_us": self._author.least_us(task), "warm": warmed.get("warm", "")}
        lost = {name: self._tried(problem, file, task) for name, file in problem.others.items()}
        why = {name: said for name, said in lost.items() if said}
        request["others"] = {name: str(file) for name, file in problem.others.items() if name not in why}
        try:
            request |= self._ours(task, tuple(warmed["scalars"]))
            about["kernels"] = [one.get("function", one.get("op")) for one in request["call"]["launches"]]
        except (EvoKernelError, KeyError, ValueError) as error:
            why[OURS] = f"{type(error).__name__}: {error}"[:400]
        return {"request": request, "about": about, "why": why}

    def _warmed(self, problem: Problem, task: KernelTask, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        request = {"file": str(problem.file), "inputs": inputs}
        try:
            return self._asked(request, _given(task), _WARM_SECONDS)
        except JudgeLost as error:
            return {"warm": f"lost: {error.said}"[:300], "scalars": []}

    def _tried(self, problem: Problem, file: Path, task: KernelTask) -> str:
        """Why a kernel of others cannot be timed: it ended the process that called it. Any other error the
        process that times sees, too."""
        request = {"file": str(problem.file), "other": str(file)}
        try:
            answer = self._asked(request, _TRIED_ROOM * _given(task), _TRIED_SECONDS)
        except JudgeLost as error:
            return "its first call did not end" if error.hung else f"the process ended: {error.said}"
        return str(answer["error"]) if answer.get("broken") else ""

    def _asked(self, request: Mapping[str, Any], nbytes: int, seconds: float) -> dict[str, Any]:
        """The answer of the process with torch, which is made anew where it ended. Raises JudgeLost."""
        if self._warm is None:
            self._warm = JudgeProcess(self._setting.command("warming.py"))
            atexit.register(self._warm.close)
        with self._room.taken(nbytes):
            try:
                self._warm.ready()
                answer = self._warm.ask(request, seconds)
            except JudgeLost:
                self._end()
                raise
        if answer.get("broken"):
            self._end()
        return answer

    def _end(self) -> None:
        if self._warm is not None:
            self._warm.close()
            self._warm = None

    def _draft(self, task: KernelTask) -> KernelSource:
        """The first draft; where the author would leave all to libraries, that without them. Raises
        EvoKernelError."""
        source = self._author.plan(task).write()
        if read_launches(source.files[LAUNCH]).kernels:
            return source
        return self._without_libraries.plan(task).write()

    def _ours(self, task: KernelTask, scalars: tuple[float, ...]) -> Mapping[str, Any]:
        """The call of our first draft and its scratch. Raises EvoKernelError."""
        gpu = self._author.device
        assert isinstance(gpu, Gpu)
        source = self._draft(task)
        refused = self._author.target.audit(task, source)
        if refused.status is not GateStatus.PASSED:
            raise ValueError(f"audit: {refused.feedback}")
        compiler = TritonCompiler(gpu, self._setting.python)
        built = compiler.placed(task, source)
        sizes = tuple(symbol.size for symbol in task.symbols)
        operands = operands_of(task, built.record, sizes, scalars)
        call = call_of(built.record, compiler.compiled(built, [operands])[0], operands)
        for launch in call["launches"]:
            if "cubin" in launch:
                launch["cubin"] = shutil.copy(launch["cubin"], self._setting.cubins)
        scratch = {one.name: operands.nbytes[one.name] for one in built.record.scratch}
        return {"call": call, "scratch": scratch}


def _given(task: KernelTask) -> int:
    """Bytes of a task's inputs."""
    return sum(one.spec.nbytes(task.sizes) for one in task.graph.inputs)


def _inputs(task: KernelTask) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "expression": one.expression,
            "kind": "scalar" if one.kind is InputKind.SCALAR else "tensor",
            "bytes": one.spec.nbytes(task.sizes),
        }
        for one in task.graph.inputs
    ]


def _outputs(task: KernelTask) -> list[dict[str, Any]]:
    names = tensor_names(task)[2]
    return [
        {
            "name": name,
            "bytes": spec.nbytes(task.sizes),
            "dtype": spec.dtype,
            "shape": spec.sizes(task.sizes),
            "order": _order(task.graph, ref),
        }
        for name, ref, spec in zip(names, task.graph.outputs, task.graph.output_specs(), strict=True)
    ]


def _order(graph: Graph, ref: ValueRef) -> list[int]:
    """Where the dimensions that the caller sees lie in an output. One that PyTorch leaves permuted in memory
    is captured as it lies there, by a permutation that no call of the file makes."""
    made = {node.name: node for node in graph.nodes}.get(ref.name)
    places = range(graph.spec(ref).rank)
    if made is None or made.op != "aten.permute.default" or made.call is not None:
        return list(places)
    order = made.args[1]
    assert isinstance(order, tuple)
    return sorted(places, key=lambda place: literal(order[place]))


_PREPARER: list[Preparer] = []


def start(setting: Setting, room: Room) -> None:
    """Begins a process of a pool."""
    _PREPARER[:] = [Preparer(setting, room)]


def prepare(problem: Problem) -> dict[str, Any]:
    """``Preparer.prepared`` in a process of a pool."""
    return _PREPARER[0].prepared(problem)


def context() -> Any:
    """How processes of the pool begin: as new ones, whatever threads this one has."""
    return multiprocessing.get_context("spawn")
