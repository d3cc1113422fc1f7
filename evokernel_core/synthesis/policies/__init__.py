"""Search policies: which kernel the next attempt starts from. All run on the same engine."""

from __future__ import annotations

from evokernel_core.domain.settings import PolicyName
from evokernel_core.synthesis.policies.archive import ArchivePolicy
from evokernel_core.synthesis.policies.base import Policy
from evokernel_core.synthesis.policies.islands import IslandsPolicy
from evokernel_core.synthesis.policies.qvalue import QValuePolicy
from evokernel_core.synthesis.policies.tree import TreePolicy

__all__ = ["open_policy"]


def open_policy(name: PolicyName) -> Policy:
    """The policy of that name with its published constants."""
    match name:
        case PolicyName.QVALUE | PolicyName.MODEL:  # which differ in the order of moves
            return QValuePolicy()
        case PolicyName.TREE:
            return TreePolicy()
        case PolicyName.ARCHIVE:
            return ArchivePolicy()
        case PolicyName.ISLANDS:
            return IslandsPolicy()
