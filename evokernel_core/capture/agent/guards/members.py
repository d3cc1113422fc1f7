"""What a call takes of classes by ways that no read of an attribute shows: ``super()``, special methods such
as ``__call__`` and ``__len__``, functions of autograd, methods of objects that the call makes.

Each function of the user's that ran is asked for again in the class that it was found in. Places in the order
of a class's bases are counted from the end, so that a subclass that adds nothing is as good.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .code import GlobalRead, WrittenCode, file_of, is_workspace, texts_of
from .guard import CapturedGuard, is_plain, literal
from .library import OWN_MODULE
from .reads import Reads

_OF_READS = frozenset({"__getattr__", "__getattribute__"})
"""What they give is compared where it was read."""


@dataclass(frozen=True)
class Begun:
    """A function of the user's that began, and its first argument, None where it has none."""

    code: types.CodeType
    receiver: Any


class Begins:
    """The user's functions that began below the one that ``is_root`` knows, once for each first argument."""

    def __init__(self, is_root: Callable[[types.CodeType], bool]) -> None:
        self._is_root = is_root
        self._found: dict[tuple[int, int], Begun] = {}

    def __iter__(self) -> Iterator[Begun]:
        return iter(self._found.values())

    def note(self, frame: types.FrameType) -> None:
        """Of a frame that begins; classes, modules and comprehensions are none of their own."""
        code = frame.f_code
        if code.co_name.startswith("<") and code.co_name != "<lambda>":
            return
        receiver = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        if (id(code), id(receiver)) not in self._found and self._is_below(frame):
            self._found[id(code), id(receiver)] = Begun(code, receiver)

    def _is_below(self, frame: types.FrameType | None) -> bool:
        while frame is not None:
            if self._is_root(frame.f_code):
                return True
            frame = frame.f_back
        return False


@dataclass(frozen=True)
class ClassText:
    """A class of the user's, and the texts that reach it: ``home``, and the ``path`` from there if that is a
    module. A compiler takes a class as an argument where it is that of an object, a global one not always."""

    kind: type
    home: str
    path: str = ""

    @property
    def text(self) -> str:
        return f"{self.home}.{self.path}" if self.path else self.home

    def asks(self, function: str, *given: Any) -> CapturedGuard:
        """The guard that calls a function with the class."""
        behind = [*map(literal, given), *([f"path={self.path!r}"] if self.path else [])]
        if self.path:
            return CapturedGuard("", f"guards.{function}({self.home}, {', '.join(behind)})")
        return CapturedGuard(self.home, f"guards.{function}({{}}, {', '.join(behind)})")


def classes_read(
    read: Iterable[GlobalRead], module: types.ModuleType, modules: Mapping[str, Any]
) -> list[ClassText]:
    """The user's classes that globals lead to."""
    result: dict[int, ClassText] = {}
    for read_ in read:
        is_own = read_.module == module.__name__
        value: Any = module if is_own else modules.get(read_.module)
        home = OWN_MODULE if is_own else f'guards.module("{read_.module}")'
        for end, name in enumerate(read_.names, start=1):
            value = vars(value).get(name) if isinstance(value, (types.ModuleType, type)) else None
            if isinstance(value, type) and is_workspace(file_of(value)):
                result.setdefault(id(value), ClassText(value, home, ".".join(read_.names[:end])))
    return list(result.values())


@dataclass(frozen=True)
class _Member:
    """A member ``name`` of a class, in the base at the place ``at`` from the end, and the text behind it that
    reaches the function."""

    name: str
    at: int
    behind: str
    function: types.FunctionType


class Members:
    """Asks ``reads`` for the functions that ran, and for what ``super()`` gave them. ``classes`` are those of
    the user's that globals lead to, ``is_root`` knows the function whose text stands in the edit."""

    def __init__(
        self, reads: Reads, classes: Iterable[ClassText], is_root: Callable[[types.CodeType], bool]
    ) -> None:
        self._reads = reads
        self._is_root = is_root
        of_objects = (ClassText(kind, text) for text, kind in reads.classes().items())
        self._classes = {id(part.kind): part for part in (*of_objects, *classes)}
        self._written = WrittenCode()

    def ask(self, begun: Sequence[Begun]) -> None:
        """Refuses where a function is reached by no text."""
        inner = {id(code) for function in begun for code in _inner(function.code)}
        left = []
        for function in begun:
            if "super" in self._written.code(function.code).co_names:
                self._of_super(function)
            is_asked = (
                self._is_root(function.code)
                or id(function.code) in inner
                or function.code.co_name in _OF_READS
            )
            if (
                not is_asked
                and not self._reads.asks_code(function.code, function.receiver)
                and not self._found(function)
            ):
                left.append(function)
        for function in left:  # by now closures of others may have told of it
            if not self._reads.asks_code(function.code, function.receiver):
                self._reads.refuse(
                    "{name} is called by a way that no call can follow: call it by its name, or by an "
                    "attribute of the module.",
                    name=function.code.co_qualname,
                )

    def _found(self, begun: Begun) -> bool:
        """Whether the function is one of a class that a text reaches; then it is asked for."""
        for around in self._around(begun.receiver):
            member = _member(around.kind, begun.code)
            if member is not None:
                path = self._reads.path_of(begun.receiver)
                if member.behind != ".fget" or path is None or not self._reads.asks(path, member.name):
                    self._ask(around, member)
                return True
        return False

    def _around(self, receiver: Any) -> Iterator[ClassText]:
        """Where a function of that first argument may stand."""
        path = self._reads.path_of(receiver)
        if path is not None:
            yield ClassText(type(receiver), f"type({path})")
        for kind in (receiver, type(receiver)):
            if id(kind) in self._classes:
                yield self._classes[id(kind)]
        yield from self._classes.values()

    def _ask(self, owner: ClassText, member: _Member) -> None:
        places = holders(owner.kind, member.name)
        self._reads.add(owner.asks("holders", member.name, places))
        place = self._reads.place_of(member.function)
        self._reads.add(owner.asks("inherits", f"{member.name}{member.behind}", member.at, place))
        reached = f"guards.member({owner.text}, {member.name!r}, {member.at}){member.behind}"
        self._reads.beside(reached, member.function)

    def _of_super(self, begun: Begun) -> None:
        """Numbers and the like that a base class holds: its functions ran, and are found by that."""
        code = self._written.code(begun.code)
        for owner in self._around(begun.receiver):
            own = _member(owner.kind, begun.code)
            if own is None:
                continue
            for name in sorted({*code.co_names, *texts_of(code)}):
                places = [at for at in holders(owner.kind, name) if at > own.at]
                base = owner.kind.__mro__[places[0]] if places else object
                if is_workspace(file_of(base)) and not _functions(vars(base)[name]):
                    self._of_base(owner, name, places[0], vars(base)[name])
            return

    def _of_base(self, owner: ClassText, name: str, at: int, value: Any) -> None:
        self._reads.add(owner.asks("holders", name, holders(owner.kind, name)))
        if is_plain(value):
            self._reads.add(owner.asks("holds_value", name, at, value))
        else:
            self._reads.value(f"guards.member({owner.text}, {name!r}, {at})", value)


def holders(kind: type, name: str) -> tuple[int, ...]:
    """The places of the bases of a class that define a name, from the end."""
    bases = kind.__mro__
    return tuple(at - len(bases) for at, base in enumerate(bases) if name in vars(base))


def _member(kind: type, code: types.CodeType) -> _Member | None:
    bases = kind.__mro__
    for at, base in enumerate(bases):
        for name, raw in list(vars(base).items()):
            for behind, function in _functions(raw):
                if function.__code__ is code:
                    return _Member(name, at - len(bases), behind, function)
    return None


def _functions(raw: Any) -> list[tuple[str, types.FunctionType]]:
    """The functions that a member of a class holds, by the text behind it."""
    result: list[tuple[str, types.FunctionType]] = []
    waiting = [("", raw)]
    while waiting:
        text, value = waiting.pop()
        if isinstance(value, types.FunctionType):
            result.append((text, value))
            waiting += (
                [(f"{text}.__wrapped__", vars(value)["__wrapped__"])] if "__wrapped__" in vars(value) else []
            )
        for kind, names in _HOLDING.items():
            if isinstance(value, kind):
                waiting += [(f"{text}.{name}", getattr(value, name)) for name in names]
    return result


_HOLDING: Mapping[type, tuple[str, ...]] = {
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    functools.cached_property: ("func",),
    functools._lru_cache_wrapper: ("__wrapped__",),
}
"""What holds a function in a class."""


def _inner(code: types.CodeType) -> Iterator[types.CodeType]:
    """The functions that stand in another: its own text tells of them."""
    for co_constant in code.co_consts:
        if isinstance(co_constant, types.CodeType):
            yield co_constant
            yield from _inner(co_constant)
