"""What the documents say is true: links lead somewhere, commands and make targets exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import click
import pytest

from evokernel_core.cli.main import COMMANDS, cli

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)#:]+)(?:#[^)]*)?\)")
ANCHORED = re.compile(r"\]\(([^)#:]*)#([^)]+)\)")
COMMAND = re.compile(r"^\s*(?:\$ )?evokernel ([a-z]+)([^\n`|#]*)", re.MULTILINE)
INLINE = re.compile(r"`evokernel ([a-z]+)([^`]*)`")
_TEXTS = {".md", ".py", ".ts", ".json"}
MAKE = re.compile(r"`make ([a-z0-9-]+)`")


def commands_in(page: Path) -> list[tuple[str, str]]:
    text = page.read_text()
    return COMMAND.findall(text) + INLINE.findall(text)


def options_of(name: str, rest: str) -> set[str]:
    """The long options that a command (or the subcommands that ``rest`` starts with) takes."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    for word in rest.split():
        if not isinstance(command, click.Group) or word.startswith(("-", "[", "<")):
            break
        choices = [command.get_command(click.Context(command), choice) for choice in word.split("|")]
        assert all(choices), f"evokernel {name} has no subcommand {word}"
        command = choices[-1]
    assert command is not None
    return {option for param in command.params for option in (*param.opts, *param.secondary_opts)} | {
        "--help"
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def anchors(page: Path) -> set[str]:
    """The names by which links reach the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_headings(page: Path) -> None:
    for target, anchor in ANCHORED.findall(page.read_text()):
        assert anchor in anchors(page.parent / target if target else page), f"{page.name}: {target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    for name, rest in commands_in(page):
        assert name in COMMANDS, f"{page.name} names the command {name}"
        own = rest.split(" -- ")[0]  # behind it are the options of another program
        for option in re.findall(r"--[a-z][a-z-]*", own):
            assert option in options_of(name, rest), f"{page.name}: evokernel {name} takes no {option}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_make_targets_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in MAKE.findall(page.read_text()):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page.name} names make {target}"


READ = [page for page in PAGES if page.name != "CHANGELOG.md"] + sorted((ROOT / "docs/results").glob("*.md"))
LONGEST_LINE, LONGEST_PARAGRAPH = 400, 90
"""Characters; words."""
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) |^[|#]", re.MULTILINE)
"""What begins a paragraph without an empty line: an item of a list, a row of a table, a heading."""


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a page, without its code."""
    blocks = FENCED.sub("\n\n", text).split("\n\n")
    return [part for block in blocks for part in ITEM.split(block) if part.strip()]


@pytest.mark.parametrize("page", READ, ids=lambda page: page.name)
def test_a_page_can_be_read(page: Path) -> None:
    text = page.read_text()
    assert [line[:80] for line in text.splitlines() if len(line) > LONGEST_LINE] == []
    assert [part[:80] for part in paragraphs(text) if len(part.split()) > LONGEST_PARAGRAPH] == []


def test_each_page_is_linked() -> None:
    """But for the one that an index of packages shows."""
    linked = {(page.parent / target).resolve() for page in READ for target in LINK.findall(page.read_text())}
    assert {*READ} - linked == {ROOT / "docs" / "package.md"}


def test_paragraphs_are_counted_apart() -> None:
    page = "One two.\nThree.\n\n- Four\n  five.\n- Six.\n\n```\nseven\n```\n| eight | nine |\n"
    assert [len(part.split()) for part in paragraphs(page)] == [3, 2, 1, 4]


def test_the_two_commands_of_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text


def test_torch_is_pinned_to_the_cpu_build_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = [
        line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch==")
    ]
    assert project["optional-dependencies"]["torch"] == pins
    assert not any(item.startswith("torch") for item in project["dependencies"])


OURS = re.compile(
    r"(?:pip3? install|uv add|uv tool install|pipx install|uvx|npx|npm install|code --install-extension)"
    r"(?: +-[^\s]+)* +['\"]?(?:evokernel(?:[-_]lsp)?(?:\[[a-z,]*\])?)(?=['\"`\s;,.)]|$)(?!\.vsix)"
)
"""Our own names as if an index had them; a path or a file before or behind the name is none."""


def test_nothing_sends_a_person_to_an_index_without_our_package() -> None:
    folders = ("docs", "evokernel_core", "server", "vscode-extension", "release", "examples")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.*") if path.suffix in _TEXTS]
    files = [path for path in files if not {"node_modules", "out"}.intersection(path.parts)]
    files += [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "Makefile"]
    wrong = {path.relative_to(ROOT): OURS.findall(path.read_text("utf-8")) for path in files}
    assert not {path: found for path, found in wrong.items() if found}, (
        "it is installed from a checkout or a wheel"
    )


@pytest.mark.parametrize(
    "words",
    [
        "pip install evokernel",
        "pip install 'evokernel-lsp[model]'",
        "uvx evokernel",
        "pipx install -q evokernel`",
        "code --install-extension evokernel",
    ],
)
def test_our_names_are_found_where_an_index_would_be_asked(words: str) -> None:
    assert OURS.search(words)


@pytest.mark.parametrize(
    "words",
    [
        "pip install /path/to/evokernel",
        "pip install '/path/to/evokernel[all]'",
        "pip install evokernel_lsp-0.1.0-py3.whl",
        "code --install-extension evokernel.vsix",
        "pip install ./evokernel",
    ],
)
def test_checkouts_and_files_are_no_names(words: str) -> None:
    assert not OURS.search(words)
