"""What Triton's front asks of a compiler, answered by numpy for many programs at once.

A value of a program has one more dimension here, the first, for the programs: 1 where all have the same, else
as many as run. So an instruction of a thousand programs is one call of numpy. Where programs would take
different ways they are ``Divided``, and start again in groups that go the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import ir
from triton.runtime import interpreter

from .memory import Array, CallMemory
from .numbers import bfloat16_bits, erf, from_bfloat16_bits, multiplied, saturated, to_bfloat16

Handle = interpreter.TensorHandle
MOST_LANES = 1 << 22
"""Elements of one value of all programs that run at once."""


class Divided(Exception):
    """Programs that go different ways; carries a number of its way for each."""

    def __init__(self, ways: Array) -> None:
        super().__init__("programs divide")
        self.ways = ways


def storage_of(dtype: Any) -> Any:
    """How numpy keeps a dtype of Triton in values."""
    if dtype.scalar == tl.bfloat16:
        return np.dtype(np.float32)
    return _original_dtype(dtype)


_original_dtype = interpreter._get_np_dtype


def in_memory(dtype: Any) -> Any:
    """How memory has a dtype of Triton."""
    if dtype == tl.bfloat16:
        return np.dtype(np.uint16)
    return np.dtype(np.int8) if dtype == tl.int1 else _original_dtype(dtype)


def _fits(data: Array, dtype: Any) -> bool:
    if not isinstance(dtype, tl.pointer_type) and dtype.scalar == tl.bfloat16:
        return bool(data.dtype in (np.float32, np.bool_))
    return bool(_original_fits(data, dtype))


_original_fits = interpreter._validate_np_data_size


def use_these_dtypes() -> None:
    """From here on values of bfloat16 are kept as float32."""
    interpreter._get_np_dtype = storage_of
    interpreter._validate_np_data_size = _fits


def _programs_last(shape: Sequence[int], data: Array) -> Array:
    """A number a program as blocks of ``shape``."""
    count = len(data)
    return np.broadcast_to(data.reshape(count, *(1,) * len(shape)), (count, *shape))


class NumpyBuilder(interpreter.InterpreterBuilder):
    """The instructions of the programs that run; ``grid`` is that of their launch."""

    def __init__(self, memory: CallMemory) -> None:
        super().__init__()
        self.options = interpreter.InterpreterOptions(sanitize_overflow=False)
        self.codegen_fns["min_dot_size"] = _least_dot
        self.memory = memory
        self.grid = (1, 1, 1)

    def get_bf16(self, value: float) -> Any:
        return Handle(to_bfloat16(np.array([value], np.float32)), tl.bfloat16)

    def create_get_program_id(self, axis: int) -> Any:
        x, y, _ = self.grid
        number = self.memory.programs
        coordinates = (number % x, number // x % y, number // (x * y))
        return Handle(coordinates[axis].astype(np.int32), tl.int32)

    def create_get_num_programs(self, axis: int) -> Any:
        return Handle(np.array([self.grid[axis]], np.int32), tl.int32)

    # memory

    def create_load(self, pointer: Any, _0: Any, _1: Any, volatile: bool) -> Any:
        return self._loaded(pointer, None, None)

    def create_masked_load(
        self, pointer: Any, mask: Any, other: Any, cache: Any, eviction: Any, volatile: bool
    ) -> Any:
        return self._loaded(pointer, mask.data, other)

    def _loaded(self, pointer: Any, mask: Array | None, other: Any) -> Any:
        dtype = pointer.get_element_ty()
        self._require_room(pointer.data)
        values = self.memory.load(pointer.data, mask, in_memory(dtype))
        if dtype == tl.bfloat16:
            values = from_bfloat16_bits(values)
        if other is not None and mask is not None:
            values = np.where(mask, values, other.data.astype(values.dtype, copy=False))
        return Handle(values, dtype)

    def create_store(self, pointer: Any, value: Any, _0: Any, _1: Any) -> None:
        self._store(pointer, value, None)

    def create_masked_store(self, pointer: Any, value: Any, mask: Any, cache: Any, eviction: Any) -> None:
        self._store(pointer, value, mask.data)

    def _store(self, pointer: Any, value: Any, mask: Array | None) -> None:
        dtype = pointer.get_element_ty()
        data = bfloat16_bits(value.data) if dtype == tl.bfloat16 else value.data
        self.memory.store(pointer.data, data, mask, in_memory(dtype))

    def create_atomic_rmw(self, op: Any, pointer: Any, value: Any, mask: Any, sem: Any, scope: Any) -> Any:
        change = _CHANGES[op]
        return self._changed(pointer, mask.data, (value,), lambda old, new: change(old, new[0]))

    def create_atomic_cas(self, pointer: Any, expected: Any, value: Any, sem: Any, scope: Any) -> Any:
        def change(old: Array, given: list[Array]) -> Array:
            return np.where(old == given[0], given[1], old)

        return self._changed(pointer, None, (expected, value), change)

    def _changed(
        self,
        pointer: Any,
        mask: Array | None,
        operands: Sequence[Any],
        change: Callable[[Array, list[Array]], Array],
    ) -> Any:
        dtype = pointer.get_element_ty()
        is_bfloat16 = dtype == tl.bfloat16
        shape = np.broadcast_shapes(
            (len(self.memory.programs), *pointer.data.shape[1:]), () if mask is None else mask.shape
        )
        flat = [np.broadcast_to(one.data, shape).ravel() for one in operands]

        def changed(old: Array, lanes: Array) -> Array:
            if is_bfloat16:
                return bfloat16_bits(change(from_bfloat16_bits(old), [one[lanes] for one in flat]))
            return change(old, [one[lanes] for one in flat])

        old = self.memory.atomic(pointer.data, mask, in_memory(dtype), changed)
        return Handle(from_bfloat16_bits(old) if is_bfloat16 else old, dtype)

    # conversions

    def cast_impl(self, source: Any, target: Any) -> Any:
        dtype = target.scalar
        return Handle(self._converted(source, dtype), dtype)

    def _converted(self, source: Any, dtype: Any) -> Array:
        if dtype == tl.bfloat16:
            return to_bfloat16(source.data.astype(np.float32))
        if dtype.is_int() and source.data.dtype.kind == "f" and dtype != tl.int1:
            return saturated(source.data, storage_of(dtype))
        return source.data.astype(storage_of(dtype))

    def create_fp_to_fp(self, source: Any, target: Any, rounding: Any) -> Any:
        dtype = target.scalar
        if rounding != ir.ROUNDING_MODE.RTZ:
            return self.cast_impl(source, target)
        rounded = self._converted(source, dtype)
        # towards zero: where rounding went away from it, the neighbour on its side
        away = np.abs(rounded.astype(np.float64)) > np.abs(source.data.astype(np.float64))
        if dtype == tl.bfloat16:
            below = (rounded.view(np.uint32) - np.uint32(0x10000)).view(np.float32)
        else:
            below = np.nextafter(rounded, rounded.dtype.type(0))
        return Handle(np.where(away, below, rounded), dtype)

    def create_bitcast(self, source: Any, target: Any) -> Any:
        data = source.data
        if source.dtype.scalar == tl.bfloat16 and not isinstance(source.dtype, tl.pointer_type):
            data = bfloat16_bits(data)
        if target.scalar == tl.bfloat16:
            return Handle(from_bfloat16_bits(data.view(np.uint16)), tl.bfloat16)
        return Handle(np.ascontiguousarray(data).view(storage_of(target)), target.scalar)

    create_int_to_ptr = create_bitcast
    create_ptr_to_int = create_bitcast

    # arithmetic

    def binary_op(self, left: Any, right: Any, op: Callable[[Array, Array], Array]) -> Any:
        self._require_room(left.data, right.data)
        return self._rounded(op(left.data, right.data), left.dtype.scalar)

    def unary_op(self, value: Any, op: Callable[[Array], Array]) -> Any:
        data = op(value.data)
        if op in _SPECIAL:
            self.memory.counts.special += self._elements(data)
        return self._rounded(data, value.dtype.scalar)

    def ternary_op(self, first: Any, second: Any, third: Any, op: Callable[..., Array]) -> Any:
        return self._rounded(op(first.data, second.data, third.data), third.dtype.scalar)

    def _rounded(self, data: Array, dtype: Any) -> Any:
        self.memory.counts.elements += self._elements(data)
        if data.dtype == np.bool_:
            return Handle(data, dtype)
        if dtype == tl.bfloat16:
            return Handle(to_bfloat16(data), dtype)
        return Handle(data.astype(storage_of(dtype), copy=False), dtype)

    def _require_room(self, *operands: Array) -> None:
        """Raises Divided where a result of so many programs would take too much memory."""
        count = len(self.memory.programs)
        each = max(data.size // max(len(data), 1) for data in operands)
        if count > 1 and count * each > MOST_LANES:
            together = max(1, MOST_LANES // each)
            raise Divided(np.arange(count) // together)

    def _elements(self, data: Array) -> int:
        count = len(self.memory.programs)
        return int(data.size * count if len(data) == 1 else data.size)

    def create_maxnumf(self, left: Any, right: Any) -> Any:
        return self.binary_op(left, right, np.fmax)

    def create_minnumf(self, left: Any, right: Any) -> Any:
        return self.binary_op(left, right, np.fmin)

    def create_clampf(self, value: Any, low: Any, high: Any, propagate: Any) -> Any:
        if propagate == ir.PROPAGATE_NAN.ALL:
            return self.ternary_op(value, low, high, lambda x, a, b: np.minimum(np.maximum(x, a), b))
        return self.ternary_op(value, low, high, lambda x, a, b: np.fmin(np.fmax(x, a), b))

    def create_idiv(self, left: Any, right: Any) -> Any:
        safe = np.where(right.data == 0, right.data.dtype.type(1), right.data)
        quotient = left.data // safe
        if left.data.dtype.kind == "i":  # towards zero, as a device divides
            is_less = (quotient < 0) & (quotient * safe != left.data)
            quotient = quotient + is_less.astype(quotient.dtype)
        return self._rounded(quotient, left.dtype.scalar)

    def create_srem(self, left: Any, right: Any) -> Any:
        safe = np.where(right.data == 0, right.data.dtype.type(1), right.data)
        return self._rounded(np.fmod(left.data, safe), left.dtype.scalar)

    create_urem = create_srem

    def create_ashr(self, left: Any, right: Any) -> Any:
        signed = left.data.view(interpreter._get_signed_np_dtype(left.data.dtype))
        shifted = np.right_shift(signed, right.data.astype(signed.dtype))
        return Handle(shifted.view(left.data.dtype), left.dtype.scalar)

    def create_fma(self, x: Any, y: Any, z: Any) -> Any:
        wide = x.data.astype(np.float64) * y.data.astype(np.float64) + z.data.astype(np.float64)
        return self._rounded(wide, z.dtype.scalar)

    def create_fabs(self, value: Any) -> Any:
        return self.unary_op(value, np.abs)

    def create_erf(self, value: Any) -> Any:
        return self.unary_op(value, erf)

    def create_rsqrt(self, value: Any) -> Any:
        return self.unary_op(value, _rsqrt)

    def create_dot(self, a: Any, b: Any, acc: Any, precision: Any, _most_imprecise: int) -> Any:
        words = {ir.INPUT_PRECISION.TF32: "tf32", ir.INPUT_PRECISION.TF32x3: "tf32x3"}
        is_float32 = a.dtype.scalar == tl.float32
        how = words.get(precision, "ieee") if is_float32 else "ieee"
        product = multiplied(a.data, b.data, how, _sums_of(acc))
        counts, name = self.memory.counts, how if is_float32 else str(a.dtype.scalar)
        work = self._elements(product) * a.data.shape[-1]
        counts.products[name] = counts.products.get(name, 0) + work
        return Handle((product + acc.data).astype(acc.data.dtype), acc.dtype.scalar)

    # shapes: the first dimension is that of the programs

    def create_make_range(self, kind: Any, start: int, stop: int) -> Any:
        return Handle(np.arange(start, stop, dtype=np.int32)[None], tl.int32)

    def create_splat(self, kind: Any, value: Any) -> Any:
        data = value.data.reshape(len(value.data))
        return Handle(_programs_last(kind.shape, data), value.dtype.scalar)

    def create_unsplat(self, value: Any) -> Any:
        return Handle(value.data.reshape(len(value.data), -1)[:, 0], value.dtype.scalar)

    def create_expand_dims(self, value: Any, axis: int) -> Any:
        return Handle(np.expand_dims(value.data, axis + 1), value.dtype.scalar)

    def create_broadcast(self, value: Any, shape: Sequence[int]) -> Any:
        return Handle(np.broadcast_to(value.data, (len(value.data), *shape)), value.dtype.scalar)

    def create_reshape(self, value: Any, shape: Sequence[int], _reorder: bool) -> Any:
        return Handle(value.data.reshape(len(value.data), *shape), value.dtype.scalar)

    def create_trans(self, value: Any, order: Sequence[int]) -> Any:
        return Handle(value.data.transpose(0, *(axis + 1 for axis in order)), value.dtype.scalar)

    def create_cat(self, left: Any, right: Any) -> Any:
        return Handle(np.concatenate(alike(left.data, right.data), 1), left.dtype.scalar)

    def create_join(self, left: Any, right: Any) -> Any:
        return Handle(np.stack(alike(left.data, right.data), -1), left.dtype.scalar)

    def create_split(self, value: Any) -> Any:
        return tuple(Handle(value.data[..., half], value.dtype.scalar) for half in (0, 1))

    def create_gather(self, source: Any, indices: Any, axis: int) -> Any:
        data, where = alike(source.data, indices.data)
        return Handle(np.take_along_axis(data, where, axis + 1), source.dtype.scalar)

    def create_histogram(self, value: Any, bins: int, mask: Any) -> Any:
        inside = (
            np.ones_like(value.data, bool) if mask is None else np.broadcast_to(mask.data, value.data.shape)
        )
        rows = [
            np.bincount(row[keep], minlength=bins)[:bins]
            for row, keep in zip(value.data, inside, strict=True)
        ]
        return Handle(np.stack(rows).astype(np.int32), tl.int32)

    def create_addptr(self, pointer: Any, offset: Any) -> Any:
        size = max(1, pointer.get_element_ty().primitive_bitwidth // 8)
        moved = pointer.data + offset.data.astype(np.int64).astype(np.uint64) * np.uint64(size)
        return Handle(moved, pointer.dtype)

    def create_inline_asm(self, *_: Any) -> Any:
        raise ValueError("inline assembly is no Triton")

    def create_extern_elementwise(self, *_: Any) -> Any:
        raise ValueError("functions of other libraries do not run here")


def alike(left: Array, right: Array) -> list[Array]:
    """Two values of as many programs."""
    count = max(len(left), len(right))
    return [np.broadcast_to(one, (count, *one.shape[1:])) for one in (left, right)]


def _least_dot(left: Any, right: Any) -> tuple[int, int, int]:
    """The least sizes of a product's blocks on a GPU: as Triton's backend for NVIDIA has them."""
    return (1, 1, 32) if left.scalar.primitive_bitwidth == 8 else (1, 1, 16)


def _sums_of(acc: Any) -> Any:
    return np.dtype(np.float32) if acc.data.dtype == np.float16 else acc.data.dtype


def _rsqrt(values: Array) -> Array:
    return 1 / np.sqrt(values)


_SPECIAL = (np.exp, np.exp2, np.log, np.log2, np.sin, np.cos, np.sqrt, erf, _rsqrt)
_CHANGES: dict[Any, Callable[[Array, Array], Array]] = {
    ir.ATOMIC_OP.ADD: lambda old, new: old + new,
    ir.ATOMIC_OP.FADD: lambda old, new: old + new,
    ir.ATOMIC_OP.MIN: np.minimum,
    ir.ATOMIC_OP.UMIN: np.minimum,
    ir.ATOMIC_OP.MAX: np.maximum,
    ir.ATOMIC_OP.UMAX: np.maximum,
    ir.ATOMIC_OP.AND: lambda old, new: old & new,
    ir.ATOMIC_OP.OR: lambda old, new: old | new,
    ir.ATOMIC_OP.XOR: lambda old, new: old ^ new,
    ir.ATOMIC_OP.XCHG: lambda old, new: new,
}
