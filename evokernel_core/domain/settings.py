"""Settings: what a person configures, read once at the rim and passed inwards."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen


class ProposerName(StrEnum):
    SCHEDULE = "schedule"
    LLM = "llm"
    HYBRID = "hybrid"


class PolicyName(StrEnum):
    QVALUE = "qvalue"
    TREE = "tree"
    ARCHIVE = "archive"
    ISLANDS = "islands"
    MODEL = "model"


class RetrievalName(StrEnum):
    Q = "q"
    SIMILARITY = "similarity"
    RANDOM = "random"
    NONE = "none"


class ModelProtocol(StrEnum):
    """How an endpoint is asked; ``auto`` begins with chat completions and takes what the endpoint has."""

    AUTO = "auto"
    CHAT = "chat"
    RESPONSES = "responses"


class Effort(StrEnum):
    """How long a reasoning model thinks; ``default`` leaves it to the endpoint."""

    DEFAULT = "default"
    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


@frozen
class ModelEndpoint:
    """An OpenAI-compatible endpoint. ``api_key`` never comes from a settings file.

    ``temperature`` None leaves it to the endpoint. ``samples``: kernels asked for with one question.
    ``answer_tokens`` bounds one answer, thoughts included. Seconds: ``idle_timeout_s`` without a byte,
    ``total_timeout_s`` for one answer, other tries included. ``token_budget`` and ``money_budget`` are for
    one kernel, those with ``day_`` for all of a day; 0: none, but for ``token_budget``. Prices are for a
    million tokens, in the currency of the budgets.
    """

    base_url: str = ""
    model: str = ""
    api_key: str = ""
    ca_bundle: str = ""
    protocol: ModelProtocol = ModelProtocol.AUTO
    effort: Effort = Effort.DEFAULT
    temperature: float | None = None
    samples: int = 1
    answer_tokens: int = 32_768
    idle_timeout_s: float = 300.0
    total_timeout_s: float = 1800.0
    token_budget: int = 200_000
    day_token_budget: int = 2_000_000
    money_budget: float = 0.0
    day_money_budget: float = 0.0
    input_price: float = 0.0
    output_price: float = 0.0


@frozen
class Settings:
    """``interpreter`` is the user's Python with torch; empty means: look for one. ``target``: the language of
    kernels, ``auto`` for the one that has the ``chip``.
    ``verifier_url`` empty means: verify in process with the twin. ``patience``: attempts in a row that
    do not improve the best kernel after which a run ends before its budget does; 0: never.
    ``programs``: offer several kernels in a row too, up to whole forwards. ``evaluation``: modules are called
    in that mode to see what kernels would gain, else in the one that they are built in.
    ``candidates_at_once``: kernels of one task that are verified at a time; 0: as many as the verifier says.
    ``half``: work on halves may be computed in half.
    """

    interpreter: str = ""
    target: str = "auto"
    chip: str = "ascend910b1"
    budget: int = 30
    patience: int = 0
    proposer: ProposerName = ProposerName.SCHEDULE
    policy: PolicyName = PolicyName.QVALUE
    retrieval: RetrievalName = RetrievalName.Q
    verifier_url: str = ""
    verifier_token: str = ""
    verifier_ca_bundle: str = ""
    endpoint: ModelEndpoint = ModelEndpoint()
    refine_in_background: bool = True
    programs: bool = True
    evaluation: bool = True
    candidates_at_once: int = 0
    half: bool = False
    seed: int = 0
