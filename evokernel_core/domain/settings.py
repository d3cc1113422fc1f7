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


class RetrievalName(StrEnum):
    Q = "q"
    SIMILARITY = "similarity"
    RANDOM = "random"
    NONE = "none"


@frozen
class ModelEndpoint:
    """An OpenAI-compatible endpoint. ``api_key`` never comes from a settings file."""

    base_url: str = ""
    model: str = ""
    api_key: str = ""
    token_budget: int = 200_000
    timeout_s: float = 120.0
    ca_bundle: str = ""


@frozen
class Settings:
    """``interpreter`` is the user's Python with torch; empty means: look for one.
    ``verifier_url`` empty means: verify in process with the twin. ``patience``: attempts in a row that
    do not improve the best kernel after which a run ends before its budget does; 0: never.
    ``programs``: offer several kernels in a row too, up to whole forwards. ``evaluation``: modules are called
    in that mode to see what kernels would gain, else in the one that they are built in.
    ``candidates_at_once``: kernels of one task that are verified at a time; 0: as many as the verifier says.
    """

    interpreter: str = ""
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
    seed: int = 0
