"""The ``compare`` method: a region's own code run as it stands, beside the graph that was captured of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ..errors import AgentError, Refused, describe
from ..graph import complex_tensors
from ..inputs.trials import Known
from ..loading.devices import on_host
from ..loading.imports import Imports
from ..loading.load import isolation
from ..loading.outside import Stopped, confined
from ..npu import functions as npu
from ..reference.precision import widened
from ..reference.reference import first_values, in_order, run, shapes_of, size_of
from ..regions.capture import Asked, capture
from ..regions.layouts import view_by
from ..regions.parts import SCALAR, Place, Subject
from ..regions.tensor_effects import warning_of, watched
from ..sentence import Sentence, Told
from . import draws
from .draws import Given
from .forked import Report, bounded
from .judge import CodeAndGraph, Wide, difference, noise_of, otherwise_in_memory, unequal

_WIDE = {
    "float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128",
}  # fmt: skip
_SMALL = 3
"""Sizes that vary are as small as this, each by one larger than the one before."""
_MOST_ELEMENTS = 1 << 24
"""Elements of all values of a graph, and of what its code is given."""
_SEED = 20
_ADDING = frozenset(
    """sum mean var var_mean std native_layer_norm native_group_norm native_batch_norm linalg_vector_norm mm
    bmm addmm baddbmm convolution cumsum logsumexp _softmax _log_softmax avg_pool2d
    scaled_dot_product_attention index_add scatter_add""".split()  # noqa: SIM905
)
"""Operations that add up many terms, or scale and shift by such sums: of which sign a zero is that is left of
them depends on the order, which PyTorch's own kernels choose otherwise than its decompositions."""
_AVERAGING = frozenset(
    "mean var var_mean std native_layer_norm native_group_norm native_batch_norm".split()  # noqa: SIM905
)
"""Those of them whose sums PyTorch keeps in float64 on a CPU."""
_OF_OWN_ORDER = frozenset({"scaled_dot_product_attention", "lstm", "gru", "rnn_tanh", "rnn_relu"})
"""Operations whose results lie in memory in an order that each device chooses."""
_REFUSING = (IndexError, RuntimeError)
_NO_MEMORY = ("can't allocate memory", "not enough memory", "DefaultCPUAllocator")


@dataclass(frozen=True)
class Wanted:
    """The region to compare: the function, its span, and the graph that kernels are judged by. ``seconds``
    and ``bytes`` bound all of it."""

    symbol: str
    span: list[int]
    graph: dict[str, Any]
    symbols: list[dict[str, Any]]
    seconds: float
    bytes: int


@dataclass(frozen=True)
class Captures:
    """How the file was captured, in the order in which the region is looked for: names of operations with
    their categories, and what was asked."""

    ways: list[tuple[dict[str, str], Asked]]
    known: Known


def compare(path: str, text: str, imports: Imports, wanted: Wanted, captures: Captures) -> dict[str, Any]:
    """``{"compared": [draw], "uncompared": [{"draw", "reason"}], "difference": sentence}``.

    All of it runs in a fork of this process, so that the state of modules, of generators of random numbers
    and of the environment is as before; what the code would write, start or connect to is refused."""
    compared: list[str] = []
    uncompared: list[dict[str, Any]] = []
    left: list[str] = []
    outcome: dict[str, Any] = {"compared": compared, "uncompared": uncompared, "difference": ""}
    work = partial(_in_fork, path, text, imports, wanted, captures)
    for event in bounded(work, wanted.seconds, wanted.bytes):
        if "draws" in event:
            left = list(event["draws"])
        elif "failed" in event:
            raise AgentError(
                "agent_failed", "Comparing code with its graph failed ({error}).", error=event["failed"]
            )
        elif "ended" in event:
            uncompared += [{"draw": name, "reason": event["ended"]} for name in left or [""]]
        elif event.get("difference"):
            outcome["difference"] = event["difference"]
            return outcome
        elif event.get("reason"):
            uncompared.append(event)
        else:
            compared.append(event["draw"])
        left = [name for name in left if name != event.get("draw")]
    return outcome


def _in_fork(
    path: str, text: str, imports: Imports, wanted: Wanted, captures: Captures, report: Report
) -> None:
    with isolation(Path(path), imports):
        result = _subject(path, text, imports, wanted, captures)
        if result is None:
            report({"draw": "", "reason": Sentence("its code cannot be run apart from its file").data()})
            return
        subject, dtype = result
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            compare_draws(subject, wanted, report, Path(path))
        finally:
            torch.set_default_dtype(before)


def _subject(
    path: str, text: str, imports: Imports, wanted: Wanted, captures: Captures
) -> tuple[Subject, torch.dtype] | None:
    """The region's code and the default dtype that it runs with."""
    for fusible, asked in captures.ways:
        subjects: list[tuple[dict[str, Any], Subject]] = []
        try:
            capture(path, text, imports, fusible, captures.known, asked, subjects)
        except AgentError:
            continue
        for region, subject in subjects:
            if _is_wanted(region, wanted):
                return subject, getattr(torch, region["default_dtype"])
    return None


def _is_wanted(region: Mapping[str, Any], wanted: Wanted) -> bool:
    if (region["symbol"], region["span"]) != (wanted.symbol, wanted.span):
        return False
    operations = ([node["op"] for node in graph["nodes"]] for graph in (region["graph"], wanted.graph))
    first, second = operations
    return first == second


def compare_draws(subject: Subject, wanted: Wanted, report: Report, path: Path) -> None:
    """Runs both at each draw, in this process. Reports ``{"draws": [name]}``, then for each draw what came of
    it: ``{"draw", "difference"}``, empty where there is none, or ``{"draw", "reason"}``."""
    own = {symbol["name"]: symbol["size"] for symbol in wanted.symbols}
    small = _small(wanted, own)
    cases = [(name, small) for name in draws.names_of(subject, wanted.graph, small)]
    if small != own:
        cases.append((draws.FILE_SIZES, own))
    report({"draws": [name for name, _ in cases]})
    npu.called.clear()
    reason = _not_comparable(subject, wanted.graph)
    for number, (name, sizes) in enumerate(cases):
        work = partial(_compare, subject, wanted.graph, sizes, name, _SEED + number, path)
        report({"draw": name, "reason": reason.data()} if reason else _event(name, work))
    if npu.called:
        said = Sentence(
            "an NPU computes {names}, for which stands what its documentation says",
            names=", ".join(sorted(npu.called)),
        )
        report({"draw": "", "reason": said.data()})


def _event(name: str, work: Callable[[], Sentence]) -> dict[str, Any]:
    """What came of one draw."""
    try:
        result = work()
    except NotCompared as error:
        return {"draw": name, "reason": error.sentence.data()}
    said = Sentence("{what} (inputs: {draw})", what=result, draw=name) if result else Sentence()
    return {"draw": name, "difference": said.data()}


class NotCompared(Told):
    """Why nothing is said of a draw."""


def _small(wanted: Wanted, own: dict[str, int]) -> dict[str, int]:
    """Sizes of the same class as the file's, and no two alike where that can be; those of the file where the
    graph takes no smaller ones, as where it has indices that are numbers."""
    sizes = {
        symbol["name"]: max(symbol["minimum"], min(symbol["size"], _SMALL + number))
        for number, symbol in enumerate(wanted.symbols)
    }
    try:
        first_values(wanted.graph, sizes, _SEED)
    except AgentError:
        return own
    return sizes


def _not_comparable(subject: Subject, graph: Mapping[str, Any]) -> Sentence:
    """Why the two cannot be given the same, or their results be told apart; empty where they can."""
    known = {leaf.expression for leaf in subject.leaves}
    for operand in graph["inputs"]:
        if operand["expression"] not in known and operand.get("value") is None:
            return Sentence(
                "{what} is made by the call itself, as random numbers are", what=operand["expression"]
            )
    return Sentence()


def _compare(
    subject: Subject, graph: dict[str, Any], sizes: dict[str, int], name: str, seed: int, path: Path
) -> Sentence:
    """The first difference, empty where there is none. Raises NotCompared."""
    if _elements(subject, graph, sizes) > _MOST_ELEMENTS:
        raise NotCompared("its tensors are too large")
    try:
        given = draws.given(subject, graph, sizes, name, seed)
    except AgentError as error:
        raise NotCompared(error.sentence) from error
    before = given.copied()
    try:
        of_graph: list[Any] | Exception = _run_graph(graph, given, sizes)
    except Exception as error:
        of_graph = error
    try:
        of_code: list[Any] | BaseException = _run_code(subject, given, path)
    except NotCompared:
        raise
    except Refused as error:
        return error.sentence
    except BaseException as error:  # as SystemExit
        of_code = error
    if isinstance(of_code, BaseException) or isinstance(of_graph, Exception):
        return _errors(of_code, of_graph)
    both = _Both(subject, graph, sizes, before, path)
    return both.results(of_code, of_graph) or both.inputs(given, of_graph)


def _elements(subject: Subject, graph: Mapping[str, Any], sizes: Mapping[str, int]) -> int:
    shapes = [*shapes_of(graph, sizes).values()]
    shapes += [tuple(size_of(dim, sizes) for dim in spec["shape"]) for spec in subject.specs]
    return sum(map(math.prod, shapes))


def _errors(of_code: Any, of_graph: Any) -> Sentence:
    """Errors are the same where both ways refuse what they are given; PyTorch itself calls one index out of
    range an IndexError in one operation, and a RuntimeError in the next. Raises NotCompared for those that
    come of where this runs."""
    for choice in (of_code, of_graph):
        if isinstance(choice, MemoryError) or any(words in str(choice) for words in _NO_MEMORY):
            raise NotCompared("it takes more memory than a comparison may")
        if isinstance(choice, NotImplementedError):
            raise NotCompared("PyTorch lacks it on this machine ({error})", error=describe(choice))
    if type(of_code) is type(of_graph) or (
        isinstance(of_code, _REFUSING) and isinstance(of_graph, _REFUSING)
    ):
        return Sentence()
    if isinstance(of_code, BaseException) and isinstance(of_graph, Exception):
        return Sentence(
            "it raises {code} where the graph raises {graph}",
            code=describe(of_code),
            graph=describe(of_graph),
        )
    if isinstance(of_code, BaseException):
        return Sentence("it raises {error} where the graph gives values", error=describe(of_code))
    return Sentence("it gives values where the graph raises {error}", error=describe(of_graph))


def _run_graph(graph: dict[str, Any], given: Given, sizes: dict[str, int]) -> list[torch.Tensor]:
    with torch.no_grad(), in_order():
        return run(graph, given.copied().of_graph, sizes, rules=complex_tensors.RULES)


def _run_code(subject: Subject, given: Given, path: Path) -> list[Any]:
    """The flat results of the code, which may change the values that it is given. Raises what it raises, and
    NotCompared where it draws random numbers, reads a tensor without values, or would have an effect."""
    torch.manual_seed(_SEED)
    state = torch.get_rng_state()
    try:
        with torch.no_grad(), in_order(), on_host(), confined(path), watched() as warned:
            result: list[Any] = pytree.tree_leaves(subject.call(*given.of_code))
    except Stopped as error:
        raise NotCompared(error.sentence) from error
    if different := set(warned) ^ set(subject.warned):
        raise Refused(warning_of(min(different)[1]))
    if any(isinstance(element, FakeTensor) for element in result):
        raise NotCompared("it reads a tensor whose values are not at hand")
    if not torch.equal(state, torch.get_rng_state()):
        raise NotCompared("it draws random numbers")
    return result


class _Widening(TorchDispatchMode):
    """Every float is one of float64, whatever the code asks for."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = pytree.tree_map_only(torch.dtype, _wide_dtype, (args, kwargs or {}))
        return func(*args, **kwargs)


def _wide_dtype(dtype: torch.dtype) -> torch.dtype:
    name = str(dtype).removeprefix("torch.")
    wide: torch.dtype = getattr(torch, _WIDE.get(name, name))
    return wide


def _wide_value(value: Any) -> Any:
    return value.to(_wide_dtype(value.dtype)) if isinstance(value, torch.Tensor) else value


@contextmanager
def _widening() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Widening():
            yield
    finally:
        torch.set_default_dtype(before)


class _Both:
    """Both ways at one draw; the results in float64 are computed where they are first asked for."""

    def __init__(
        self, subject: Subject, graph: dict[str, Any], sizes: dict[str, int], given: Given, path: Path
    ) -> None:
        self._subject, self._graph, self._sizes, self._path = subject, graph, sizes, path
        self._given = given
        operations = {node["op"].split(".")[1] for node in graph["nodes"]}
        self._signed = _ADDING.isdisjoint(operations)
        self._noise = 0.0 if _AVERAGING.isdisjoint(operations) else noise_of(given.of_code)
        self._has_own_order = not _OF_OWN_ORDER.isdisjoint(operations)
        self._wide: tuple[list[Any], list[Any], Given] | None = None
        self._tried = False

    def results(self, of_code: list[Any], of_graph: list[Any]) -> Sentence:
        """The first difference of results."""
        for place in self._subject.places:
            code, number = of_code[place[0]], place[1]
            if not isinstance(code, torch.Tensor):
                continue
            pair = CodeAndGraph(code, self._given_by_call(of_graph, place))
            sentence = self._difference(pair, partial(self._exact, place))
            if sentence := sentence or (Sentence() if self._has_own_order else otherwise_in_memory(pair)):
                return Sentence("result {number} is {what}", number=number + 1, what=sentence)
        return Sentence()

    def _given_by_call(self, of_graph: list[Any], place: Place) -> torch.Tensor:
        """What the call makes of an output of the graph, which a kernel gives as a contiguous tensor."""
        _, number, steps = place
        value = of_graph[number].clone(memory_format=torch.contiguous_format)
        made: torch.Tensor = view_by(steps, value, lambda size: size_of(size, self._sizes))
        return made

    def inputs(self, given: Given, of_graph: list[Any]) -> Sentence:
        """The first difference of what the code leaves in its inputs: what the graph updates, or what was
        there before."""
        updates = {update["expression"]: update for update in self._graph.get("updates", ())}
        copies = dict(self._subject.copies)
        for index, leaf in enumerate(self._subject.leaves):
            after, before = given.of_code[index], self._given.of_code[copies.get(index, index)]
            if leaf.kind == SCALAR:
                continue
            update = updates.get(leaf.expression)
            if update is None:
                result = self._kept(after, before)
            elif update["output"] is None:
                result = self._kept(after, before + update["step"])
            else:
                pair = CodeAndGraph(after, of_graph[update["output"]])
                exact = partial(self._exact_input, index, update["output"])
                result = self._difference(pair, exact)
            if result:
                return Sentence("{input} is left as {what}", input=leaf.expression, what=result)
        return Sentence()

    @staticmethod
    def _kept(after: torch.Tensor, before: torch.Tensor) -> Sentence:
        if after.shape == before.shape and not bool(unequal(*map(_real, (after, before))).any()):
            return Sentence()
        return difference(CodeAndGraph(after, before), lambda: None) or Sentence(
            "other values than the graph leaves"
        )

    def _difference(self, pair: CodeAndGraph, exact: Wide) -> Sentence:
        return difference(pair, exact, signed=self._signed, noise=self._noise)

    def _exact(self, place: Place) -> CodeAndGraph | None:
        both = self._both()
        return _pair(both[0][place[0]], self._given_by_call(both[1], place)) if both else None

    def _exact_input(self, index: int, number: int) -> CodeAndGraph | None:
        both = self._both()
        return _pair(both[2].of_code[index], both[1][number]) if both else None

    def _both(self) -> tuple[list[Any], list[Any], Given] | None:
        if not self._tried:
            self._tried = True
            given = self._given.copied(_wide_value)
            settings = [operand for operand in self._graph["inputs"] if operand.get("value") is not None]
            given.of_graph.update(
                {i["name"]: torch.tensor(i["value"], dtype=torch.float64) for i in settings}
            )
            try:
                of_graph = _run_graph(widened(self._graph, _WIDE, exact=True), given, self._sizes)
                with _widening():
                    of_code = _run_code(self._subject, given, self._path)
            except Exception:  # not every code takes float64: then what is known of float32 decides
                return None
            self._wide = (of_code, of_graph, given)
        return self._wide


def _pair(code: Any, graph: Any) -> CodeAndGraph | None:
    both = isinstance(code, torch.Tensor) and isinstance(graph, torch.Tensor)
    return CodeAndGraph(code, graph) if both else None


def _real(value: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
