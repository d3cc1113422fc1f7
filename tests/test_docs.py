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


def test_nothing_sends_a_person_to_an_index_without_our_package() -> None:
    folders = ("docs", "evokernel_core", "server", "vscode-extension/src")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.*") if path.suffix in _TEXTS]
    files += [
        ROOT / "README.md",
        ROOT / "vscode-extension" / "README.md",
        ROOT / "vscode-extension/package.json",
    ]
    wrong = [path for path in files if re.search(r"pip install evokernel\b", path.read_text("utf-8"))]
    assert not wrong, "it is installed from a checkout or a wheel"
