"""A checkout's headers made ready for a host compiler in CUDA mode, one pass for each kind of core.

What stands in the headers is never looked at: include folders, stubs and patches all follow from the
compiler's messages, and source lines are switched off in these.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path

from attrs import define, field, frozen

from vendor_headers.messages import Message, parse
from vendor_headers.patches import Patches
from vendor_headers.rewriting import in_device_function
from vendor_headers.stubs import Stubs

HERE = Path(__file__).parent
_RUNTIME = HERE.parents[1] / "evokernel_core" / "twin" / "include"
"""Our own acl, for the host code around samples."""
_ENTRY = "kernel_operator.h"
_MOST_ROUNDS = 60
_LIMIT_S = 300.0
_ARCHITECTURE = 2201
"""__NPU_ARCH__ of Atlas A2, as the documentation of the predefined macros says."""


class Core(StrEnum):
    """The kind of core, named by the macro that selects its branches."""

    VECTOR = "__DAV_VEC__"
    CUBE = "__DAV_CUBE__"


class Unusable(Exception):
    """The compiler or the checkout cannot be used; the text says why."""


@frozen
class Unit:
    """A file to judge: ``folder`` is where it and what it includes lie; ``kernel_only`` says that it holds
    no host code but a launch, so that the documented language limits hold for all of it."""

    name: str
    file: Path
    folder: Path
    kernel_only: bool = True
    macros: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()
    cores: tuple[Core, ...] = tuple(Core)


@define
class Toolchain:
    """``work`` is a folder of its own for stubs, patched copies and precompiled headers. ``absent`` names
    the headers that the checkout lacks, which are taken for empty."""

    clang: str
    checkout: Path
    work: Path
    stubs: Stubs = field(factory=Stubs)
    patches: Patches = field(factory=Patches)
    folders: list[Path] = field(factory=list)
    absent: set[str] = field(factory=set)
    left: dict[Core, list[Message]] = field(factory=dict)
    _headers: dict[str, list[Path]] = field(factory=dict)
    _entry_lacks: frozenset[str] = frozenset()

    @property
    def copies(self) -> Path:
        """Where the files to judge are copied to, a folder for each."""
        return self.work / "units"

    def prepare(self) -> None:
        """Makes stubs, patches and a precompiled header for each core. Raises Unusable where the checkout
        has no headers or the compiler cannot do it."""
        (self.work / "absent").mkdir(parents=True, exist_ok=True)
        self._index()
        for part in ("acl", "evokernel"):
            link = self.work / "runtime" / part
            link.parent.mkdir(exist_ok=True)
            if not link.exists():
                link.symlink_to(_RUNTIME / part)
        for core in (*Core, Core.VECTOR):  # what the cube pass taught holds for the vector pass too
            self._settle(core)
        for core in Core:
            self._precompile(core)
        self._entry_lacks = self._entry_lacks or frozenset(self.absent)

    def teach(self, messages: Iterable[Message]) -> bool:
        """Takes up what headers that kernels instantiate or include lack. Whether to prepare and judge
        again."""
        messages = list(messages)
        grown = self.stubs.learn(messages, self.checkout)
        grown |= self.patches.learn(messages, self.checkout, self.copies)
        found = [self._find(item.missing_file) for item in messages if item.missing_file]
        return any(found) or grown

    def judge(self, unit: Unit, core: Core) -> list[Message]:
        """The errors of one file for one core."""
        given = [
            *self._flags(core),
            *(self._kernel_flags(core) if unit.kernel_only else ["-include", str(self.work / "prelude.h")]),
            f"-I{unit.folder}",
            *("-idirafter", str(self.work / "runtime")),
            *(f"-I{folder}" for folder in unit.includes),
            *(f"-D{macro}" for macro in unit.macros),
            *("-fsyntax-only", "-MD", "-MF", str(unit.folder / f"{unit.file.name}.{core.name.lower()}.d")),
            str(unit.file),
        ]
        own = {message.place for message in self.left.get(core, ())}
        found = [message for message in parse(self._run(given)) if message.place not in own]
        return [message for message in found if message.is_error or _on_device(message)]

    def _kernel_flags(self, core: Core) -> list[str]:
        """A kernel of ours begins with the headers, so that these are compiled once; a sample may have others
        before them."""
        return [
            *("-Xclang", "-include-pch", "-Xclang", str(self._pch(core))),
            *("-Xclang", "-fallow-pch-with-compiler-errors"),
            *("-include", str(HERE / "language.h"), "-Wc++98-compat"),
        ]

    def lacking(self, unit: Unit) -> list[str]:
        """The headers that a judged file took for empty because the checkout lacks them, but for those that
        kernel_operator.h includes itself: what it takes from them is among the stubs."""
        folder = str(self.work / "absent") + "/"
        words = {
            word for path in unit.folder.glob(f"{unit.file.name}.*.d") for word in path.read_text().split()
        }
        names = {word.removeprefix(folder) for word in words if word.startswith(folder)}
        return sorted(names & self.absent - self._entry_lacks)

    def _index(self) -> None:
        files = [path for part in ("include", "impl") for path in sorted((self.checkout / part).rglob("*.h"))]
        for path in files:
            self._headers.setdefault(path.name, []).append(path)
        if _ENTRY not in self._headers:
            raise Unusable(f"{self.checkout} holds no {_ENTRY}; give a checkout of asc-devkit.")

    def _settle(self, core: Core) -> None:
        for _ in range(_MOST_ROUNDS):
            self._write()
            messages = self._entry_messages(core)
            if not self.teach(messages):
                self.left[core] = messages
                return
        raise Unusable(f"the headers ask for something new in each of {_MOST_ROUNDS} rounds")

    def _entry_messages(self, core: Core) -> list[Message]:
        entry = self.work / "entry.h"
        given = [*self._flags(core), "-include", str(self.work / "prelude.h"), "-fsyntax-only", str(entry)]
        return parse(self._run(given))

    def _write(self) -> None:
        prelude = (HERE / "prelude.h").read_text()
        (self.work / "prelude.h").write_text(f'{prelude}#include "stubs.h"\n')
        (self.work / "stubs.h").write_text(self.stubs.text())
        (self.work / "entry.h").write_text(f'#include "{_ENTRY}"\n')
        patched = self.work / "patched"
        shutil.rmtree(patched, ignore_errors=True)
        patched.mkdir()
        self.patches.overlay(patched)

    def _precompile(self, core: Core) -> None:
        given = [
            *self._flags(core),
            *("-include", str(self.work / "prelude.h")),
            *("-Xclang", "-fallow-pch-with-compiler-errors", "-Xclang", "-emit-pch"),
            *("-fsyntax-only", "-Xclang", "-o", "-Xclang", str(self._pch(core))),
            str(self.work / "entry.h"),
        ]
        output = self._run(given)
        if not self._pch(core).is_file():
            raise Unusable(f"{self.clang} makes no precompiled header: {output[-400:]}")

    def _pch(self, core: Core) -> Path:
        return self.work / f"{core.name.lower()}.pch"

    def _flags(self, core: Core) -> list[str]:
        return [
            *("-x", "cuda", "--cuda-host-only", "-nocudainc", "-nocudalib"),
            *(
                "-std=c++17",
                "-Xclang",
                "-fno-cuda-host-device-constexpr",
                "-Wno-unknown-cuda-version",
                "-fno-caret-diagnostics",
                "-ferror-limit=0",
            ),
            *(
                "-fdiagnostics-print-source-range-info",
                "-fno-color-diagnostics",
                "-ftemplate-backtrace-limit=0",
            ),
            *("-ivfsoverlay", str(self.work / "patched" / "overlay.json")),
            *(f"-D__NPU_ARCH__={_ARCHITECTURE}", f"-D{core}"),
            *(f"-I{folder}" for folder in (*self.folders, self.work / "absent")),
        ]

    def _run(self, given: Sequence[str]) -> str:
        done = subprocess.run(
            [self.clang, *given], capture_output=True, check=False, timeout=_LIMIT_S, cwd=self.work
        )
        return done.stderr.decode(errors="replace")

    def _find(self, name: str) -> bool:
        """Makes an #include of a header work: the checkout's of that name, else an empty one."""
        parts = Path(name).parts
        for path in self._headers.get(parts[-1], ()):
            folder = path.parents[len(parts) - 1]
            if path.parts[-len(parts) :] == parts and folder not in self.folders:
                self.folders.append(folder)
                return True
        stand_in = self.work / "absent" / name
        if stand_in.exists() or stand_in.is_relative_to(self.checkout):
            return False
        stand_in.parent.mkdir(parents=True, exist_ok=True)
        public = [path for path in self._headers.get(parts[-1], ()) if path.is_relative_to(self._public)]
        if len(public) == 1:  # an installed toolkit has other folders than a checkout
            stand_in.write_text(f'#include "{public[0]}"\n')
        else:
            self.absent.add(name)
            stand_in.write_text("")
        return True

    @property
    def _public(self) -> Path:
        return self.checkout / "include"


def _on_device(message: Message) -> bool:
    place = message.place
    return in_device_function(place.file.read_text(errors="replace"), place.line, place.column)


def find_clang(asked: str) -> str:
    """The compiler to use. Raises Unusable where there is none."""
    names = [asked] if asked else [*(f"clang++-{version}" for version in range(16, 22)), "clang++"]
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        raise Unusable(f"no {' or '.join(names[:1])} here; install clang 16 or newer, or give --clang.")
    return found


def cores_of(text: str) -> tuple[Core, ...]:
    """The passes that a file takes by its kernels' qualifiers; both where it does not say."""
    vector = bool(re.search(r"\b__vector__\b|AIV_ONLY", text))
    cube = bool(re.search(r"\b__cube__\b|AIC_ONLY", text))
    mixed = bool(re.search(r"\b__mix__\b|KERNEL_TYPE_MIX", text))
    if mixed or vector == cube:
        return tuple(Core)
    return (Core.VECTOR,) if vector else (Core.CUBE,)
