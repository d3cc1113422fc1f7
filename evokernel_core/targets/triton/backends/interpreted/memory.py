"""Tensors of a call at made-up addresses, and the rules of memory.

Each tensor has addresses of its own, far from those of others, so that an address says which tensor a pointer
came from however far it went. A launch records which program stores and which loads each element: two
programs of a launch that store one, or one that loads what another stores, depend on an order that no device
promises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = Any
"""Of numpy, which has types only where it is installed."""
_REGION = 44
"""Bits of the addresses of one tensor; its data begin in the middle."""
_MIDDLE = 1 << (_REGION - 1)
_ATOMIC, _SEVERAL = -1, -2
"""In place of a program: atomic operations of any, and more than one program."""
POISONS = (0xFF, 0x7B)
"""What memory that nobody wrote holds, byte by byte, in one run and in the next: NaN, and large numbers."""
MOST_HAZARDS = 40

STORAGE = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": np.uint16,
    "int64": np.int64,
    "int32": np.int32,
    "int16": np.int16,
    "int8": np.int8,
    "uint8": np.uint8,
    "bool": np.int8,
}


class Broken(Exception):
    """A rule that ends the run, by its name, and what its sentence speaks of."""

    def __init__(self, rule: str, **values: object) -> None:
        super().__init__(rule)
        self.rule, self.values = rule, values


class CallTensor:
    """One tensor: its elements, and who stored and loaded them in the present launch."""

    def __init__(self, number: int, name: str, dtype: str, data: Array, role: str) -> None:
        self.name, self.dtype, self.data, self.role = name, dtype, data, role
        self.base = ((number + 1) << _REGION) + _MIDDLE
        self.written: Array | None = None
        self.writer: Array | None = None
        self.reader: Array | None = None

    def new_launch(self) -> None:
        self.writer = self.reader = None

    def shadows(self) -> tuple[Array, Array]:
        """Who stored and who loaded each element in this launch."""
        if self.writer is None or self.reader is None:
            self.writer = np.zeros(self.data.size, np.int32)
            self.reader = np.zeros(self.data.size, np.int32)
        return self.writer, self.reader


class Counts:
    """What programs did: bytes that they loaded and stored by tensor, of them those stored in outputs,
    multiply-adds by dtype, elements of arithmetic, and of them those of exponentials and their kin; lanes of
    loads and stores, and of them those that a mask let through."""

    def __init__(self) -> None:
        self.elements = self.special = self.written = self.lanes = self.active = 0
        self.products: dict[str, int] = {}
        self.tensors: dict[str, int] = {}

    def moved(self, tensor: CallTensor, nbytes: int) -> None:
        """Bytes of a tensor that are loaded or stored."""
        self.tensors[tensor.name] = self.tensors.get(tensor.name, 0) + nbytes

    def asked(self, lanes: int, active: int) -> None:
        """Lanes of a load or a store."""
        self.lanes += lanes
        self.active += active

    def data(self) -> dict[str, Any]:
        return {**vars(self), "products": dict(self.products), "tensors": dict(self.tensors)}

    def restore(self, data: dict[str, Any]) -> None:
        vars(self).update({**data, "products": dict(data["products"]), "tensors": dict(data["tensors"])})


class CallMemory:
    """All tensors of a call. ``programs`` are those that run now, from 0; ``line`` says where in the kernel
    they are. With ``only_counts`` nobody looks for programs that meet."""

    def __init__(self, line: Callable[[], int], *, only_counts: bool = False) -> None:
        self._line, self._only_counts = line, only_counts
        self._tensors: list[CallTensor] = []
        self._undo: list[Callable[[], None]] = []
        self._hazards: dict[tuple[str, int, str], dict[str, Any]] = {}
        self._counted: dict[str, Any] = {}
        self.counts = Counts()
        self.programs: Array = np.zeros(1, np.int32)
        self.has_float_atomics = False

    def add(self, name: str, dtype: str, data: Array, role: str) -> CallTensor:
        """A tensor of ``role`` input, output or scratch over a flat array of its storage."""
        tensor = CallTensor(len(self._tensors), name, dtype, data, role)
        if role == "output" and not self._only_counts:
            tensor.written = np.zeros(data.size, bool)
        self._tensors.append(tensor)
        return tensor

    def new_launch(self) -> None:
        for tensor in self._tensors:
            tensor.new_launch()

    def begin(self, programs: Array) -> None:
        """Programs start; what they do from here on can be taken back."""
        self.programs = programs
        self._undo.clear()
        self._counted = self.counts.data()

    def take_back(self) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        self.counts.restore(self._counted)

    def hazards(self) -> list[dict[str, Any]]:
        """The rules that were broken, each once a line."""
        return list(self._hazards.values())

    def load(self, address: Array, mask: Array | None, dtype: Any) -> Array:
        """The elements at addresses, of any shape; those that a mask leaves out have no value that anybody
        may use. ``mask`` has as many dimensions as ``address``."""
        shape = np.broadcast_shapes(address.shape, () if mask is None else mask.shape)
        inside = None if mask is None or mask.all() else np.broadcast_to(mask, shape)
        self.counts.asked(math.prod(shape) * (len(self.programs) if shape[0] == 1 else 1), 0)
        if inside is not None and not inside.any():
            return np.full(shape, _garbage(np.dtype(dtype)), dtype)
        address = np.broadcast_to(address, shape)
        result: Array | None = None
        for tensor, chosen in self._tensors_of(address, inside, "loads"):
            where = self._places(tensor, address, chosen, dtype, "loads")
            self._loaded(tensor, where, chosen, shape)
            values = tensor.data.view(dtype)[where]
            if chosen is None:
                return values
            if result is None:
                result = np.full(shape, _garbage(np.dtype(dtype)), dtype)
            result[chosen] = values
        assert result is not None
        return result

    def store(self, address: Array, values: Array, mask: Array | None, dtype: Any) -> None:
        """Stores elements of ``dtype`` at addresses."""
        count = len(self.programs)
        shape = np.broadcast_shapes(
            (count, *address.shape[1:]), values.shape, () if mask is None else mask.shape
        )
        inside = None if mask is None or mask.all() else np.broadcast_to(mask, shape)
        self.counts.asked(math.prod(shape), 0)
        if inside is not None and not inside.any():
            return
        address, values = np.broadcast_to(address, shape), np.broadcast_to(values, shape)
        for tensor, chosen in self._tensors_of(address, inside, "stores"):
            where = self._places(tensor, address, chosen, dtype, "stores").ravel()
            given = (values[chosen] if chosen is not None else values.ravel()).astype(dtype, copy=False)
            me = self._lanes(chosen, shape)
            self._require_output(tensor)
            self._stored(tensor, where, me)
            data = tensor.data.view(dtype)
            self._put(tensor, data, where, given)
            if where.size > 1 and not np.array_equal(_bits(data[where]), _bits(given)):
                self._hazard("overlapping-lanes", tensor=tensor.name)

    def atomic(
        self, address: Array, mask: Array | None, dtype: Any, change: Callable[[Array, Array], Array]
    ) -> Array:
        """Atomic operations, lane after lane: ``change`` makes the new elements of old ones and of the
        numbers of lanes. Gives the old elements."""
        count = len(self.programs)
        shape = np.broadcast_shapes((count, *address.shape[1:]), () if mask is None else mask.shape)
        inside = np.ones(shape, bool) if mask is None else np.broadcast_to(mask, shape)
        result = np.zeros(shape, dtype)
        if not inside.any():
            return result
        address = np.broadcast_to(address, shape)
        lanes = np.arange(inside.size).reshape(shape)
        for tensor, some in self._tensors_of(address, inside, "stores"):
            chosen = inside if some is None else some
            where = self._places(tensor, address, chosen, dtype, "stores")
            self._require_output(tensor)
            self._changed(tensor, where, self._lanes(chosen, shape))
            data = tensor.data.view(dtype)
            result[chosen] = self._change(tensor, data, where, lanes[chosen], change)
        return result

    def _change(
        self,
        tensor: CallTensor,
        data: Array,
        where: Array,
        lanes: Array,
        change: Callable[[Array, Array], Array],
    ) -> Array:
        if np.unique(where).size == where.size:
            old = data[where]
            self._put(tensor, data, where, change(old, lanes))
            return old
        kept, olds = data[where], np.empty(where.size, data.dtype)
        self._undo.append(lambda: data.__setitem__(where[::-1], kept[::-1]))
        for place in range(where.size):
            at = where[place : place + 1]
            olds[place] = data[at[0]]
            data[at] = change(data[at], lanes[place : place + 1])
        return olds

    def _put(self, tensor: CallTensor, data: Array, where: Array, values: Array) -> None:
        """Stores that can be taken back."""
        kept, written = data[where], tensor.written
        was = written[where] if written is not None else None

        def undo() -> None:
            data[where] = kept
            if written is not None:
                written[where] = was

        self._undo.append(undo)
        data[where] = values
        if written is not None:
            written[where] = True
        self.counts.moved(tensor, where.size * data.itemsize)
        self.counts.written += where.size * data.itemsize if tensor.role == "output" else 0

    def _tensors_of(
        self, address: Array, inside: Array | None, verb: str
    ) -> Iterator[tuple[CallTensor, Array | None]]:
        """The tensors that lanes point into, each with its lanes; None stands for all of them."""
        numbers = (address >> np.uint64(_REGION)).astype(np.int64) - 1
        used = numbers if inside is None else numbers[inside]
        low, high = (int(used.min()), int(used.max())) if used.size else (0, -1)
        for number in [low] if low == high else np.unique(used):
            if not 0 <= number < len(self._tensors):
                raise Broken("no-tensor", verb=verb)
            if low == high:
                yield self._tensors[number], inside
            else:
                yield self._tensors[number], (numbers == number) & (True if inside is None else inside)

    def _places(
        self, tensor: CallTensor, address: Array, chosen: Array | None, dtype: Any, verb: str
    ) -> Array:
        """The elements that lanes point to. Raises Broken where one is outside of the tensor."""
        size = np.dtype(dtype).itemsize
        if size != tensor.data.itemsize:
            own = tensor.data.itemsize
            raise Broken("other-width", tensor=tensor.name, verb=verb, size=size, own=own)
        used = address if chosen is None else address[chosen]
        offset = used.astype(np.int64) - tensor.base
        where = offset // size if size > 1 else offset
        if (where.size and (where.min() < 0 or where.max() >= tensor.data.size)) or (offset % size).any():
            bad = where[(where < 0) | (where >= tensor.data.size)]
            element = int(bad[0]) if bad.size else int(where.flat[0])
            count = tensor.data.size
            raise Broken("out-of-bounds", verb=verb, element=element, tensor=tensor.name, count=count)
        return where

    def _lanes(self, chosen: Array | None, shape: tuple[int, ...]) -> Array:
        """The program of each lane, from 1."""
        programs = (self.programs + 1).reshape(-1, *(1,) * (len(shape) - 1))
        every = np.broadcast_to(programs, shape)
        return every.ravel() if chosen is None else every[chosen]

    def _require_output(self, tensor: CallTensor) -> None:
        if tensor.role == "input":
            raise Broken("input-modified", tensor=tensor.name)

    def _loaded(self, tensor: CallTensor, where: Array, chosen: Array | None, shape: tuple[int, ...]) -> None:
        several = len(self.programs) if shape[0] == 1 else 1
        self.counts.moved(tensor, where.size * tensor.data.itemsize * several)
        self.counts.asked(0, where.size * several)
        if tensor.role == "input" or self._only_counts:
            return
        writer, reader = tensor.shadows()
        me = np.full(where.size, _SEVERAL, np.int32) if several > 1 else self._lanes(chosen, shape)
        where = where.ravel()
        before, stored = reader[where], writer[where]
        self._undo.append(lambda: reader.__setitem__(where, before))
        reader[where] = np.where((before == 0) | (before == me), me, _SEVERAL)
        again = reader[where] != me  # of several programs in these lanes the last one stands
        reader[where[again]] = _SEVERAL
        self._race(tensor, where, (stored != 0) & (stored != me))

    def _stored(self, tensor: CallTensor, where: Array, me: Array) -> None:
        self.counts.asked(0, where.size)
        if self._only_counts:
            return
        writer, reader = tensor.shadows()
        before = writer[where]
        self._undo.append(lambda: writer.__setitem__(where, before))
        writer[where] = me
        twice = ((before != 0) & (before != me)) | (writer[where] != me)
        if twice.any():
            self._hazard("overlapping-stores", element=int(where[twice][0]), tensor=tensor.name)
        loaded = reader[where]
        self._race(tensor, where, (loaded != 0) & (loaded != me))

    def _changed(self, tensor: CallTensor, where: Array, me: Array) -> None:
        """As ``_stored`` for atomic operations, which may meet each other."""
        self.has_float_atomics |= tensor.dtype.startswith(("float", "bfloat"))
        self.counts.moved(tensor, where.size * tensor.data.itemsize)
        self.counts.written += where.size * tensor.data.itemsize if tensor.role == "output" else 0
        self.counts.asked(where.size, where.size)
        if self._only_counts:
            return
        writer, reader = tensor.shadows()
        before, loaded = writer[where], reader[where]
        self._undo.append(lambda: writer.__setitem__(where, before))
        writer[where] = _ATOMIC
        others = (before != 0) & (before != me) & (before != _ATOMIC)
        self._race(tensor, where, others | ((loaded != 0) & (loaded != me)))
        if tensor.written is not None:
            tensor.written[where] = True

    def _race(self, tensor: CallTensor, where: Array, bad: Array) -> None:
        if bad.any():
            self._hazard("race", element=int(where[bad][0]), tensor=tensor.name)

    def _hazard(self, rule: str, **values: object) -> None:
        """Records a broken rule; it stands even where programs start again, who come by here once more."""
        line = self._line()
        if len(self._hazards) < MOST_HAZARDS:
            self._hazards.setdefault(
                (rule, line, str(values.get("tensor"))), {"rule": rule, "values": values, "line": line}
            )


def _bits(values: Array) -> Array:
    return np.ascontiguousarray(values).view(f"u{values.itemsize}")


def _garbage(dtype: Any) -> Any:
    """A value that no result may depend on."""
    if dtype.kind == "f":
        return np.nan
    return np.frombuffer(b"\x7b" * dtype.itemsize, dtype)[0]
