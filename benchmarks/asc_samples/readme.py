"""What a sample's README says: the products that it is for, and the commands that run it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import frozen

ARCHITECTURE = "dav-2201"
_SHELL = re.compile(r"^[ \t]*```(?:bash|shell|sh)\s*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_PRODUCT_ROW = re.compile(r"^\s*\|.*(?:Atlas|Ascend).*$", re.MULTILINE)
_ARCHITECTURE = re.compile(r"dav-\d+")
_STARTS = re.compile(r"(?:^|[;&])[ \t]*(?!cat )(?:[a-z][^\n;&]* )?\./\w", re.MULTILINE)
_DEFAULT_BUILD = "mkdir -p build && cd build\ncmake ..\nmake -j\n"
_PLAIN = re.compile(r"(?:^|[;&])[ \t]*\./\w", re.MULTILINE)
_SUCCESS = re.compile(r"pass|succe(?:ss|ed)|^OK$", re.IGNORECASE)


@frozen
class Readme:
    """``rows``: the lines of its product tables; ``blocks``: its shell code, in order."""

    rows: tuple[str, ...]
    blocks: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]

    def success_words(self) -> tuple[str, ...]:
        """The single lines that it shows as the output of a run that went well."""
        blocks = [block.strip() for block in self.blocks]
        return tuple({block for block in blocks if "\n" not in block and _SUCCESS.search(block)})

    def names_a2(self) -> bool | None:
        """Whether its table of supported products lists Atlas A2; None where there is no table."""
        return any("Atlas A2" in row for row in self.rows) if self.rows else None


def read_readme(folder: Path) -> Readme:
    """The Chinese README, which every sample has, or the English one."""
    for name in ("README.md", "README_en.md"):
        path = folder / name
        if path.is_file():
            text = path.read_text(errors="replace")
            return Readme(_product_rows(text), tuple(_SHELL.findall(text)), _option_values(text))
    return Readme((), (), {})


def _product_rows(text: str) -> tuple[str, ...]:
    """The rows below the heading about supported products (other tables mention products too)."""
    parts = re.split(r"^#+[ \t]*(.*)$", text, flags=re.MULTILINE)
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if ("支持" in title and "产品" in title) or "supported product" in title.lower():
            return tuple(_PRODUCT_ROW.findall(body))
    return ()


def _option_values(text: str) -> dict[str, tuple[str, ...]]:
    """The values that the table of build options lists for each option."""
    found: dict[str, tuple[str, ...]] = {}
    for name, values in re.findall(r"^\s*\|\s*`?([A-Z][A-Z0-9_]+)`?\s*\|([^|\n]*)\|", text, re.MULTILINE):
        found[name] = tuple(re.findall(r"`([^`]+)`", values)) or tuple(re.findall(r"\d+", values))
    return found


@frozen
class Step:
    """One command of a recipe: its words with variables put in, and the file its output goes to."""

    words: tuple[str, ...]
    output: str = ""


def recipe(readme: Readme) -> tuple[str, ...]:
    """The shell lines that build and run the sample; () where there are none.

    They are those of the first code block that starts a program, preferably one that names this
    architecture and that configures the build too; else the blocks before it that do belong to it.
    Where none does, the sample is built as samples commonly are.
    """
    running = [index for index, block in enumerate(readme.blocks) if _STARTS.search(_bare(block))]
    plain = [index for index in running if _PLAIN.search(_bare(readme.blocks[index]))]
    running = plain or running
    ours = [index for index in running if not _for_another(readme.blocks[index])]
    if not running:
        return ()
    complete = [index for index in ours or running if "cmake" in readme.blocks[index]]
    chosen = (complete or ours or running)[0]
    blocks = [readme.blocks[chosen]]
    if "cmake" not in blocks[0]:
        blocks = [
            block for block in readme.blocks[:chosen] if "cmake" in block or "gen_data" in block
        ] + blocks
    lines = "\n".join(_bare(block) for block in blocks).splitlines()
    return tuple(line.strip() for line in lines if line.strip())


def _bare(block: str) -> str:
    """A block with continued lines joined, without comments."""
    return re.sub(r"(^|\s)#.*$", "", block.replace("\\\n", " "), flags=re.MULTILINE)


def _for_another(block: str) -> bool:
    named = set(_ARCHITECTURE.findall(block))
    return bool(named) and ARCHITECTURE not in named


def steps(lines: tuple[str, ...], overrides: Mapping[str, str]) -> Iterator[Step]:
    """The commands of shell lines, with ``NAME=value`` lines applied and ``overrides`` put before them."""
    variables: dict[str, str] = {}
    for line in lines:
        for command in _commands(line):
            words = [_ARCHITECTURE.sub(ARCHITECTURE, word) for word in command if word != "export"]
            assigned = [re.fullmatch(r"([A-Za-z_]\w*)=(.*)", word) for word in words]
            if all(assigned):
                for match in filter(None, assigned):
                    variables[match[1]] = overrides.get(match[1], match[2])
                continue
            words = [_substituted(word, variables) for word in words]
            output = ""
            if ">" in words:
                output = words[words.index(">") + 1]
                words = words[: words.index(">")]
            yield Step(tuple(word for word in words if word != "2>&1"), output)


def _commands(line: str) -> Iterator[list[str]]:
    """The simple commands of a line; ``| tee FILE`` becomes ``> FILE``."""
    line = re.sub(r"\|\s*tee\s+(\S+)", r" > \1", line).replace("2>&1", " ")
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    for word in lexer:
        if word and set(word) <= set(";&|"):
            if words:
                yield words
            words = []
        else:
            words.append(word)
    if words:
        yield words


def _substituted(word: str, variables: Mapping[str, str]) -> str:
    return re.sub(r"\$\{?([A-Za-z_]\w*)\}?", lambda match: variables.get(match[1], match[0]), word)
