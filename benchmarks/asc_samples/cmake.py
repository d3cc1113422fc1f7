"""The little of CMake that the samples' build files use, evaluated without CMake.

What a file builds: for each executable its sources, include folders, macros and libraries. A command
that is not known here is recorded in ``Build.unknown`` and never guessed at.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from attrs import Factory, define, frozen


class CMakeError(Exception):
    """A build file that stops with ``message(FATAL_ERROR ...)`` or cannot be read."""


@define
class Target:
    """One executable or library; paths are absolute, ``libraries`` are names as written."""

    name: str
    kind: str
    sources: list[Path] = Factory(list)
    includes: list[Path] = Factory(list)
    defines: list[str] = Factory(list)
    libraries: list[str] = Factory(list)


@define
class Build:
    """Everything that a build file says, in order."""

    targets: dict[str, Target] = Factory(dict)
    packages: list[str] = Factory(list)
    unknown: list[str] = Factory(list)
    defines: list[str] = Factory(list)
    includes: list[Path] = Factory(list)

    def executables(self) -> list[Target]:
        """The executables with the sources and macros of the libraries of the same build they link."""
        return [self._linked(target) for target in self.targets.values() if target.kind == "EXECUTABLE"]

    def _linked(self, target: Target) -> Target:
        whole = Target(target.name, target.kind, [], list(self.includes), list(self.defines), [])
        pending, seen = [target.name], set()
        while pending:
            name = pending.pop(0)
            if name in seen:
                continue
            seen.add(name)
            part = self.targets[name]
            whole.sources += part.sources
            whole.includes += part.includes
            whole.defines += part.defines
            whole.libraries += part.libraries
            pending += [library for library in part.libraries if library in self.targets]
        return whole


@frozen
class _Command:
    name: str
    arguments: tuple[tuple[str, bool], ...]
    """Each argument as written and whether it was quoted."""


_COMMAND = re.compile(r"\s*([A-Za-z_]\w*)\s*\(")
_ARGUMENT = re.compile(
    r"""\s+|\#\[\[.*?\]\]|\#[^\n]*|\[(=*)\[(?P<raw>.*?)\]\1\]|"(?P<quoted>(?:\\.|[^"\\])*)"|(?P<open>\()|(?P<close>\))
      |(?P<plain>(?:\\.|\$<(?:[^<>]|<[^<>]*>)*>|[^\s()"\#\\])+)""",
    re.VERBOSE | re.DOTALL,
)
_VARIABLE = re.compile(r"\$(ENV)?\{([^${}]*)\}")


def _commands(text: str) -> Iterator[_Command]:
    position = 0
    while True:
        position = _skip_comments(text, position)
        match = _COMMAND.match(text, position)
        if match is None:
            if position < len(text):
                raise CMakeError(f"cannot read {text[position : position + 40]!r}")
            return
        arguments, position = _arguments(text, match.end())
        yield _Command(match[1].lower(), arguments)


def _skip_comments(text: str, position: int) -> int:
    skipped = re.compile(r"(?:\s+|#\[\[.*?\]\]|#[^\n]*)*", re.DOTALL).match(text, position)
    return skipped.end() if skipped else position


def _arguments(text: str, position: int) -> tuple[tuple[tuple[str, bool], ...], int]:
    found: list[tuple[str, bool]] = []
    depth = 1
    while depth:
        match = _ARGUMENT.match(text, position)
        if match is None:
            raise CMakeError(f"cannot read {text[position : position + 40]!r}")
        position = match.end()
        if match["close"]:
            depth -= 1
        depth += bool(match["open"])
        if depth and (match["open"] or match["close"]):
            found.append((match[0], False))
        kinds = [kind for kind in ("raw", "quoted", "plain") if match[kind] is not None]
        found += [(match[kind], kind != "plain") for kind in kinds]
    return tuple(found), position


class Evaluator:
    """Walks a build file; ``options`` are the ``-D`` of the command line."""

    def __init__(self, source: Path, binary: Path, options: Mapping[str, str]) -> None:
        self.build = Build()
        self.variables: dict[str, str] = {
            "CMAKE_SOURCE_DIR": str(source),
            "CMAKE_CURRENT_SOURCE_DIR": str(source),
            "PROJECT_SOURCE_DIR": str(source),
            "CMAKE_CURRENT_LIST_DIR": str(source),
            "CMAKE_BINARY_DIR": str(binary),
            "CMAKE_CURRENT_BINARY_DIR": str(binary),
            "CMAKE_SYSTEM_PROCESSOR": "x86_64",
            "UNIX": "1",
            **options,
        }
        self.cached = set(options)

    def folder(self, path: Path) -> Build:
        """Evaluates ``path/CMakeLists.txt``. Raises CMakeError."""
        file = path / "CMakeLists.txt"
        try:
            text = file.read_text("utf-8-sig", errors="replace")
        except OSError as error:
            raise CMakeError(f"{file} cannot be read ({error.strerror})") from error
        outer = self.variables["CMAKE_CURRENT_SOURCE_DIR"]
        self.variables["CMAKE_CURRENT_SOURCE_DIR"] = str(path)
        self._block(list(_commands(text)))
        self.variables["CMAKE_CURRENT_SOURCE_DIR"] = outer
        return self.build

    def _block(self, commands: Sequence[_Command]) -> None:
        index = 0
        while index < len(commands):
            command = commands[index]
            if command.name in _BLOCKS:
                end = _block_end(commands, index)
                self._nested(command, commands[index:end])
                index = end + 1
                continue
            self._run(command)
            index += 1

    def _nested(self, opening: _Command, body: Sequence[_Command]) -> None:
        match opening.name:
            case "if":
                self._if(body)
            case "foreach":
                self._foreach(opening, body[1:])
            case _:  # a function or macro: nothing in the samples depends on what it does
                self.build.unknown.append(opening.name)

    def _if(self, body: Sequence[_Command]) -> None:
        branches: list[tuple[_Command, list[_Command]]] = []
        depth = 0
        for command in body:
            depth += (command.name in _BLOCKS) - (command.name in _BLOCKS.values())
            if depth == 1 and command.name in ("if", "elseif", "else"):
                branches.append((command, []))
            else:
                branches[-1][1].append(command)
        for condition, commands in branches:
            if condition.name == "else" or self._true(condition.arguments):
                self._block(commands)
                return

    def _foreach(self, opening: _Command, body: Sequence[_Command]) -> None:
        name, *values = self._expanded(opening)
        if values[:2] == ["IN", "LISTS"]:
            values = [item for lists in values[2:] for item in self._list(lists)]
        elif values[:2] == ["IN", "ITEMS"]:
            values = values[2:]
        for value in values:
            self.variables[name] = value
            self._block(body)

    def _run(self, command: _Command) -> None:
        handler: Callable[[list[str]], None] | None = getattr(self, f"_do_{command.name}", None)
        if handler is not None:
            handler(self._expanded(command))
        elif command.name not in _WITHOUT_EFFECT:
            self.build.unknown.append(command.name)

    # Commands

    def _do_set(self, arguments: list[str]) -> None:
        name, *rest = arguments
        cached = "CACHE" in rest
        values = rest[: rest.index("CACHE")] if cached else [item for item in rest if item != "PARENT_SCOPE"]
        if cached and name in self.variables and "FORCE" not in rest:
            return
        self.variables[name] = ";".join(values)

    def _do_option(self, arguments: list[str]) -> None:
        self.variables.setdefault(arguments[0], arguments[2] if len(arguments) > 2 else "OFF")

    def _do_unset(self, arguments: list[str]) -> None:
        self.variables.pop(arguments[0], None)

    def _do_list(self, arguments: list[str]) -> None:
        if arguments[0] == "APPEND":
            values = [*self._list(arguments[1]), *arguments[2:]]
            self.variables[arguments[1]] = ";".join(values)

    def _do_string(self, arguments: list[str]) -> None:
        match arguments:
            case ["REGEX", "MATCH", pattern, name, *texts]:
                found = re.search(pattern, "".join(texts))
                self.variables[name] = found[0] if found else ""
            case ["REGEX", "REPLACE", pattern, replacement, name, *texts]:
                self.variables[name] = re.sub(pattern, replacement, "".join(texts))
            case ["REPLACE", old, new, name, *texts]:
                self.variables[name] = "".join(texts).replace(old, new)
            case ["TOUPPER" | "TOLOWER" as how, text, name]:
                self.variables[name] = text.upper() if how == "TOUPPER" else text.lower()
            case _:
                self.build.unknown.append("string")

    def _do_file(self, arguments: list[str]) -> None:
        if arguments[0] in ("GLOB", "GLOB_RECURSE"):
            patterns = [item for item in arguments[2:] if item != "CONFIGURE_DEPENDS"]
            recursive = arguments[0] == "GLOB_RECURSE"
            found = [path for item in patterns for path in sorted(glob.glob(str(self._path(item))))]  # noqa: PTH207
            self.variables[arguments[1]] = ";".join(found)
            if recursive:
                self.build.unknown.append("file")
        elif arguments[0] == "DOWNLOAD":
            self.build.packages.append("a download from the network")

    def _do_get_filename_component(self, arguments: list[str]) -> None:
        name, path, how = arguments[:3]
        full = self._path(path)
        parts = {"DIRECTORY": full.parent, "PATH": full.parent, "NAME": full.name, "NAME_WE": full.stem}
        self.variables[name] = str(parts.get(how, full))

    def _do_message(self, arguments: list[str]) -> None:
        if arguments and arguments[0] == "FATAL_ERROR":
            raise CMakeError("".join(arguments[1:]))

    def _do_find_package(self, arguments: list[str]) -> None:
        self.build.packages.append(arguments[0])

    def _do_add_subdirectory(self, arguments: list[str]) -> None:
        self.folder(self._path(arguments[0]))

    def _do_add_definitions(self, arguments: list[str]) -> None:
        self.build.defines += [item.removeprefix("-D") for item in arguments]

    _do_add_compile_definitions = _do_add_definitions

    def _do_include_directories(self, arguments: list[str]) -> None:
        self.build.includes += [self._path(item) for item in arguments]

    def _do_add_executable(self, arguments: list[str]) -> None:
        self._target(arguments[0], "EXECUTABLE", arguments[1:])

    def _do_add_library(self, arguments: list[str]) -> None:
        name, *rest = arguments
        kind = rest[0] if rest and rest[0] in _LIBRARY_KINDS else "STATIC"
        self._target(name, kind, [item for item in rest if item not in _LIBRARY_KINDS])

    def _target(self, name: str, kind: str, sources: Sequence[str]) -> None:
        self.build.targets[name] = Target(name, kind, [self._path(item) for item in sources])

    def _do_target_sources(self, arguments: list[str]) -> None:
        self._of(arguments).sources += [self._path(item) for item in _values(arguments)]

    def _do_target_include_directories(self, arguments: list[str]) -> None:
        self._of(arguments).includes += [self._path(item) for item in _values(arguments)]

    def _do_target_compile_definitions(self, arguments: list[str]) -> None:
        self._of(arguments).defines += [item.removeprefix("-D") for item in _values(arguments)]

    def _do_target_compile_options(self, arguments: list[str]) -> None:
        target = self._of(arguments)
        for item in _values(arguments):
            for option in _generated(item):
                if option.startswith("-D"):
                    target.defines.append(option[2:])
                elif option.startswith("-I"):
                    target.includes.append(self._path(option[2:]))

    def _do_target_link_libraries(self, arguments: list[str]) -> None:
        self._of(arguments).libraries += _values(arguments)

    def _do_add_dependencies(self, arguments: list[str]) -> None:
        pass

    def _of(self, arguments: list[str]) -> Target:
        return self.build.targets.setdefault(arguments[0], Target(arguments[0], "UNKNOWN"))

    # Values

    def _path(self, text: str) -> Path:
        return Path(self.variables["CMAKE_CURRENT_SOURCE_DIR"]) / text

    def _list(self, name: str) -> list[str]:
        value = self.variables.get(name, "")
        return value.split(";") if value else []

    def _expand(self, text: str) -> str:
        while match := _VARIABLE.search(text):
            value = "" if match[1] else self.variables.get(match[2], "")
            text = text[: match.start()] + value + text[match.end() :]
        return re.sub(r"\\(.)", r"\1", text) if "\\" in text else text

    def _expanded(self, command: _Command) -> list[str]:
        values: list[str] = []
        for text, quoted in command.arguments:
            value = self._expand(text)
            values += [value] if quoted else [item for item in value.split(";") if item]
        return values

    # Conditions

    def _true(self, arguments: Sequence[tuple[str, bool]]) -> bool:
        return _Condition(self, [(self._expand(text), quoted) for text, quoted in arguments]).value()

    def value_of(self, text: str, quoted: bool) -> str:
        """A word of a condition: a variable's value where it names one."""
        return text if quoted else self.variables.get(text, text)


class _Condition:
    """An ``if`` condition: NOT before AND before OR, parentheses, the comparisons that samples use."""

    def __init__(self, evaluator: Evaluator, words: list[tuple[str, bool]]) -> None:
        self.evaluator, self.words, self.index = evaluator, words, 0

    def value(self) -> bool:
        result = self._and()
        while self._take("OR"):
            result = self._and() or result
        return result

    def _and(self) -> bool:
        result = self._not()
        while self._take("AND"):
            result = self._not() and result
        return result

    def _not(self) -> bool:
        if self._take("NOT"):
            return not self._not()
        if self._take("("):
            result = self.value()
            self._take(")")
            return result
        return self._comparison()

    def _take(self, word: str) -> bool:
        if self.index < len(self.words) and self.words[self.index] == (word, False):
            self.index += 1
            return True
        return False

    def _next(self) -> tuple[str, bool]:
        if self.index >= len(self.words):
            return "", True
        self.index += 1
        return self.words[self.index - 1]

    def _comparison(self) -> bool:
        for word in ("DEFINED", "EXISTS", "TARGET", "IS_DIRECTORY"):
            if self._take(word):
                return self._unary(word, self._next()[0])
        left = self._next()
        operator = self.words[self.index][0] if self.index < len(self.words) else ""
        if operator not in _COMPARISONS and operator not in ("MATCHES", "IN_LIST"):
            return _truth(self.evaluator.value_of(*left))
        self.index += 1
        right = self._next()
        value = self.evaluator.value_of(*left)
        if operator == "MATCHES":
            return re.search(right[0], value) is not None
        if operator == "IN_LIST":
            return value in self.evaluator.variables.get(right[0], "").split(";")
        return _COMPARISONS[operator](value, self.evaluator.value_of(*right))

    def _unary(self, word: str, name: str) -> bool:
        match word:
            case "DEFINED":
                return name in self.evaluator.variables
            case "TARGET":
                return name in self.evaluator.build.targets
            case _:
                return bool(name) and Path(name).exists()


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


_COMPARISONS: Mapping[str, Callable[[str, str], bool]] = {
    "STREQUAL": lambda left, right: left == right,
    "EQUAL": lambda left, right: _number(left) == _number(right),
    "LESS": lambda left, right: _number(left) < _number(right),
    "GREATER": lambda left, right: _number(left) > _number(right),
    "LESS_EQUAL": lambda left, right: _number(left) <= _number(right),
    "GREATER_EQUAL": lambda left, right: _number(left) >= _number(right),
    "VERSION_LESS": lambda left, right: left.split(".") < right.split("."),
}
_BLOCKS = {
    "if": "endif",
    "foreach": "endforeach",
    "function": "endfunction",
    "macro": "endmacro",
    "while": "endwhile",
}
_LIBRARY_KINDS = ("SHARED", "STATIC", "MODULE", "OBJECT", "INTERFACE")
_WITHOUT_EFFECT = frozenset(
    (
        "cmake_minimum_required",
        "project",
        "set_target_properties",
        "set_source_files_properties",
        "install",
        "target_link_options",
        "target_link_directories",
        "link_directories",
        "execute_process",
        "separate_arguments",
        "find_program",
        "enable_language",
        "mark_as_advanced",
    )
)


def _truth(text: str) -> bool:
    return text.upper() not in ("", "0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND") and not (
        text.upper().endswith("-NOTFOUND")
    )


def _values(arguments: list[str]) -> list[str]:
    return [item for item in arguments[1:] if item not in ("PRIVATE", "PUBLIC", "INTERFACE", "BEFORE")]


def _generated(option: str) -> list[str]:
    """The options inside ``$<$<COMPILE_LANGUAGE:ASC>:-DA -DB>``, or the option itself."""
    match = re.fullmatch(r"\$<\$<COMPILE_LANGUAGE:[^>]*>:(.*)>", option, re.DOTALL)
    return match[1].split() if match else [option]


def _block_end(commands: Sequence[_Command], start: int) -> int:
    depth = 0
    for index in range(start, len(commands)):
        depth += (commands[index].name in _BLOCKS) - (commands[index].name in _BLOCKS.values())
        if depth == 0:
            return index
    raise CMakeError(f"{commands[start].name}() is never closed")
