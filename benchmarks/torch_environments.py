"""One virtual environment for each version of torch, without the gigabytes of CUDA libraries.

A wheel of torch for Linux is linked with CUDA's libraries, which code that runs on the CPU never calls.
The loader still asks for each by name when torch is imported, so a library of that name whose functions do
nothing is put beside torch's own. Linux on x86-64 or aarch64, with a C compiler and binutils.

Usage: python benchmarks/torch_environments.py VERSION ... [--folder DIR]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VERSIONS = ("2.5.1", "2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.13.0", "2.14.1")
"""The floor, the newest, and what torch_npu is released for between them."""
NEEDS = (
    "filelock",
    "typing-extensions",
    "sympy",
    "networkx",
    "jinja2",
    "fsspec",
    "mpmath",
    "numpy",
    "setuptools",
)
FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evokernel" / "torch-versions"
_READELF = ("readelf", "--wide", "--dynamic", "--dyn-syms", "--version-info")
_NEEDED = re.compile(r"\(NEEDED\).*\[(.+)\]")
_DEFINED = re.compile(r" (?:GLOBAL|WEAK|UNIQUE) +\S+ +\d+ (\w+)(?:@.*)?$", re.MULTILINE)
_UNDEFINED = re.compile(
    r" GLOBAL +\S+ +UND ([A-Za-z]\w*|__\w+(?=@))(?:@([^\s(]+))?(?: \(\d+\))?$", re.MULTILINE
)
"""C symbols with their versions; C++'s and the compiler's own, which begin with an underscore, have none."""
_NO_DEVICE = 100
"""cudaErrorNoDevice and CUDA_ERROR_NO_DEVICE."""


class EnvironmentFailed(Exception):
    """One sentence that says what could not be made."""


def environment(version: str, folder: Path = FOLDER) -> Path:
    """The interpreter of an environment with that version, made unless it is there already."""
    home = folder / version
    python = home / "bin" / "python"
    if _version(python) == version:
        return python
    shutil.rmtree(home, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(home)])
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    _run([*pip, *NEEDS])
    _run([*pip, "--no-deps", f"torch=={version}"])
    for torch in home.glob("lib/python*/site-packages/torch"):
        _add_missing_libraries(torch)
    if (found := _version(python)) != version:
        raise EnvironmentFailed(f"{python} imports torch {found or 'not at all'}, not {version}.")
    return python


def _version(python: Path) -> str:
    """The version of torch that an interpreter imports, empty where it imports none."""
    if not python.is_file():
        return ""
    done = _import(python)
    return done.stdout.strip().partition("+")[0] if done.returncode == 0 else ""


def _import(python: Path) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-c", "import torch; print(torch.__version__)"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def _add_missing_libraries(torch: Path) -> None:
    """Libraries with the names, versions and symbols that nothing else supplies. Their functions do
    nothing: on a CPU only those are called that announce code for a device and that count devices."""
    files = [path for path in (torch / "lib").iterdir() if ".so" in path.name and path.is_file()]
    texts = {path.name: _output([*_READELF, str(path)]) for path in files}
    text = "\n".join(texts.values())
    system = set(_output(["/sbin/ldconfig", "-p"]).split())
    asked = _versions(text)
    undefined = set(_UNDEFINED.findall(text))
    loose = {name for name, version in undefined if not version} - set(_DEFINED.findall(text))
    for library in sorted(set(_NEEDED.findall(text)) - texts.keys() - system):
        versions = asked.get(library) or {""}
        nodes = {
            version: {name for name, of in undefined if of == version} if version else loose
            for version in versions
        }
        _compile(torch / "lib" / library, nodes)


def _versions(text: str) -> dict[str, set[str]]:
    """The versions of its symbols that are asked of each library; those of CUDA name no other library."""
    found: dict[str, set[str]] = {}
    library = ""
    for line in text.splitlines():
        if file := re.search(r"Version: \d+ +File: (\S+)", line):
            library = file[1]
        elif (name := re.search(r"Name: (\S+) +Flags: \S+ +Version: ", line)) and library:
            found.setdefault(library, set()).add(name[1])
    return found


def _compile(path: Path, nodes: dict[str, set[str]]) -> None:
    """A library that defines the symbols of each version; the empty one stands for none."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        raise EnvironmentFailed("There is no C compiler for the empty libraries: install one or set CC.")
    symbols = sorted(name for names in nodes.values() for name in names)
    source = "".join(f"long {name}(void) {{ return {_NO_DEVICE}; }}\n" for name in symbols)
    with tempfile.NamedTemporaryFile("w", suffix=".map") as script:
        for version, names in sorted(nodes.items()):
            script.write(f"{version} {{ global: {'; '.join(sorted(names)) or '*'}; }};\n")
        script.flush()
        link = [f"-Wl,-soname,{path.name}", f"-Wl,--version-script,{script.name}"]
        _run([compiler, "-shared", "-fPIC", "-w", "-fno-builtin", *link, "-xc", "-", "-o", str(path)], source)


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _run(command: list[str], text: str = "") -> None:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise EnvironmentFailed(f"{Path(command[0]).name} failed: {lines[-1] if lines else done.returncode}.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("versions", nargs="*", default=VERSIONS)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    status = 0
    for version in options.versions:
        try:
            print(f"torch {version}: {environment(version, options.folder)}", flush=True)
        except EnvironmentFailed as error:
            print(f"torch {version}: {error}", file=sys.stderr, flush=True)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
