"""Names of a graph's inputs, from the expressions that give them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_CPP_WORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t
    class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue
    decltype default delete do double dynamic_cast else enum explicit export extern false final float for
    friend goto if import inline int long module mutable namespace new noexcept not not_eq nullptr operator
    or or_eq override private protected public register reinterpret_cast requires return short signed sizeof
    static static_assert static_cast struct switch template this thread_local throw true try typedef typeid
    typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t half bfloat16_t
    std main AscendC TPipe GM_ADDR OpTiling tiling workspace pipe op
"""
"""Words that C++ keeps, and names that every kernel's file has."""

_OUTSIDE_WORDS = """
    AscendCTimeStamp DumpAccChkPoint DumpTensor GetPhyAddr GetProgramCounter GetSystemCycle PRINTF Trap
    _Exit _exit abort accept alloca async atexit bind calloc cerr chrono clang clock clock_gettime clone
    close connect cout creat dlclose dlopen dlsym environ evokernel execl execlp execv execve execvp exit
    fclose fdopen fopen fork fprintf fread free freopen fstream future fwrite getenv gettimeofday gnu
    ifstream ioctl iostream kill listen longjmp malloc memcpy memmove memset mmap mprotect munmap mutex
    nanosleep ofstream open openat popen posix_spawn prctl pread printf pthread_create ptrace putchar puts
    pwrite quick_exit raise rand random read realloc recv remove rename scanf send setenv setjmp setrlimit
    sigaction signal sleep snprintf socket sprintf srand stderr stdout syscall system thread time unlink
    usleep vfork write
"""
"""What reaches outside of a kernel, which the verifier refuses by name."""
_TAKEN = frozenset(f"{_CPP_WORDS} {_OUTSIDE_WORDS}".split())


def refs_in(data: Any) -> Iterator[str]:
    """The names of inputs and nodes in an argument, however deep in lists, in their order."""
    if isinstance(data, (list, tuple)):
        for element in data:
            yield from refs_in(element)
    elif isinstance(data, dict) and "ref" in data:
        yield data["ref"]


def without_view(expression: str) -> str:
    """The text of the complex tensor that an expression is the real view of; itself for others."""
    return re.sub(r"^torch\.view_as_real\((.*?)(?:\.resolve_conj\(\))?\)$", r"\1", expression)


def input_name(expression: str, taken: set[str]) -> str:
    """A short identifier for an expression: ``self.ln.weight`` gives ``ln_weight``, and so does
    the real view of it. It becomes a name in C++ too."""
    text = re.sub(r"^self\.", "", without_view(expression))
    words = re.findall(r"[A-Za-z_][A-Za-z0-9_]*|\d+", text)
    name = "_".join(words) if len(words) <= 3 and "(" not in text else "operand"
    in_cpp = name[:1].lower() + name[1:]
    is_free = name.isidentifier() and _TAKEN.isdisjoint((name, in_cpp)) and not re.fullmatch(r"s\d+", name)
    name = name if is_free else f"input_{name}"
    unique, number = name, 1
    while unique in taken:
        number += 1
        unique = f"{name}_{number}"
    return unique
