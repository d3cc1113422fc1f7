"""Links in hovers: to the files of a kernel everywhere, to commands where the client runs those."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from evokernel_server.documents.workspace import uri_of


def file_link(words: str, path: Path) -> str:
    """A Markdown link that opens a file."""
    return f"[{words}]({uri_of(path).replace('(', '%28').replace(')', '%29')})"


def command_link(words: str, command: str, argument: Mapping[str, object]) -> str:
    """A Markdown link that runs a command of ours with one object."""
    return f"[{words}](command:{command}?{quote(json.dumps([argument]), safe='')})"
