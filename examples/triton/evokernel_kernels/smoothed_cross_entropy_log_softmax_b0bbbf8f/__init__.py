"""The operator torch.ops.evokernel.smoothed_cross_entropy_log_softmax_b0bbbf8f: a Triton kernel for GPUs.

``holds`` says whether the kernel may stand for the original code in a call, and ``run`` calls it. Where no
GPU or no triton is present ``holds`` is False, and the original code runs.
"""

from .. import guards

if guards.intact(__file__):
    from .reference import reference

    guards.register(
        __file__,
        "smoothed_cross_entropy_log_softmax_b0bbbf8f",
        "(Tensor targets, Tensor logits, float operand, float operand_2) -> Tensor",
        reference,
        f"{__name__}.host",
    )

    from .call import holds, run  # the operator must be known first
else:
    from ..guards import refused as holds, refused as run

__all__ = ["holds", "run"]
