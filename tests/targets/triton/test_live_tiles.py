"""The bytes of tiles that are alive at once, counted over linalg: a table of short functions."""

from __future__ import annotations

import pytest

from evokernel_core.targets.triton.backends.live_tiles import live_bytes

F = "tensor<100xf32>"
LOADED = """
%alloc = memref.alloc() : memref<100xf32>
memref.copy %view, %alloc : memref<100xf32, strided<[1], offset: ?>> to memref<100xf32>
%0 = bufferization.to_tensor %alloc restrict writable : memref<100xf32>
"""
TEXTS = {
    "what is loaded, and what is made of it": (f"{LOADED}%1 = math.exp %0 : {F}\nstore %1", 800),
    "a chain: two at a time": (
        f"{LOADED}%1 = math.exp %0 : {F}\n%2 = math.exp %1 : {F}\n%3 = math.exp %2 : {F}\nstore %3",
        800,
    ),
    "one that is used again later": (
        f"{LOADED}%1 = math.exp %0 : {F}\n%2 = math.exp %1 : {F}\n%3 = arith.addf %2, %0 : {F}\nstore %3",
        1200,
    ),
    "a fill is an operand": (
        f"{LOADED}%e = tensor.empty() : {F}\n%f = linalg.fill ins(%c : f32) outs(%e : {F}) -> {F}\n"
        f"%1 = arith.mulf %0, %f : {F}\nstore %1",
        800,
    ),
    "a truth value takes a byte": (f"{LOADED}%1 = arith.cmpf oeq, %0, %0 : {F}\nstore %1", 500),
    "a conversion has the type that it leads to": (
        f"{LOADED}%1 = arith.truncf %0 : {F} to tensor<100xf16>\nstore %1",
        600,
    ),
    "a view lies in what it shows": (
        f"{LOADED}%1 = tensor.expand_shape %0 [[0, 1]] output_shape [1, 100] : {F} into tensor<1x100xf32>\n"
        "%2 = math.exp %1 : tensor<1x100xf32>\nstore %2",
        800,
    ),
    "what is taken out of a tile is a number": (
        f"{LOADED}%1 = tensor.extract %0[%c0] : {F}\n%2 = math.exp %0 : {F}\nstore %1, %2",
        800,
    ),
    "a loop carries one": (
        f"%1 = scf.for %i = %a to %b step %c iter_args(%arg = %zero) -> ({F})  : i32 {{\n{LOADED}"
        f"%2 = arith.addf %arg, %0 : {F}\nscf.yield %2 : {F}\n}}\nstore %1",
        1200,
    ),
    "a loop in a loop carries the same": (
        f"%1 = scf.for %i = %a to %b step %c iter_args(%arg = %zero) -> ({F})  : i32 {{\n"
        f"%3 = scf.for %j = %a to %b step %c iter_args(%arg5 = %arg) -> ({F})  : i32 {{\n{LOADED}"
        f"%2 = arith.addf %arg5, %0 : {F}\nscf.yield %2 : {F}\n}}\nscf.yield %3 : {F}\n}}\nstore %1",
        1200,
    ),
    "what a loop uses from outside stays to its end": (
        f"{LOADED}scf.for %i = %a to %b step %c  : i32 {{\nuse %0\n%1 = math.exp %x : {F}\n"
        f"%2 = math.exp %1 : {F}\n}}",
        1200,
    ),
    "a name that comes again is another value": (
        f"scf.if %c {{\n%1 = math.exp %x : {F}\nstore %1\n}}\n%4 = math.exp %x : {F}\n"
        f"store %4\nscf.if %c {{\n%1 = arith.addi %n, %m : i32\nuse %1\n}}",
        400,
    ),
    "a product's sums stay in place": (
        "%a = math.exp %x : tensor<16x16xf16>\n%s = math.exp %x : tensor<16x16xf32>\n"
        "%1 = linalg.matmul ins(%a, %a : tensor<16x16xf16>, tensor<16x16xf16>) "
        "outs(%s : tensor<16x16xf32>) -> tensor<16x16xf32>\nstore %1",
        1536,
    ),
    "an extent that is not known is a part of another tile": (
        f"{LOADED}%1 = tensor.extract_slice %0[0] [%n] [1] : {F} to tensor<?xf32>\nstore %1",
        400,
    ),
    "nothing": ("return", 0),
}


@pytest.mark.parametrize("what", TEXTS)
def test_bytes(what: str) -> None:
    text, nbytes = TEXTS[what]
    assert live_bytes(text) == nbytes
