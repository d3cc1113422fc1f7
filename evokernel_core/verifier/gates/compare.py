"""Two tensors in raw files, element by element, and where they differ in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from evokernel_core.domain.sentence import Sentence, joined
from evokernel_core.domain.task import Tolerance
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.verifier.gates.special_values import NonFinite

CHUNK = 1 << 16
"""Elements compared at a time: what is worked on stays in the processor's cache."""
LOADED = 1 << 20
"""Bytes up to which mapping a file takes longer than reading it."""

FLOATS = ("float16", "bfloat16", "float32", "float64")
_BEYOND = {"float16": 2.0**16, "bfloat16": 2.0**128, "float32": 2.0**128, "float64": math.inf}
"""The first power of two that a type has no number for."""
AGREEMENT: dict[str, float] = {"float16": 0.03, "bfloat16": 0.04, "float32": 0.01, "float64": 0.01}
"""The relative root-mean-square difference that is taken for rounding where the values are random, by dtype.

Kernels that round as PyTorch does stay below a tenth of it; half types keep 11 and 8 bits, and kernels round
more often in them than PyTorch. The largest difference alone would let pass what is wrong where outputs are
small: a softmax over 4096 columns in float16 is below 1e-2 everywhere.
"""
OWN_ROUNDING = 4.0
"""How many times PyTorch's own distance from the result in wider types a kernel's may be."""


@frozen
class Element:
    """An element by its index: what the kernel gave there, and what PyTorch gives."""

    index: tuple[int, ...]
    got: str
    wanted: str


@frozen
class Comparison:
    """What differs: ``wrong`` of ``total`` elements, the worst errors, the first of them and the region.

    ``others`` are the wrong element with the largest error and the last one, as far as they are others.
    ``farthest`` is the element with the largest difference of floats, wrong or not. ``box`` is (first, last)
    index of the wrong elements in each dimension. ``notes`` are sentences.
    ``rms_ratio`` is the root mean square of the difference over that of the reference, and ``largest`` the
    largest difference, both of all finite elements of floats.
    """

    total: int
    wrong: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    first: Element | None = None
    others: tuple[Element, ...] = ()
    farthest: Element | None = None
    box: tuple[tuple[int, int], ...] = ()
    rms_ratio: float = 0.0
    largest: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        return self.wrong == 0


def read_elements(path: Path, dtype: str) -> npt.NDArray[Any]:
    """The raw elements of a file, of a large one mapped and not loaded; bfloat16 stays as its 16 bits."""
    kind = np.dtype({"bfloat16": "uint16", "bool": "uint8"}.get(dtype, dtype)).newbyteorder("<")
    if path.stat().st_size <= LOADED:
        return np.fromfile(path, kind)
    return np.memmap(path, kind, mode="r")


def as_float64(values: npt.NDArray[Any], dtype: str) -> npt.NDArray[np.float64]:
    """Elements as float64, exactly for every float type."""
    if dtype == "bfloat16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float64)


@frozen
class Expected:
    """PyTorch's output, and the same in wider types where the graph has half types or long sums; the
    latter also as float32 may round them. ``beside`` are PyTorch's outputs where values next to a step of
    rounding fall to its other side."""

    eager: Path
    precise: Path | None = None
    rounded: Path | None = None
    beside: tuple[Path, ...] = ()


def mean_magnitude(path: Path, dtype: str) -> float:
    """The root mean square of the finite elements of a file of floats."""
    values = read_elements(path, dtype)
    total, count = 0.0, 0
    for start in range(0, values.size, CHUNK):
        part = as_float64(values[start : start + CHUNK], dtype)
        part = part[np.isfinite(part)]
        total, count = total + float(np.einsum("i,i->", part, part)), count + part.size
    return math.sqrt(total / count) if count else 0.0


def largest_rounding(expected: Expected, dtype: str, rtol: float) -> float:
    """The most by which rounding on the way moves an element, beyond ``rtol`` of it: PyTorch's own
    distance and as much on the other side, since a kernel rounds in other places, in float32 a few times as
    much, where few elements may show it (a norm over 11 rows in one column), and that of long sums as float32
    may round them."""
    if expected.precise is None:
        return 0.0
    share = OWN_ROUNDING if dtype == "float32" else 2.0
    seen = _farthest(expected.eager, expected.precise, share, dtype, rtol)
    if expected.rounded is None:
        return seen
    return max(seen, _farthest(expected.rounded, expected.precise, 1.0, dtype, rtol))


def own_rounding(expected: Expected, dtype: str) -> float:
    """The root mean square of PyTorch's own distance from the result in wider types, or of what rounding long
    sums otherwise gives; 0 where there is none to compare with."""
    if expected.precise is None:
        return 0.0
    others = [expected.eager] if expected.rounded is None else [expected.eager, expected.rounded]
    return max(_mean_distance(path, expected.precise, dtype) for path in others)


def _mean_distance(path: Path, precise: Path, dtype: str) -> float:
    left, right = read_elements(path, dtype), read_elements(precise, dtype)
    total, count = 0.0, 0
    for start in range(0, right.size, CHUNK):
        first, second = (as_float64(part[start : start + CHUNK], dtype) for part in (left, right))
        with np.errstate(invalid="ignore"):
            error = first - second
        error = error[np.isfinite(error)]
        total, count = total + float(np.einsum("i,i->", error, error)), count + error.size
    return math.sqrt(total / count) if count else 0.0


def _farthest(path: Path, precise: Path, share: float, dtype: str, rtol: float) -> float:
    """The largest distance of two files' elements times ``share``, beyond ``rtol`` of the second's."""
    left, right = read_elements(path, dtype), read_elements(precise, dtype)
    most = 0.0
    for start in range(0, right.size, CHUNK):
        first, second = (as_float64(part[start : start + CHUNK], dtype) for part in (left, right))
        with np.errstate(invalid="ignore"):
            error = share * np.abs(first - second) - rtol * np.abs(second)
        most = max(most, float(error[np.isfinite(error)].max(initial=0.0)))
    return most


def compare(
    candidate: Path,
    expected: Expected,
    shape: tuple[int, ...],
    dtype: str,
    tolerance: Tolerance,
    non_finite: NonFinite = NonFinite.SAME,
) -> Comparison:
    """Compares raw files of one shape and dtype; integers and booleans must be equal.

    Each element is held against the nearest of the expected ones.
    """
    left, right = read_elements(candidate, dtype), read_elements(expected.eager, dtype)
    other = right if expected.precise is None else read_elements(expected.precise, dtype)
    if left.size != right.size:
        note = Sentence(
            "The output has {size} bytes instead of {wanted}.",
            size=left.size * ITEM_SIZE[dtype],
            wanted=right.size * ITEM_SIZE[dtype],
        )
        return Comparison(right.size, max(right.size, 1), notes=(note,))
    sides = [read_elements(path, dtype) for path in expected.beside]
    scan = _Scan(shape, dtype, tolerance, non_finite)
    for start in range(0, right.size, CHUNK):
        end = start + CHUNK
        part, asked = left[start:end], nearest(left[start:end], right[start:end], other[start:end], dtype)
        for side in sides:
            asked = _either(part, asked, side[start:end], dtype)
        scan.add(start, part, asked)
    return scan.result(right.size)


def nearest(
    left: npt.NDArray[Any], right: npt.NDArray[Any], other: npt.NDArray[Any], dtype: str
) -> npt.NDArray[Any]:
    """``right``, with elements of ``other`` where those are nearer to ``left``, and of ``left`` where no
    number is asked for: PyTorch's own result left the range of its type on the way, and so did that of the
    kernel, which rounds in other places."""
    if dtype not in FLOATS or np.array_equal(right, other):
        return right
    value, first, second = (as_float64(array, dtype) for array in (left, right, other))
    beyond = _BEYOND[dtype]
    here, one, another = (np.clip(side, -beyond, beyond) for side in (value, first, second))
    with np.errstate(invalid="ignore"):
        near, far = np.abs(here - another), np.abs(here - one)
        # an undefined difference is no distance, unless both are the same infinity or NaN
        better = np.where(np.isnan(near), np.inf, near) < np.where(np.isnan(far), np.inf, far)
        same = (value == second) | (np.isnan(value) & np.isnan(second))
        kept = (value == first) | (np.isnan(value) & np.isnan(first))
        lost = np.isfinite(second) & ~np.isfinite(first) & ~np.isfinite(value)
    return np.where(lost, left, np.where((better | same) & ~kept, other, right))


def _either(
    left: npt.NDArray[Any], right: npt.NDArray[Any], other: npt.NDArray[Any], dtype: str
) -> npt.NDArray[Any]:
    """``right``, with elements of ``other`` where those are nearer to ``left``, of integers where equal."""
    return nearest(left, right, other, dtype) if dtype in FLOATS else np.where(left == other, other, right)


class _Scan:
    """Accumulates a comparison over chunks."""

    def __init__(
        self, shape: tuple[int, ...], dtype: str, tolerance: Tolerance, non_finite: NonFinite
    ) -> None:
        self._shape, self._dtype, self._non_finite = shape, dtype, non_finite
        self._tolerance = tolerance if dtype in FLOATS else Tolerance(0.0, 0.0)
        self._wrong = 0
        self._max_abs = self._max_rel = 0.0
        self._squares = self._error_squares = self._largest = 0.0
        self._first: Element | None = None
        self._last: Element | None = None
        self._worst: Element | None = None
        self._worst_gap = -1.0
        self._farthest: Element | None = None
        self._low = np.full(len(shape), np.iinfo(np.int64).max)
        self._high = np.full(len(shape), -1)
        self._nans = self._infinities = self._zeros = self._missed = 0

    def add(self, start: int, left: npt.NDArray[Any], right: npt.NDArray[Any]) -> None:
        """Takes in one chunk that begins at flat index ``start``."""
        if self._dtype in FLOATS:
            self._add_floats(start, as_float64(left, self._dtype), as_float64(right, self._dtype))
            return
        different = left != right
        if different.any():
            gap = np.abs(left[different].astype(np.float64) - right[different].astype(np.float64))
            self._max_abs = max(self._max_abs, float(gap.max()))
            self._locate(start, different, left, right)

    def _add_floats(self, start: int, left: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> None:
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(left - right)
            bound = np.abs(right)
            bound *= self._tolerance.rtol
            bound += self._tolerance.atol
            largest = float(error.max(initial=0.0))
            if not np.isfinite(largest):
                self._add_odd_floats(start, left, right, error <= bound)
                return
            if largest > self._largest:
                self._largest = largest
                self._farthest = self._element(start, int(error.argmax()), left, right)
            # einsum, for dot would start the threads of BLAS
            self._squares += float(np.einsum("i,i->", right, right))
            self._error_squares += float(np.einsum("i,i->", error, error))
            close = error <= bound
            if not close.all():
                self._note_wrong(start, left, right, ~close)

    def _add_odd_floats(
        self,
        start: int,
        left: npt.NDArray[np.float64],
        right: npt.NDArray[np.float64],
        close: npt.NDArray[np.bool_],
    ) -> None:
        """The same where some difference is not finite: an infinity equals itself, a NaN any NaN. A number
        next to the end of the type's range may have overflowed in the other order of rounding."""
        finite = np.isfinite(left) & np.isfinite(right)
        self._largest = max(self._largest, float(np.abs((left - right)[finite]).max(initial=0.0)))
        self._squares += float(np.square(right[finite]).sum())
        self._error_squares += float(np.square((left - right)[finite]).sum())
        same = (left == right) | (np.isnan(left) & np.isnan(right))
        if self._non_finite is NonFinite.UNDEFINED:
            same |= np.isnan(right) & ~np.isfinite(left)
        elif self._non_finite is NonFinite.SPREAD:
            same |= ~np.isfinite(left)
        if self._non_finite is NonFinite.SAME:
            same |= self._at_the_end(left, right)
        close = np.where(finite, close, same)
        if not close.all():
            self._note_wrong(start, left, right, ~close)

    def _at_the_end(
        self, left: npt.NDArray[np.float64], right: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.bool_]:
        """Where an infinity is as good as the number across: taken for the first one beyond the range, it is
        within the tolerance. Rounding leaves few numbers there, none is left of the infinities of a kernel
        that clips its results."""
        beyond = _BEYOND[self._dtype]
        first, second = (np.clip(side, -beyond, beyond) for side in (left, right))
        with np.errstate(invalid="ignore"):
            near = np.abs(first - second) <= self._tolerance.atol + self._tolerance.rtol * np.abs(second)
        same, numbers = np.isinf(left) & np.isinf(right), near & np.isfinite(left) & np.isinf(right)
        if int(numbers.sum()) > max(1, int(same.sum())):
            near &= ~numbers
        return near & (np.isinf(left) ^ np.isinf(right))

    def _note_wrong(
        self,
        start: int,
        left: npt.NDArray[np.float64],
        right: npt.NDArray[np.float64],
        wrong: npt.NDArray[np.bool_],
    ) -> None:
        self._note_values(left[wrong], right[wrong])
        gap, size = np.abs(left[wrong] - right[wrong]), np.abs(right[wrong])
        finite = np.isfinite(gap) & np.isfinite(size)
        if finite.any():
            gap, size = gap[finite], size[finite]
            self._max_abs = max(self._max_abs, float(gap.max()))
            self._max_rel = max(self._max_rel, float((gap / np.maximum(size, 1e-30)).max()))
        self._locate(start, wrong, left, right)

    def _note_values(self, left: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> None:
        self._nans += int((np.isnan(left) & ~np.isnan(right)).sum())
        self._infinities += int((np.isinf(left) & np.isfinite(right)).sum())
        self._zeros += int(((left == 0) & (right != 0)).sum())
        self._missed += int((np.isfinite(left) & ~np.isfinite(right)).sum())

    def _locate(
        self, start: int, wrong: npt.NDArray[np.bool_], left: npt.NDArray[Any], right: npt.NDArray[Any]
    ) -> None:
        places = np.flatnonzero(wrong)
        flat = places + start
        self._wrong += flat.size
        if self._first is None:
            self._first = self._element(start, int(places[0]), left, right)
        self._last = self._element(start, int(places[-1]), left, right)
        with np.errstate(invalid="ignore"):
            gaps = np.nan_to_num(
                np.abs(left[places].astype(np.float64) - right[places].astype(np.float64)),
                nan=np.inf,
                posinf=np.inf,
            )
        if float(gaps.max()) > self._worst_gap:
            self._worst_gap = float(gaps.max())
            self._worst = self._element(start, int(places[gaps.argmax()]), left, right)
        for axis, indices in enumerate(np.unravel_index(flat, self._shape) if self._shape else ()):
            self._low[axis] = min(self._low[axis], indices.min())
            self._high[axis] = max(self._high[axis], indices.max())

    def _element(self, start: int, at: int, left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Element:
        """The element at a place of the chunk that begins at flat index ``start``."""
        index = np.unravel_index(start + at, self._shape) if self._shape else ()
        got, wanted = (_digits(side[at], self._dtype) for side in (left, right))
        return Element(tuple(int(number) for number in index), got, wanted)

    def result(self, total: int) -> Comparison:
        """The comparison of everything added."""
        ratio = (self._error_squares / self._squares) ** 0.5 if self._squares else 0.0
        if not self._wrong:
            return Comparison(total, rms_ratio=ratio, largest=self._largest, farthest=self._farthest)
        return Comparison(
            total=total,
            wrong=self._wrong,
            max_abs=self._max_abs,
            max_rel=self._max_rel,
            first=self._first,
            others=self._others(),
            farthest=self._farthest,
            box=tuple((int(low), int(high)) for low, high in zip(self._low, self._high, strict=True)),
            rms_ratio=ratio,
            largest=self._largest,
            notes=tuple(self._notes()),
        )

    def _others(self) -> tuple[Element, ...]:
        found = (each for each in (self._worst, self._last) if each is not None and each != self._first)
        return tuple(dict.fromkeys(found))

    def _notes(self) -> Iterator[Sentence]:
        if self._nans:
            yield Sentence("{count} elements are NaN where the reference is a number.", count=self._nans)
        if self._infinities:
            yield Sentence(
                "{count} elements are infinite where the reference is finite.",
                count=self._infinities,
            )
        if self._missed:
            yield Sentence("{count} elements are finite where the reference is not.", count=self._missed)
        if self._zeros > self._wrong // 2:
            yield Sentence("Most wrong elements are zero: that part may never have been computed.")


_DIGITS = {"float16": 5, "bfloat16": 4, "float32": 9, "float64": 17}
"""Significant decimal digits that tell every number of a type from its neighbours."""


def _digits(value: Any, dtype: str) -> str:
    """An element as a person reads it."""
    if dtype in FLOATS:
        return f"{float(value):.{_DIGITS[dtype]}g}"
    return str(bool(value)).lower() if dtype == "bool" else str(int(value))


def element_words(element: Element) -> Sentence:
    """An element with both values; one of a tensor without dimensions has no place."""
    told = {"got": element.got, "wanted": element.wanted}
    if not element.index:
        return Sentence("got {got}, wanted {wanted}", **told)
    return Sentence("{place}: got {got}, wanted {wanted}", place=list(element.index), **told)


def words(comparison: Comparison, output: int, shape: tuple[int, ...], tolerance: Tolerance) -> Sentence:
    """The comparison as feedback: how much, how far, and where."""
    percent = 100 * comparison.wrong / max(comparison.total, 1)
    parts = [
        Sentence(
            "Output {output} of shape {shape} differs from PyTorch in {wrong} of {total} elements "
            "({percent} %; tolerance rtol {rtol}, atol {atol}).",
            output=output,
            shape=list(shape),
            wrong=comparison.wrong,
            total=comparison.total,
            percent=f"{percent:.3g}",
            rtol=f"{tolerance.rtol:g}",
            atol=f"{tolerance.atol:g}",
        )
    ]
    if comparison.max_abs:
        parts.append(
            Sentence(
                "Largest error: {absolute} absolute, {relative} relative.",
                absolute=f"{comparison.max_abs:.4g}",
                relative=f"{comparison.max_rel:.4g}",
            )
        )
    if comparison.first is not None:
        parts.append(Sentence("First wrong element: {element}.", element=element_words(comparison.first)))
    if comparison.others:
        parts.append(Sentence("Others: {elements}.", elements=_listed(map(element_words, comparison.others))))
    if comparison.box:
        region = ", ".join(f"{low}:{high + 1}" for low, high in comparison.box)
        parts.append(Sentence("Wrong elements lie in [{region}].", region=region))
        parts.append(_tail_hint(comparison, shape))
    return joined([*parts, *comparison.notes])


def _listed(elements: Iterable[Sentence]) -> Sentence:
    first, *others = elements
    for other in others:
        first = Sentence("{facts}; {fact}", facts=first, fact=other)
    return first


def _tail_hint(comparison: Comparison, shape: tuple[int, ...]) -> Sentence:
    """A region that begins late and runs to the end of a dimension is mostly a tail that was left out."""
    for axis, ((low, high), size) in enumerate(zip(comparison.box, shape, strict=True)):
        if low > size // 2 and high == size - 1:
            return Sentence("They are the end of dimension {axis}: check the tail there.", axis=axis)
    return Sentence()
