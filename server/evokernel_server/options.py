"""What a client configures: the product's settings and the server's own, from camelCase JSON."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import Any, cast, get_origin, get_type_hints

import cattrs
from attrs import evolve, field, fields, frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.serial import from_data
from evokernel_core.domain.settings import ModelEndpoint, Settings
from evokernel_core.targets import AUTO, KERNEL_FILES, TARGETS, target_for, with_device
from evokernel_server.texts.translations import _
from evokernel_server.trust import OPTION, Trust, read_trust


class Confirm(StrEnum):
    """``AUTO``: where the client has no review of its own."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@frozen
class ServerOptions:
    """The server's own options. Times are seconds.

    ``ready_lens``: a lens above code whose kernel waits for review, also where ``code_lens`` is off.
    ``edit_at_once``: a generated kernel is put in place without review.
    ``confirm_edits``: whether the editor is to ask before it makes the edit of an acceptance.
    ``pause_s``: how long typing must rest before a capture and a refresh of hints.
    ``least_gain``: how much faster a refined kernel must be to be offered, as a fraction.
    ``toast_interval_s``, ``toasts_per_session``: limits on offers shown as a message; others are a badge.
    ``survival_s``: the horizons ``30s``, ``5m`` and ``15m`` after which an accepted kernel has survived.
    ``revert_grace_s``: how long a call must be gone before that counts as the person's own revert.
    """

    edit_at_once: bool = False
    confirm_edits: Confirm = Confirm.AUTO
    inlay_hints: bool = True
    diagnostics: bool = True
    code_lens: bool = False
    ready_lens: bool = True
    pause_s: float = 0.6
    least_gain: float = 0.10
    toast_interval_s: float = 1800.0
    toasts_per_session: int = 3
    snooze_s: float = 1800.0
    survival_s: tuple[float, float, float] = (30.0, 300.0, 900.0)
    revert_grace_s: float = 2.0
    retry_s: tuple[float, float] = field(default=(2.0, 120.0))
    """First and greatest pause between two tries to reach a verifier that is away."""


_FLAT = {"base_url": "model_url", "protocol": "model_protocol"}
_LIMITS = {
    "budget": (1, 1000),
    "candidates_at_once": (0, 64),
    "least_gain": (0, 1),
    "samples": (1, 16),
    "temperature": (0, 2),
}
"""The least and the greatest value of settings, as the extension's package.json has them."""
_CHOICES = {"target": (AUTO, *TARGETS)}
"""What settings may be that are texts."""
_ENDPOINT = frozenset(attribute.name for attribute in fields(ModelEndpoint)) - {"api_key"}
"""Fields of the endpoint, and how settings that are not nested call those that need another name."""


@frozen
class Options:
    """Everything configured. ``asked`` are the settings as they were given, whose chip may be empty;
    ``settings`` have the target's own in its place. What ``trust`` does not cover is parsed, and nothing of
    it is run."""

    asked: Settings = field(factory=lambda: Settings(chip=""))
    settings: Settings = field()
    server: ServerOptions = field(factory=ServerOptions)
    trust: Trust = field(factory=Trust)

    @settings.default
    def _with_device(self) -> Settings:
        return with_device(self.asked)

    @property
    def target(self) -> str:
        """The target that kernels are written in, by its name."""
        return target_for(self.settings.chip, self.settings.target)

    @property
    def kind(self) -> str:
        """What its kernels are called: NPU, Triton."""
        return KERNEL_FILES[self.target].kind


def read_options(initialization: object, environment: Mapping[str, str] = os.environ) -> Options:
    """Options of ``initializationOptions``: ``{"settings": {...}, "trusted": bool or folders}``.

    Without ``trusted`` nothing is. Raises UsageError that names the setting with a value of the wrong kind.
    """
    data = initialization if isinstance(initialization, Mapping) else {}
    options = Options(_with_secrets(Settings(chip=""), environment))
    options = update_options(options, data.get("settings"))
    return evolve(options, trust=read_trust(data.get(OPTION)))


def update_options(options: Options, section: object) -> Options:
    """Options with a configuration section laid over them; unknown keys are left alone.

    Null values and empty strings leave a setting as it was.
    """
    if not isinstance(section, Mapping):
        return options
    given = {_snake(str(key)): value for key, value in section.items() if value not in (None, "")}
    endpoint = _endpoint(options.asked.endpoint, given)
    asked = evolve(_overlay(options.asked, given, skip="endpoint"), endpoint=endpoint)
    server = _overlay(options.server, given)
    return evolve(options, asked=asked, settings=with_device(asked), server=server)


def _endpoint(endpoint: ModelEndpoint, given: Mapping[str, Any]) -> ModelEndpoint:
    """The endpoint from a nested ``endpoint`` object or from flat ``modelUrl``, ``model``, ..."""
    nested = given.get("endpoint")
    inner = {_snake(str(key)): value for key, value in nested.items()} if isinstance(nested, Mapping) else {}
    flat = {key: given.get(_FLAT.get(key, key)) for key in _ENDPOINT}
    flat = {key: value for key, value in flat.items() if value is not None}
    return cast(ModelEndpoint, _overlay(endpoint, {**flat, **inner}, skip="api_key"))


def _overlay(base: Any, given: Mapping[str, Any], skip: str = "") -> Any:
    changes, hints = {}, get_type_hints(type(base))
    for attribute in fields(type(base)):
        if attribute.name in given and attribute.name != skip:
            kind = hints[attribute.name]
            changes[attribute.name] = _structure(attribute.name, given[attribute.name], kind, base)
    return evolve(base, **changes)


def _structure(name: str, value: Any, kind: Any, base: Any) -> Any:
    is_list = get_origin(kind) is tuple
    annotation: Any = tuple[float, ...] if is_list else kind
    try:
        if kind is bool and not isinstance(value, bool):
            raise ValueError("true or false is expected")
        made: Any = from_data(value, annotation)
        if made not in _CHOICES.get(name, (made,)):
            raise ValueError("another value is expected")
    except (ValueError, TypeError, cattrs.BaseValidationError) as error:
        raise UsageError(
            _(
                "The setting evokernel.{name} cannot be {value}; it stays {kept}.",
                name=camel(name),
                value=repr(value),
                kept=_shown(getattr(base, name)),
            )
        ) from error
    _check_limits(name, made, base)
    if is_list and len(made) != len(getattr(base, name)):
        wanted = len(getattr(base, name))
        raise UsageError(
            _("The setting evokernel.{name} takes {count} numbers.", name=camel(name), count=wanted)
        )
    return made


def _check_limits(name: str, value: Any, base: Any) -> None:
    if name not in _LIMITS or value is None:
        return
    least, most = _LIMITS[name]
    if not least <= value <= most:  # nor is it between them where it is no number
        raise UsageError(
            _(
                "The setting evokernel.{name} takes {least} to {most}, not {value}; it stays {kept}.",
                name=camel(name),
                least=least,
                most=most,
                value=value,
                kept=_shown(getattr(base, name)),
            )
        )


def _shown(value: object) -> str:
    """A value as a person writes it in the settings."""
    return repr(value.value if isinstance(value, Enum) else value)


def _with_secrets(settings: Settings, environment: Mapping[str, str]) -> Settings:
    """Secrets reach the server by environment only, never by a settings file."""
    key = environment.get("EVOKERNEL_API_KEY", "")
    token = environment.get("EVOKERNEL_VERIFIER_TOKEN", "")
    return evolve(settings, verifier_token=token, endpoint=evolve(settings.endpoint, api_key=key))


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def camel(name: str) -> str:
    """A name as clients write it: ``source_id`` is ``sourceId``."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
