"""When smoothed_cross_entropy_log_softmax_b0bbbf8f may stand for the code of smoothed_cross_entropy, and how it is called."""

import torch

from .. import guards

NAME = "smoothed_cross_entropy_log_softmax_b0bbbf8f"
FILE = "losses.py"
SYMBOL = "smoothed_cross_entropy"
ORIGINAL = "log_probs = F.log_softmax(logits, dim=-1)\n    soft = targets * (1.0 - smoothing) + smoothing / logits.shape[-1]\n    return -(soft * log_probs).sum(dim=-1)"
"""The code that runs where a guard fails; it stands in FILE too."""
CODE = {}
"""Digests of the functions below SYMBOL that the kernel stands for."""
HOME = guards.home(__file__, FILE)
"""The module whose globals the code reads."""
DEVICE = guards.device(NAME)
"""The type of the device that the kernel runs on here."""
READY = HOME is not None and guards.ready(__file__, NAME, FILE, SYMBOL, ORIGINAL, CODE)


def holds(logits, targets):
    """Whether the kernel may compute in this call what the original code would. Nothing is known of
    operand, operand_2 yet, which is computed for ``run`` alone."""
    if not READY or guards.noted() or not guards.is_from(HOME):
        return False
    try:
        return _same(logits, targets) and _may_fit(targets, logits)
    except guards.CHANGED:  # a part that the kernel was made for is not there any more
        return False


def _same(logits, targets):
    """Everything that the kernel takes for granted of Python values is as it was."""
    F = HOME.F
    if not (
        F is torch.nn.functional
        and guards.originals('torch.Tensor.__add__', 'torch.Tensor.__mul__', 'torch.Tensor.__radd__', 'torch.Tensor.__rmul__', 'torch.Tensor.dim', 'torch.Tensor.log_softmax', 'torch.Tensor.sum', 'torch.nn.functional.log_softmax')
    ):
        return False
    return True


def _may_fit(targets, logits):
    """What most often differs of the tensors that are there before the others are computed."""
    return guards.may_be_ordinary((targets, logits,), DEVICE) and targets.dtype is torch.float32


def _takes(logits, targets, operand, operand_2):
    """Whether the kernel takes the operands as they were computed."""
    try:
        given = _operands(logits, targets, operand, operand_2)
        return given is not None and _fits(*given)
    except guards.CHANGED:
        return False


@guards.in_module(HOME)
def _rest(logits, targets, operand, operand_2):
    """The code of SYMBOL from operand, operand_2 on, each in a list that holds it no longer than it
    is used: what the kernel does not take is not computed again."""
    log_probs = F.log_softmax(logits, dim=-1)
    soft = targets * operand.pop() + operand_2.pop()
    return -(soft * log_probs).sum(dim=-1)


def _operands(logits, targets, operand, operand_2):
    return (targets, logits, operand, operand_2)


def _fits(targets, logits, operand, operand_2):
    """The kernel's contract: dtypes, ranks, sizes, layouts; no gradient and no autocast."""
    if not guards.ordinary((targets, logits), (), device=DEVICE):
        return False
    if not (
        type(operand) is float
        and type(operand_2) is float
        and targets.dtype is torch.float32 and targets.dim() == 2
        and logits.dtype is torch.float32 and logits.dim() == 2
    ):
        return False
    s0 = targets.shape[0]
    s1 = targets.shape[1]
    if not (
        logits.shape == (s0, s1)
        and s0 >= 1
        and s1 >= 1
    ):
        return False
    return guards.fits(NAME, (s0, s1), (operand, operand_2), (512, 32000))


def run(logits, targets, operand, operand_2):
    """Call the kernel; only where ``holds`` said so."""
    if not _takes(logits, targets, operand, operand_2):
        operand = [operand]
        operand_2 = [operand_2]
        return _rest(logits, targets, operand, operand_2)
    result_0 = guards.operator(NAME)(targets, logits, operand, operand_2)
    return result_0
