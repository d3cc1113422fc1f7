"""Functions that report their calls: their code gets a first line, and loses it when enough is known.

The function object stays the same one, with its signature: whoever holds it, calls it, or looks at it sees
no difference.
"""

from __future__ import annotations
import __future__

import ast
import copy
import inspect
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .seen import Seen

_REPORT = "__evokernel_report__"
_ENOUGH_CALLS = 1024
_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag

Report = Callable[[Seen, "tuple[Any, ...]", "dict[str, Any]"], None]


def functions_of(module: types.ModuleType, file: str) -> Iterator[tuple[types.FunctionType, ast.FunctionDef]]:
    """The functions at the top of a file that may be given tensors, with their sources. Raises OSError or
    SyntaxError where there is no source."""
    text = Path(file).read_text("utf-8")
    if "torch" not in text:
        return
    nodes = {
        statement.lineno: statement
        for statement in ast.parse(text).body
        if isinstance(statement, ast.FunctionDef)
    }
    starts = {node.decorator_list[0].lineno: node for node in nodes.values() if node.decorator_list}
    nodes.update(starts)  # code begins at its first decorator
    for value in list(vars(module).values()):
        function = _innermost(value)
        if function is None or function.__module__ != module.__name__:
            continue
        node = nodes.get(function.__code__.co_firstlineno)
        if node is not None and node.name == function.__name__ and _is_suitable(function, node):
            yield function, node


def _innermost(value: Any) -> types.FunctionType | None:
    """The function below a chain of decorators that are functions too. What another object wraps is left
    alone: a compiler such as numba's reads the code of the function itself."""
    while isinstance(value, types.FunctionType) and "__wrapped__" in vars(value):
        value = vars(value)["__wrapped__"]
    return value if isinstance(value, types.FunctionType) else None


def _is_suitable(function: types.FunctionType, node: ast.FunctionDef) -> bool:
    code = function.__code__
    takes = code.co_argcount + code.co_kwonlyargcount + (code.co_flags & inspect.CO_VARARGS)
    return bool(takes) and not code.co_freevars and not getattr(node, "type_params", None)


class Reporter:
    """Lets one function tell of its calls until enough are known."""

    def __init__(
        self, function: types.FunctionType, node: ast.FunctionDef, seen: Seen, report: Report
    ) -> None:
        self._function, self._code = function, function.__code__
        self._seen, self._report = seen, report
        function.__code__ = _reporting(self._code, node, self._entered)

    def _entered(self) -> None:
        if self._seen.is_complete or self._seen.calls >= _ENOUGH_CALLS:
            self._function.__code__ = self._code
            return
        args, kwargs = arguments_of(sys._getframe(1))
        if self._seen.looks(False, args, kwargs):
            self._report(self._seen, args, kwargs)


def arguments_of(frame: types.FrameType) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What the function of a frame was called with, as far as its names still stand for that."""
    code, values = frame.f_code, frame.f_locals
    count = code.co_argcount
    args = tuple(values[name] for name in code.co_varnames[:count])
    rest = count + code.co_kwonlyargcount
    kwargs = {name: values[name] for name in code.co_varnames[count:rest]}
    if code.co_flags & inspect.CO_VARARGS:
        args += tuple(values[code.co_varnames[rest]])
        rest += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        kwargs.update(values[code.co_varnames[rest]])
    return args, kwargs


def _reporting(code: types.CodeType, node: ast.FunctionDef, report: Callable[[], None]) -> types.CodeType:
    """The code of a function with a call of ``report`` in front. The callable becomes a constant of the
    code, in the place of a text, so that no name of the program is taken."""
    node = copy.deepcopy(node)
    call = ast.Expr(ast.Call(ast.Constant(_REPORT), [], []))
    first = 1 if ast.get_docstring(node, clean=False) is not None else 0
    node.body.insert(first, ast.copy_location(call, node.body[0]))
    node.decorator_list, node.args.defaults, node.returns = [], [], None
    node.args.kw_defaults = [None] * len(node.args.kwonlyargs)
    module = ast.fix_missing_locations(ast.Module([node], []))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        outer = compile(module, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)
    co_constants = [co_constant for co_constant in outer.co_consts if isinstance(co_constant, types.CodeType)]
    made = next(co_constant for co_constant in co_constants if co_constant.co_name == node.name)
    constants = tuple(report if co_constant == _REPORT else co_constant for co_constant in made.co_consts)
    return made.replace(co_consts=constants, co_firstlineno=code.co_firstlineno)
