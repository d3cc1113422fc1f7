"""_log_softmax, mul, add, sum, neg."""

import triton
import triton.language as tl


@triton.jit
def largest(x, axis: tl.constexpr, keep_dims: tl.constexpr):
    # tl.max passes over NaN, and PyTorch does not
    missing = tl.max((x != x).to(tl.int32), axis, keep_dims=keep_dims)
    return tl.where(missing > 0, float("nan"), tl.max(x, axis, keep_dims=keep_dims))


@triton.jit
def smoothed_cross_entropy_log_softmax(
    targets_ptr, logits_ptr, output_ptr,
    operand_value, operand_2_value, s1,
    COLUMNS: tl.constexpr,
):
    program = tl.program_id(0)
    row = program.to(tl.int64)
    column = tl.arange(0, COLUMNS)
    targets = tl.load(targets_ptr + row * s1 + column, mask=column < s1, other=0.0)
    mul = operand_value
    mul_2 = targets * mul
    add = operand_2_value
    add_2 = mul_2 + add
    logits = tl.load(logits_ptr + row * s1 + column, mask=column < s1, other=0.0)
    log_softmax = largest(tl.where(column < s1, logits, float("-inf")), 0, False)
    log_softmax_2 = logits - log_softmax
    log_softmax_3 = tl.exp(log_softmax_2)
    log_softmax_4 = tl.sum(tl.where(column < s1, log_softmax_3, 0.0), 0)
    log_softmax_5 = tl.log(log_softmax_4)
    log_softmax_6 = log_softmax_2 - log_softmax_5
    mul_1 = add_2 * log_softmax_6
    sum_1 = tl.sum(tl.where(column < s1, mul_1, 0.0), 0)
    neg = sum_1 * -1.0
    tl.store(output_ptr + row, neg)
