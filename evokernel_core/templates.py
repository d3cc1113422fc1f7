"""Templates of code and of prompts."""

from __future__ import annotations

from jinja2 import BaseLoader, Environment, StrictUndefined


def text_environment(loader: BaseLoader) -> Environment:
    """Renders text that is no HTML: nothing is escaped, and a value that nobody gave is an error."""
    return Environment(
        loader=loader,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
