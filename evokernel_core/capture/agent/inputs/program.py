"""What the file does when it is run: its ``if __name__ == "__main__":`` block, and calls at module level.

Both run on tensors without memory, with no effect outside. The first call of each function of the file is
noted with the objects that it was given, and can be made again.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from ..errors import describe
from ..loading.constant_tensors import SmallTensors
from ..loading.load import line_of
from ..loading.outside import Deadline, OutOfTime, Stopped, confined
from ..loading.source import Source, SourceFunction, numbers_of
from ..observation.functions import arguments_of
from ..sentence import Sentence
from .calls_made import CallProblem, Trial, trial_of
from .state import Watch

_NO_TENSORS = (bool, int, float, str, type(None), type, torch.dtype, torch.device, torch.nn.Module)
_SECONDS, _SECONDS_BEHIND = 20.0, 2.0
"""How long a program may run, at all and after it has called something."""


@dataclass(frozen=True)
class Made:
    """A call: of a module ``target``, or of a function, where that is None. ``caller`` is the function of the
    file that it was made in, empty for none; ``state`` is what the module held before."""

    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    caller: str
    state: Watch | None


@dataclass
class Program:
    """Set as a Recorder's ``watch``. ``made`` are the first calls, the outermost first; ``failure`` says why
    the program ended before its end, empty where it did not. ``without_tensors`` were called with numbers,
    texts and modules alone. ``state_of`` gives what a function and its module hold, where that is asked."""

    source: Source
    state_of: Callable[[SourceFunction, Any], Watch] | None = None
    made: dict[str, Made] = field(default_factory=dict)
    failure: Sentence = field(default_factory=Sentence)
    limit: Deadline | None = None
    without_tensors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        functions = [function for function in self.source.functions if _is_callable(function)]
        self._functions = {number: function for function in functions for number in numbers_of(function)}
        self._starts = {_first_line(function): function.qualname for function in self.source.functions}
        self._known: set[str] = set()

    def __call__(self, number: int) -> None:
        """An expression of the file is about to be evaluated."""
        function = self._functions.get(number)
        if function is None or function.qualname in self._known:
            return
        self._known.add(function.qualname)
        frame = sys._getframe(2)
        if frame.f_code.co_name == function.node.name:
            args, kwargs = arguments_of(frame)
            self._note(function, args, kwargs, self._caller(frame))

    def _caller(self, frame: types.FrameType) -> str:
        above = frame.f_back
        while above is not None:
            code = above.f_code
            if code.co_filename == self.source.path and code.co_firstlineno in self._starts:
                return self._starts[code.co_firstlineno]
            above = above.f_back
        return ""

    def _note(
        self, function: SourceFunction, args: tuple[Any, ...], kwargs: dict[str, Any], caller: str
    ) -> None:
        target = None
        if function.class_name:
            target, args = args[0], args[1:]
            if not isinstance(target, torch.nn.Module):
                return
        leaves = pytree.tree_leaves((args, kwargs))
        if target is None and all(isinstance(leaf, _NO_TENSORS) for leaf in leaves):
            self.without_tensors.add(function.qualname)
        if any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            if not self.made and self.limit is not None:
                self.limit.set(_SECONDS_BEHIND)
            # behind a call a program sets more than the call does
            state = self.state_of(function, target) if self.state_of and self.limit is None else None
            self.made[function.qualname] = Made(target, args, kwargs, caller, state)

    def run(self, module: types.ModuleType) -> None:
        """Runs the ``__main__`` block, as far as it goes."""
        body = [statement for block in main_blocks(self.source.tree) for statement in block.body]
        if not body:
            return
        code = compile(ast.Module(body, []), self.source.path, "exec", dont_inherit=True)
        try:
            with confined(Path(self.source.path)) as limit, SmallTensors(), torch.enable_grad():
                self.limit = limit
                limit.set(_SECONDS)
                exec(code, module.__dict__)
        except SystemExit:
            return
        except OutOfTime:
            self.failure = Sentence("it had not called a model after {seconds} s", seconds=f"{_SECONDS:.0f}")
        except BaseException as error:
            self.failure = self._words(error)
        finally:
            self.limit = None

    def inside(self, caller: str, module: types.ModuleType) -> Iterator[tuple[Trial, Watch | None]]:
        """The calls of modules that a function of the file made first, and what those held before."""
        for qualname, call in list(self.made.items()):
            if call.caller == caller and call.target is not None:
                with suppress(Exception):  # of tensors that have no counterpart without memory
                    yield self._trial(module, qualname, qualname.removesuffix(".forward")), call.state

    def _words(self, error: BaseException) -> Sentence:
        if isinstance(error, Stopped):
            return error.sentence
        line, said = line_of(error, self.source.path), describe(error)
        if line:
            return Sentence(
                "it failed on tensors without values at line {line} ({error})", line=line, error=said
            )
        return Sentence("it failed on tensors without values ({error})", error=said)

    def trials(
        self, module: types.ModuleType, was_run: Callable[[str], bool], problems: list[CallProblem]
    ) -> Iterator[Trial]:
        """The calls that were noted, of functions that were not run yet."""
        for qualname in list(self.made):
            if was_run(qualname):
                continue
            name = qualname.removesuffix(".forward")
            try:
                trial = self._trial(module, qualname, name)
            except Exception as error:  # of tensors that have no counterpart without memory
                problems.append(CallProblem(name, "unsupported", _no_repetition(name, error)))
                continue
            yield trial

    def _trial(self, module: types.ModuleType, qualname: str, name: str) -> Trial:
        call = self.made[qualname]
        args, kwargs = pytree.tree_map_only(torch.Tensor, _fake, (call.args, call.kwargs))
        function = call.target if call.target is not None else getattr(module, qualname)
        return trial_of(name, function, args, kwargs, observed=True)


def _no_repetition(name: str, error: Exception) -> Sentence:
    return Sentence(
        "{name} was called by the file itself, but not in a way that can be repeated ({error}): "
        "add get_inputs().",
        name=name,
        error=describe(error),
    )


def _fake(tensor: torch.Tensor) -> torch.Tensor:
    if isinstance(tensor, FakeTensor):
        return tensor.detach()
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)


def _is_callable(function: SourceFunction) -> bool:
    """Whether a trial can call it: a module's forward, or a function at the top of the file."""
    if function.class_name:
        return function.node.name == "forward" and bool(function.receiver)
    return "." not in function.qualname


def _first_line(function: SourceFunction) -> int:
    """Where its code begins: at its first decorator."""
    return min([function.node.lineno, *(decorator.lineno for decorator in function.node.decorator_list)])


def main_blocks(tree: ast.Module) -> list[ast.If]:
    """The blocks that run only where the file is the program."""
    return [
        statement
        for statement in tree.body
        if isinstance(statement, ast.If) and _asks_for_main(statement.test)
    ]


def _asks_for_main(test: ast.expr) -> bool:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = (test.left, test.comparators[0])
    names = [side.id for side in sides if isinstance(side, ast.Name)]
    texts = [side.value for side in sides if isinstance(side, ast.Constant)]
    return names == ["__name__"] and texts == ["__main__"]
