// The structures and enumerations that calls are made of.
#pragma once
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
#include "evokernel/twin/advanced_data.h"
#include "evokernel/twin/advanced_math.h"
#include "evokernel/twin/advanced_rows.h"
#include "evokernel/twin/pool.h"
#include "judge/codec.h"

namespace evokernel::twin::wire {

EVK_ENUM(DType, S4, F64);
EVK_ENUM(Form::Kind, Count, Register);
template <> struct EnumRange<Api> {
    static constexpr Api first = static_cast<Api>(0);
    static constexpr Api last = static_cast<Api>(sizeof(kApiRows) / sizeof(kApiRows[0]) - 1);
};
EVK_ENUM(Reduce, Sum, Min);
EVK_ENUM(Atomic, None, Min);
EVK_ENUM(Reshape, Nd2Nd, Nhwc2Nchw);
EVK_ENUM(Fractal, ToNdc1hwc0, FromZ3d);
EVK_ENUM(RowOp, Sum, All);
EVK_ENUM(SoftmaxKind, Plain, GradFront);
EVK_ENUM(NormKind, Layer, Deep);
EVK_ENUM(Math, Tanh, SwiGLU);
EVK_ENUM(AscendC::RoundMode, CAST_NONE, CAST_ODD);
EVK_ENUM(AscendC::CMPMODE, LT, NE);
EVK_ENUM(AscendC::SELMODE, VSEL_CMPMASK_SPR, VSEL_TENSOR_TENSOR_MODE);
EVK_ENUM(AscendC::ReduceOrder, ORDER_VALUE_INDEX, ORDER_ONLY_INDEX);
EVK_ENUM(AscendC::HardEvent, MTE2_MTE1, V_FIX);
EVK_ENUM(AscendC::TPosition, GM, C2PIPE2LOCAL);
EVK_ENUM(AscendC::CO2Layout, NZ, COLUMN_MAJOR);
EVK_ENUM(AscendC::BlockMode, BLOCK_MODE_NORMAL, BLOCK_MODE_DEPTHWISE);
EVK_ENUM(AscendC::DeqScale, DEQ_NONE, VDEQ16);
EVK_ENUM(AscendC::DataFormat, ND, FRACTAL_Z_3D);
EVK_ENUM(QuantMode_t, NoQuant, VREQ8);
EVK_ENUM(matmul::Side, A, Bias);
EVK_ENUM(matmul::Source::Kind, None, Scalar);
EVK_ENUM(CubeFormat, ND, COLUMN_MAJOR);
EVK_ENUM(LayoutMode, NONE, NORMAL);
EVK_ENUM(ScheduleType, INNER_PRODUCT, N_BUFFER_33);
EVK_ENUM(BatchMode, NONE, SINGLE_LARGE_THAN_L1);
EVK_ENUM(BatchOutMode, SINGLE_BATCH, MULTI_BATCH);
EVK_ENUM(IterateOrder, ORDER_M, UNDEF);
EVK_ENUM(AscendC::Impl::Detail::PolicyKind, Default, Unsupported);
EVK_ENUM(pipe_t, PIPE_S, PIPE_FIX);

EVK_FIELDS(GlobalRef, address, bytes, dtype, bypass_l2);
EVK_BYTES(Scalar);
EVK_FIELDS(Form, kind, count, mask, dst_block, src0_block, src1_block, dst_repeat, src0_repeat, src1_repeat);
EVK_FIELDS(Burst, count, length, src_stride, dst_stride);
EVK_FIELDS(Padding, enabled, left, right, pattern);
EVK_FIELDS(MergePlan, runs, lengths, valid, repeats, suspend);
EVK_FIELDS(TopKCall, values, indices, src, src_index, finish, tmp, given_index, has_finish, small, largest, k, rows,
           inner, n, tmp_bytes);
EVK_FIELDS(BlockTranspose, dst_high, src_high, repeats, dst_repeat, src_repeat);
EVK_FIELDS(Dequant, vector, half_block);
EVK_FIELDS(FractalRows, count, rows, columns, src_matrix, src_column, dst_row, dst_matrix);
EVK_FIELDS(FilterShape, rows, columns, mask_columns);
EVK_FIELDS(QuantCall, dst, src, scale, offset, scale_value, offset_value, temporary, period, count);
EVK_FIELDS(DequantCall, dst, src, scale, scale_value, scale_type, temporary, m, n, count, single_row);
EVK_FIELDS(AntiQuantCall, dst, src, scale, offset, scale_value, offset_value, temporary, k, height, width, transposed);
EVK_FIELDS(SoftmaxCall, kind, dst, src, sum, max, mean, exp_max, reduce_max, in_sum, in_max, in_mean, grad, temporary,
           m, k, n, nz, single, update, loop, alpha);
EVK_FIELDS(NormCall, kind, dst, src, mean, spread, in_mean, in_variance, residual, gamma, beta, temporary, a, r, stride,
           epsilon, alpha, in_place, reuse);
EVK_FIELDS(BatchNormCall, dst, mean, variance, src, gamma, beta, temporary, b, n, epsilon);
EVK_FIELDS(GroupNormCall, dst, mean, variance, src, gamma, beta, temporary, n, c, hw, groups, epsilon);
EVK_FIELDS(NormGradCall, dx, res_for_gamma, dy, x, variance, mean, gamma, temporary, rows, h, n, epsilon);
EVK_FIELDS(WelfordUpdateCall, mean, variance, in_mean, in_variance, x, temporary, length, computed, reciprocal,
           in_place);
EVK_FIELDS(WelfordFinalizeCall, mean, variance, in_mean, in_variance, counts, temporary, rn, length, head_count,
           head_length, tail_count, tail_length, ab_rec, r_rec);
EVK_FIELDS(MathCallArguments, op, dst, src0, src1, scalar, temporary, count, terms);
EVK_FIELDS(Load3D, height, width, pad, channels, k, m, k_start, m_start, stride_w, stride_h, filter_w, filter_h,
           dilation_w, dilation_h, transpose, set_matrix, set_padding, padding);
EVK_FIELDS(FillCall, repeats, blocks, gap, bits);
EVK_FIELDS(FixpipeCall, n, m, src_stride, dst_stride, dst_gap, layout, quant, scalar, vector, registers, relu, split,
           unsupported, unit_flag, matrices, src_matrix, dst_matrix, name);

EVK_BYTES(AscendC::DataCopyParams);
EVK_BYTES(AscendC::DataCopyExtParams);
EVK_BYTES(AscendC::GatherMaskParams);
EVK_BYTES(AscendC::Nd2NzParams);
EVK_BYTES(AscendC::LoadDataRepeatParam);
EVK_BYTES(AscendC::tiling::TCubeTiling);
EVK_BYTES(AscendC::MatrixOffset);
EVK_FIELDS(AscendC::DataCopyEnhancedParams, block, scale, value, store, relu, mode, padding, tensor);
EVK_FIELDS(AscendC::LoadData2DParams, start, repeats, stride, sid, gap, transpose, mode);
EVK_FIELDS(AscendC::LoadData2dTransposeParams, start, repeats, stride, gap, fractal_gap, mode);
EVK_FIELDS(AscendC::MmadParams, m, n, k, bias, offset, sparse, winograd_a, winograd_b, unit, gemv, align, source, init);
EVK_FIELDS(AscendC::DataCopyCO12DstParams, sid, n, m, dst, src, unit, clip, element, quant, relu, split, nz2nd);
EVK_FIELDS(AscendC::FixpipeParamsV220, n, m, src, dst, quant, scalar, matrices, src_matrix, dst_matrix, relu, unit,
           split);
EVK_FIELDS(AscendC::DataCopyOutParams, count, length, src, dst, n, unit, scalar, workspace);

EVK_FIELDS(matmul::OperandSpec, position, format, dtype, may_transpose, layout, shared, sparse);
EVK_FIELDS(MatmulConfig, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21,
           a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43,
           a44, a45, a46, a47, a48, a49, a50, a51, a52);
EVK_FIELDS(MatmulApiStaticTiling, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19,
           a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, cfg);
EVK_FIELDS(matmul::Spec, a, b, c, bias, config, fixed, policy, copy_out, copy_a, copy_b);
EVK_FIELDS(matmul::Source, kind, global, local, bits, transposed);
EVK_FIELDS(matmul::Target, to_global, to_local, global, local, atomic, sequential);
EVK_FIELDS(matmul::BatchCall, batch_a, batch_b, stride_a, stride_b, stride_c, accumulate);

EVK_BYTES(Queue);
EVK_BYTES(PoolRegion);

// Of an instruction that works lane by lane.
template <> struct Fields<VecCall> {
    template <typename T, typename V> EVK_ALWAYS static void Visit(T &value, V &&visit)
    {
        auto &[op, dst, src0, src1, scalar, flag] = value;
        visit(op, dst, src0, src1, scalar, flag);
        if (!RowOf(op).Has(kLanes)) {
            Violation("an instruction is none that works lane by lane");
        }
    }
};

EVK_FIELDS(CoreInfo, index, blocks, sub, subs, cube);

// Not more dimensions than the structure has.
template <> struct Fields<AscendC::ShapeInfo> {
    template <typename T, typename V> EVK_ALWAYS static void Visit(T &value, V &&visit)
    {
        visit(value.shapeDim, value.originalShapeDim, value.shape, value.originalShape, value.dataFormat);
        if (value.shapeDim > AscendC::K_MAX_DIM || value.originalShapeDim > AscendC::K_MAX_DIM) {
            Violation("a shape has too many dimensions");
        }
    }
};

}  // namespace evokernel::twin::wire
