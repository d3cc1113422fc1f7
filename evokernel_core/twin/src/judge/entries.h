// The table of entry points: every function of the library that a candidate may call. The candidate's stubs and
// the judge's dispatcher are both made of it, so that one line adds a function, and a line that differs from the
// declaration does not compile or link.
//
// CALL(id, where, result, function, parameters, arguments as they travel)
// METHOD(id, class, how the object travels, result, method, parameters, const or nothing, arguments)
// OTHER(id, where): written by hand on both sides.
//
// `where`: Kernel (only a core's body), Host (only the launcher's code) or Anywhere. An object travels InOut (its
// bytes go and come back), InOnly (nothing in it changes) or as a Handle (it lives in the judge).
#pragma once

#define EVK_ENTRY_CALLS(CALL) \
    CALL(RowReduce, Kernel, void, RowReduce, (RowOp op, const LocalRef &dst, const LocalRef &src,                   \
         const LocalRef *temporary, DType accumulate, uint32_t rows, uint32_t inner, uint32_t n, At at), (op,       \
         dst, src, Opt(temporary), accumulate, rows, inner, n, at))                                                 \
    CALL(PatternReduce, Kernel, void, PatternReduce, (RowOp op, bool rows_kept, const LocalRef &dst,                \
         const LocalRef &src, const LocalRef *temporary, const uint32_t *shape, bool padded, At at), (op,           \
         rows_kept, dst, src, Opt(temporary), In<2>(shape), padded, at))                                            \
    CALL(CumulativeSum, Kernel, void, CumulativeSum, (const LocalRef &dst, const LocalRef *last_row,                \
         const LocalRef &src, const LocalRef *temporary, uint32_t outer, uint32_t inner, bool along_rows, At at),   \
         (dst, Opt(last_row), src, Opt(temporary), outer, inner, along_rows, at))                                   \
    CALL(XorSum, Kernel, void, XorSum, (const LocalRef &dst, const LocalRef &a, const LocalRef &b,                  \
         const LocalRef *temporary, uint32_t count, At at), (dst, a, b, Opt(temporary), count, at))                 \
    CALL(BroadcastTensor, Kernel, void, BroadcastTensor, (const LocalRef &dst, const LocalRef &src,                 \
         const LocalRef *temporary, const uint32_t *dst_shape, const uint32_t *src_shape, int dims, At at), (dst,   \
         src, Opt(temporary), In<16>(dst_shape, static_cast<uint32_t>(dims)), In<16>(src_shape,                     \
         static_cast<uint32_t>(dims)), AtMost<16>(dims), at))                                                       \
    CALL(BroadcastAxis, Kernel, void, BroadcastAxis, (const LocalRef &dst, const LocalRef &src,                     \
         const LocalRef *temporary, const uint32_t *dst_shape, const uint32_t *src_shape, int dims, int axis,       \
         At at), (dst, src, Opt(temporary), In<16>(dst_shape, static_cast<uint32_t>(dims)), In<16>(src_shape,       \
         static_cast<uint32_t>(dims)), AtMost<16>(dims), AtMost<15>(axis), at))                                     \
    CALL(DropElements, Kernel, void, DropElements, (const LocalRef &dst, const LocalRef &src,                       \
         const LocalRef &mask, const LocalRef *temporary, float keep, const FilterShape &shape, uint32_t mode,      \
         At at), (dst, src, mask, Opt(temporary), keep, shape, mode, at))                                           \
    CALL(SelectBytes, Kernel, void, SelectBytes, (const LocalRef &dst, const LocalRef &src, Scalar scalar,          \
         bool taken, const LocalRef &mask, const LocalRef &temporary, const FilterShape &shape, bool reuse_mask,    \
         At at), (dst, src, scalar, taken, mask, temporary, shape, reuse_mask, at))                                 \
    CALL(Quantise, Kernel, void, Quantise, (const QuantCall &call, At at), (call, at))                              \
    CALL(Dequantise, Kernel, void, Dequantise, (const DequantCall &call, At at), (call, at))                        \
    CALL(AntiQuantise, Kernel, void, AntiQuantise, (const AntiQuantCall &call, At at), (call, at))                  \
    CALL(RowReduceTemporary, Anywhere, uint64_t, RowReduceTemporary, (uint64_t n, uint32_t type_size), (n,          \
         type_size))                                                                                                \
    CALL(PatternTemporary, Anywhere, uint64_t, PatternTemporary, (RowOp op, uint64_t rows, uint64_t columns,        \
         uint32_t type_size, bool rows_kept, bool reuse), (op, rows, columns, type_size, rows_kept, reuse))         \
    CALL(CumulativeTemporary, Anywhere, uint64_t, CumulativeTemporary, (uint64_t outer, uint64_t inner,             \
         uint32_t type_size, bool along_rows), (outer, inner, type_size, along_rows))                               \
    CALL(BroadcastTemporary, Anywhere, uint64_t, BroadcastTemporary, (uint64_t columns, uint32_t type_size),        \
         (columns, type_size))                                                                                      \
    CALL(SelectTemporary, Anywhere, uint64_t, SelectTemporary, (uint64_t columns), (columns))                       \
    CALL(QuantTemporary, Anywhere, uint64_t, QuantTemporary, (uint32_t type_size), (type_size))                     \
    CALL(DequantTemporary, Anywhere, uint64_t, DequantTemporary, (uint64_t columns), (columns))                     \
    CALL(AntiQuantTemporary, Anywhere, uint64_t, AntiQuantTemporary, (uint64_t columns), (columns))                 \
    CALL(MathCall, Kernel, void, MathCall, (const MathCallArguments &call, At at), (call, at))                      \
    CALL(MathLiveNodes, Anywhere, uint32_t, MathLiveNodes, (Math op, uint32_t type_size), (op, type_size))          \
    CALL(MathTemporary, Anywhere, void, MathTemporary, (Math op, uint64_t elements, uint32_t type_size,             \
         uint32_t *most, uint32_t *least), (op, elements, type_size, Out<1>(most), Out<1>(least)))                  \
    CALL(Softmax, Kernel, void, Softmax, (const SoftmaxCall &call, At at), (call, at))                              \
    CALL(AdjustRows, Kernel, bool, AdjustRows, (const LocalRef &rows, const LocalRef &max, uint32_t from,           \
         Scalar to, uint32_t m, uint32_t k, bool nz, bool every, At at), (rows, max, from, to, m, k, nz, every,     \
         at))                                                                                                       \
    CALL(NormalizeRows, Kernel, void, NormalizeRows, (const NormCall &call, At at), (call, at))                     \
    CALL(BatchNormalize, Kernel, void, BatchNormalize, (const BatchNormCall &call, At at), (call, at))              \
    CALL(GroupNormalize, Kernel, void, GroupNormalize, (const GroupNormCall &call, At at), (call, at))              \
    CALL(LayerNormGradient, Kernel, void, LayerNormGradient, (const NormGradCall &call, At at), (call, at))         \
    CALL(LayerNormGradientBeta, Kernel, void, LayerNormGradientBeta, (const LocalRef &d_gamma,                      \
         const LocalRef &d_beta, const LocalRef &res_for_gamma, const LocalRef &dy, const LocalRef *temporary,      \
         uint32_t rows, uint32_t h, At at), (d_gamma, d_beta, res_for_gamma, dy, Opt(temporary), rows, h, at))      \
    CALL(WelfordStep, Kernel, void, WelfordStep, (const WelfordUpdateCall &call, At at), (call, at))                \
    CALL(WelfordEnd, Kernel, void, WelfordEnd, (const WelfordFinalizeCall &call, At at), (call, at))                \
    CALL(NormTemporary, Anywhere, uint64_t, NormTemporary, (uint64_t rows, uint64_t r, uint32_t type_size,          \
         bool reuse), (rows, r, type_size, reuse))                                                                  \
    CALL(WelfordTemporary, Anywhere, uint64_t, WelfordTemporary, (uint64_t length, uint32_t type_size), (length,    \
         type_size))                                                                                                \
    CALL(Vector, Kernel, void, Vector, (const VecCall &call, const Form &form, At at), (call, form, at))            \
    CALL(LastPlace, Kernel, At, LastPlace, (), ())                                                                  \
    CALL(FusedCast, Kernel, void, FusedCast, (Api op, const LocalRef &dst, const LocalRef &src0,                    \
         const LocalRef &src1, const Form &form, At at), (op, dst, src0, src1, form, at))                           \
    CALL(Cast, Kernel, void, Cast, (const LocalRef &dst, const LocalRef &src, AscendC::RoundMode mode,              \
         const Form &form, At at), (dst, src, mode, form, at))                                                      \
    CALL(Duplicate, Kernel, void, Duplicate, (const LocalRef &dst, Scalar value, uint64_t pattern,                  \
         const Form &form, At at), (dst, value, pattern, form, at))                                                 \
    CALL(CopyVector, Kernel, void, CopyVector, (const LocalRef &dst, const LocalRef &src, const Form &form,         \
         At at), (dst, src, form, at))                                                                              \
    CALL(Brcb, Kernel, void, Brcb, (const LocalRef &dst, const LocalRef &src, int64_t repeats,                      \
         uint16_t dst_block, uint16_t dst_repeat, At at), (dst, src, repeats, dst_block, dst_repeat, at))           \
    CALL(CreateVecIndex, Kernel, void, CreateVecIndex, (const LocalRef &dst, Scalar first, Scalar step,             \
         const Form &form, const char *name, At at), (dst, first, step, form, name, at))                            \
    CALL(Compare, Kernel, void, Compare, (const LocalRef &dst, const LocalRef &src0, const LocalRef &src1,          \
         AscendC::CMPMODE mode, const Form &form, At at), (dst, src0, src1, mode, form, at))                        \
    CALL(CompareScalar, Kernel, void, CompareScalar, (const LocalRef &dst, const LocalRef &src, Scalar scalar,      \
         AscendC::CMPMODE mode, const Form &form, At at), (dst, src, scalar, mode, form, at))                       \
    CALL(CompareToRegister, Kernel, void, CompareToRegister, (const LocalRef &src0, const LocalRef &src1,           \
         AscendC::CMPMODE mode, const Form &form, At at), (src0, src1, mode, form, at))                             \
    CALL(Select, Kernel, void, Select, (const LocalRef &dst, const LocalRef &mask, const LocalRef &src0,            \
         const LocalRef *src1, Scalar scalar, AscendC::SELMODE mode, const Form &form, At at), (dst, mask, src0,    \
         Opt(src1), scalar, mode, form, at))                                                                        \
    CALL(SetCompareMask, Kernel, void, SetCompareMask, (const LocalRef &src, At at), (src, at))                     \
    CALL(GetCompareMask, Kernel, void, GetCompareMask, (const LocalRef &dst, At at), (dst, at))                     \
    CALL(GatherMask, Kernel, uint64_t, GatherMask, (const LocalRef &dst, const LocalRef &src,                       \
         const LocalRef *pattern, uint8_t fixed_pattern, bool counter, uint32_t mask,                               \
         const AscendC::GatherMaskParams &params, At at), (dst, src, Opt(pattern), fixed_pattern, counter, mask,    \
         params, at))                                                                                               \
    CALL(Gather, Kernel, void, Gather, (const LocalRef &dst, const LocalRef &src, const LocalRef &offsets,          \
         uint32_t base, const Form &form, At at), (dst, src, offsets, base, form, at))                              \
    CALL(Gatherb, Kernel, void, Gatherb, (const LocalRef &dst, const LocalRef &src, const LocalRef &offsets,        \
         int64_t repeats, uint16_t dst_block, uint16_t dst_repeat, At at), (dst, src, offsets, repeats,             \
         dst_block, dst_repeat, at))                                                                                \
    CALL(Transpose16, Kernel, void, Transpose16, (const LocalRef &dst, const LocalRef &src, At at), (dst, src,      \
         at))                                                                                                       \
    CALL(Sort32, Kernel, void, Sort32, (const LocalRef &dst, const LocalRef &score, const LocalRef &index,          \
         int64_t repeats, At at), (dst, score, index, repeats, at))                                                 \
    CALL(WholeReduce, Kernel, void, WholeReduce, (Reduce op, const LocalRef &dst, const LocalRef &src,              \
         const Form &form, int32_t dst_repeat, AscendC::ReduceOrder order, At at), (op, dst, src, form,             \
         dst_repeat, order, at))                                                                                    \
    CALL(BlockReduce, Kernel, void, BlockReduce, (Reduce op, const LocalRef &dst, const LocalRef &src,              \
         const Form &form, int32_t dst_repeat, At at), (op, dst, src, form, dst_repeat, at))                        \
    CALL(PairReduce, Kernel, void, PairReduce, (Reduce op, const LocalRef &dst, const LocalRef &src,                \
         const Form &form, int32_t dst_repeat, At at), (op, dst, src, form, dst_repeat, at))                        \
    CALL(ReduceAll, Kernel, void, ReduceAll, (Reduce op, const LocalRef &dst, const LocalRef &src,                  \
         const LocalRef &tmp, const Form &form, bool index, At at), (op, dst, src, tmp, form, index, at))           \
    CALL(SumIntoRegister, Kernel, void, SumIntoRegister, (const LocalRef &src, const Form &form,                    \
         const char *name, At at), (src, form, name, at))                                                           \
    CALL(LastSum, Kernel, float, LastSum, (), ())                                                                   \
    CALL(LastMaxMin, Kernel, void, LastMaxMin, (float *value, uint32_t *index), (Out<1>(value), Out<1>(index)))     \
    CALL(SetMaskMode, Kernel, void, SetMaskMode, (bool counter), (counter))                                         \
    CALL(SetMaskRegister, Kernel, void, SetMaskRegister, (uint64_t high, uint64_t low), (high, low))                \
    CALL(SetMaskLength, Kernel, void, SetMaskLength, (int64_t lanes, DType dtype, bool counter), (lanes, dtype,     \
         counter))                                                                                                  \
    CALL(SetDeqScale, Kernel, void, SetDeqScale, (float scale), (scale))                                            \
    CALL(CopyIn, Kernel, void, CopyIn, (const LocalRef &dst, const GlobalRef &src, const Burst &burst, At at),      \
         (dst, src, burst, at))                                                                                     \
    CALL(CopyOut, Kernel, void, CopyOut, (const GlobalRef &dst, const LocalRef &src, const Burst &burst, At at),    \
         (dst, src, burst, at))                                                                                     \
    CALL(CopyCountIn, Kernel, void, CopyCountIn, (const LocalRef &dst, const GlobalRef &src, int64_t count,         \
         At at), (dst, src, count, at))                                                                             \
    CALL(CopyCountOut, Kernel, void, CopyCountOut, (const GlobalRef &dst, const LocalRef &src, int64_t count,       \
         At at), (dst, src, count, at))                                                                             \
    CALL(CopyPadIn, Kernel, void, CopyPadIn, (const LocalRef &dst, const GlobalRef &src,                            \
         const AscendC::DataCopyExtParams &params, const Padding &padding, At at), (dst, src, params, padding,      \
         at))                                                                                                       \
    CALL(CopyPadOut, Kernel, void, CopyPadOut, (const GlobalRef &dst, const LocalRef &src,                          \
         const AscendC::DataCopyExtParams &params, At at), (dst, src, params, at))                                  \
    CALL(CopyLocal, Kernel, void, CopyLocal, (const LocalRef &dst, const LocalRef &src, const Burst &burst,         \
         const char *name, At at), (dst, src, burst, name, at))                                                     \
    CALL(CopyLocalCount, Kernel, void, CopyLocalCount, (const LocalRef &dst, const LocalRef &src, int64_t count,    \
         At at), (dst, src, count, at))                                                                             \
    CALL(CheckCopyParams, Kernel, void, CheckCopyParams, (const AscendC::DataCopyParams &params,                    \
         const char *name, At at), (params, name, at))                                                              \
    CALL(SetAtomic, Kernel, void, SetAtomic, (Atomic op, DType dtype, At at), (op, dtype, at))                      \
    CALL(LocalSet, Kernel, void, LocalSet, (const LocalRef &tensor, int64_t index, uint64_t bits, At at),           \
         (tensor, index, bits, at))                                                                                 \
    CALL(GlobalSet, Kernel, void, GlobalSet, (const GlobalRef &tensor, int64_t index, uint64_t bits, At at),        \
         (tensor, index, bits, at))                                                                                 \
    CALL(CleanDataCache, Kernel, void, CleanDataCache, (const uint8_t *line, At at), (Device(line), at))            \
    CALL(LocalAt, Kernel, LocalRef, LocalAt, (const volatile void *pointer, DType dtype, const char *api, At at),   \
         (Device(pointer), dtype, api, at))                                                                         \
    CALL(ScalarCycles, Kernel, void, ScalarCycles, (double cycles), (cycles))                                       \
    CALL(SetFlag, Kernel, void, SetFlag, (AscendC::HardEvent event, int64_t id, At at), (event, id, at))            \
    CALL(WaitFlag, Kernel, void, WaitFlag, (AscendC::HardEvent event, int64_t id, At at), (event, id, at))          \
    CALL(NoSuchFlag, Kernel, void, NoSuchFlag, (const char *api, At at), (api, at))                                 \
    CALL(Barrier, Kernel, void, Barrier, (pipe_t pipe, At at), (pipe, at))                                          \
    CALL(AllocEvent, Kernel, int8_t, AllocEvent, (AscendC::HardEvent event, At at), (event, at))                    \
    CALL(ReleaseEvent, Kernel, void, ReleaseEvent, (AscendC::HardEvent event, int64_t id, At at), (event, id, at))  \
    CALL(FetchEvent, Kernel, int8_t, FetchEvent, (AscendC::HardEvent event), (event))                               \
    CALL(SystemCycle, Kernel, int64_t, SystemCycle, (), ())                                                         \
    CALL(InitSocState, Kernel, void, InitSocState, (), ())                                                          \
    CALL(SystemWorkspace, Anywhere, uint8_t *, SystemWorkspace, (), ())                                             \
    CALL(SetSystemWorkspace, Anywhere, void, SetSystemWorkspace, (uint8_t *workspace), (Device(workspace)))         \
    CALL(MergeSorted, Kernel, void, MergeSorted, (const LocalRef &dst, const MergePlan &plan, At at), (dst, plan,   \
         at))                                                                                                       \
    CALL(MergeResult, Kernel, void, MergeResult, (uint16_t *taken, At at), (Out<4>(taken), at))                     \
    CALL(SortAll, Kernel, void, SortAll, (const LocalRef &dst, const LocalRef &score, const LocalRef &index,        \
         const LocalRef &tmp, int64_t repeats, bool full, At at), (dst, score, index, tmp, repeats, full, at))      \
    CALL(TopKRows, Kernel, void, TopKRows, (const TopKCall &call, At at), (call, at))                               \
    CALL(TransposeBlocks, Kernel, void, TransposeBlocks, (const LocalRef *dst, const LocalRef *src,                 \
         const BlockTranspose &params, At at), (In<16>(dst), In<16>(src), params, at))                              \
    CALL(SetBlockAddresses, Kernel, void, SetBlockAddresses, (uint32_t reg, const uint64_t *addresses), (reg,       \
         Words<8>(addresses)))                                                                                      \
    CALL(TransposeRegisters, Kernel, void, TransposeRegisters, (uint32_t dst, uint32_t src, DType dtype,            \
         const BlockTranspose &params, const char *api, At at), (dst, src, dtype, params, api, at))                 \
    CALL(LocalAt2, Kernel, LocalRef, LocalAt, (uint64_t address, DType dtype, const char *api, At at),              \
         (Word(address), dtype, api, at))                                                                           \
    CALL(LocalWords, Kernel, void, LocalWords, (const LocalRef &list, uint64_t *words, uint32_t count,              \
         const char *api, At at), (list, OutWords<64>(words, count), AtMost<64>(count), api, at))                   \
    CALL(UnknownTranspose, Kernel, void, UnknownTranspose, (uint32_t type, At at), (type, at))                      \
    CALL(TransposeImage, Kernel, void, TransposeImage, (Reshape kind, const LocalRef &dst, const LocalRef &src,     \
         const LocalRef &tmp, const uint32_t *nchw, At at), (kind, dst, src, tmp, In<4>(nchw), at))                 \
    CALL(TransposeLayout, Kernel, void, TransposeLayout, (uint32_t scenario, const LocalRef &dst,                   \
         const LocalRef &src, const LocalRef *tmp, uint32_t tmp_bytes, const uint32_t *shape, At at), (scenario,    \
         dst, src, Opt(tmp), tmp_bytes, In<4>(shape), at))                                                          \
    CALL(FractalTmpElements, Anywhere, uint64_t, FractalTmpElements, (Fractal kind, const uint32_t *ncdhw),         \
         (kind, In<5>(ncdhw)))                                                                                      \
    CALL(TransposeFractal, Kernel, void, TransposeFractal, (Fractal kind, const LocalRef &dst,                      \
         const LocalRef &src, const LocalRef *tmp, const uint32_t *ncdhw, At at), (kind, dst, src, Opt(tmp),        \
         In<5>(ncdhw), at))                                                                                         \
    CALL(PadRows, Kernel, void, PadRows, (const LocalRef &dst, const LocalRef &src, const LocalRef *tmp,            \
         const uint32_t *shape, uint32_t left, uint32_t right, uint64_t pattern, At at), (dst, src, Opt(tmp),       \
         In<4>(shape), left, right, pattern, at))                                                                   \
    CALL(UnPadRows, Kernel, void, UnPadRows, (const LocalRef &dst, const LocalRef &src, const LocalRef *tmp,        \
         const uint32_t *shape, uint32_t right, At at), (dst, src, Opt(tmp), In<4>(shape), right, at))              \
    CALL(Dequantize, Kernel, void, Dequantize, (const LocalRef &dst, const LocalRef &src, const Dequant &how,       \
         const Form &form, At at), (dst, src, how, form, at))                                                       \
    CALL(AddDequantize, Kernel, void, AddDequantize, (const LocalRef &dst, const LocalRef &src0,                    \
         const LocalRef &src1, const Form &form, At at), (dst, src0, src1, form, at))                               \
    CALL(SetDequant, Kernel, void, SetDequant, (float scale, int16_t offset, bool is_signed), (scale, offset,       \
         is_signed))                                                                                                \
    CALL(SetDequantVector, Kernel, void, SetDequantVector, (const LocalRef &table, const float *scales,             \
         const int16_t *offsets, const bool *is_signed, At at), (table, In<16>(scales), In<16>(offsets),            \
         In<16>(is_signed), at))                                                                                    \
    CALL(CopySlices, Kernel, void, CopySlices, (const LocalRef &local, const GlobalRef &global,                     \
         const uint32_t *local_slices, const uint32_t *global_slices, uint32_t dims, bool in, At at), (local,       \
         global, In<80>(local_slices, 5 * dims), In<80>(global_slices, 5 * dims), dims, in, at))                    \
    CALL(CopyFractalsOut, Kernel, void, CopyFractalsOut, (const GlobalRef &dst, const LocalRef &src,                \
         const FractalRows &how, At at), (dst, src, how, at))                                                       \
    CALL(FillGlobal, Kernel, void, FillGlobal, (const GlobalRef &dst, uint64_t count, uint64_t pattern,             \
         const char *name, At at), (dst, count, pattern, name, at))                                                 \
    CALL(SetControl, Kernel, void, SetControl, (int first, int last, int64_t value, At at),                         \
         (AtMost<63>(first), AtMost<63>(last), value, at))                                                          \
    CALL(GetControl, Kernel, int64_t, GetControl, (int first, int last), (AtMost<63>(first), AtMost<63>(last)))     \
    CALL(SetSaturation, Kernel, void, SetSaturation, (bool floats, bool enabled), (floats, enabled))                \
    CALL(GetSaturation, Kernel, bool, GetSaturation, (bool floats), (floats))                                       \
    CALL(SetPadPattern, Kernel, void, SetPadPattern, (uint64_t pattern), (pattern))                                 \
    CALL(SetAtomicDType, Kernel, void, SetAtomicDType, (DType dtype, At at), (dtype, at))                           \
    CALL(GetAtomic, Kernel, void, GetAtomic, (Atomic *op, DType *dtype), (Out<1>(op), Out<1>(dtype)))               \
    CALL(PreloadLine, Kernel, void, PreloadLine, (const GlobalRef &tensor, int64_t offset, At at), (tensor,         \
         offset, at))                                                                                               \
    CALL(WriteUncached, Kernel, void, WriteUncached, (void *address, uint64_t bits, uint32_t width, At at),         \
         (Device(address), bits, AtMost<8>(width), at))                                                             \
    CALL(GlobalWord, Kernel, uint64_t, GlobalWord, (const uint64_t *address, At at), (Device(address), at))         \
    CALL(CheckTensorList, Kernel, void, CheckTensorList, (uint32_t length, uint32_t count, uint64_t found_length,   \
         uint32_t found_count, At at), (length, count, found_length, found_count, at))                              \
    CALL(SyncAllCores, Kernel, void, SyncAllCores, (bool vector_only, At at), (vector_only, at))                    \
    CALL(SyncAllInMemory, Kernel, void, SyncAllInMemory, (const GlobalRef &workspace, const LocalRef &local,        \
         int32_t used_cores, At at), (workspace, local, used_cores, at))                                            \
    CALL(CrossCoreSet, Kernel, void, CrossCoreSet, (int mode, pipe_t pipe, uint16_t id, At at),                     \
         (AtMost<3>(mode), pipe, id, at))                                                                           \
    CALL(CrossCoreWait, Kernel, void, CrossCoreWait, (uint16_t id, At at), (id, at))                                \
    CALL(BlockSet, Kernel, void, BlockSet, (const GlobalRef &workspace, const LocalRef &local, int32_t block,       \
         int32_t event, bool vector_only, At at), (workspace, local, block, event, vector_only, at))                \
    CALL(BlockWait, Kernel, void, BlockWait, (const GlobalRef &workspace, const LocalRef &local, int32_t block,     \
         int32_t event, bool vector_only, At at), (workspace, local, block, event, vector_only, at))                \
    CALL(TurnsInit, Kernel, void, TurnsInit, (const GlobalRef &workspace, const LocalRef &local, At at),            \
         (workspace, local, at))                                                                                    \
    CALL(TurnsWait, Kernel, void, TurnsWait, (const GlobalRef &workspace, const LocalRef &local, At at),            \
         (workspace, local, at))                                                                                    \
    CALL(TurnsNotify, Kernel, void, TurnsNotify, (const GlobalRef &workspace, const LocalRef &local, At at),        \
         (workspace, local, at))                                                                                    \
    CALL(GroupCheck, Kernel, void, GroupCheck, (const uint8_t *workspace, uint32_t arrivers, uint32_t waiters,      \
         At at), (Device(workspace), arrivers, waiters, at))                                                        \
    CALL(GroupArrive, Kernel, void, GroupArrive, (const uint8_t *workspace, uint32_t arrivers, uint32_t index,      \
         At at), (Device(workspace), arrivers, index, at))                                                          \
    CALL(GroupWait, Kernel, void, GroupWait, (const uint8_t *workspace, uint32_t arrivers, uint32_t waiters,        \
         uint32_t index, At at), (Device(workspace), arrivers, waiters, index, at))                                 \
    CALL(IsCubePosition, Kernel, bool, IsCubePosition, (const LocalRef &tensor), (tensor))                          \
    CALL(CopyNd2Nz, Kernel, void, CopyNd2Nz, (const LocalRef &dst, const GlobalRef &src,                            \
         const AscendC::Nd2NzParams &params, At at), (dst, src, params, at))                                        \
    CALL(CopyLocalNd2Nz, Kernel, void, CopyLocalNd2Nz, (const LocalRef &dst, const LocalRef &src,                   \
         const AscendC::Nd2NzParams &params, At at), (dst, src, params, at))                                        \
    CALL(CopyDn2Nz, Kernel, void, CopyDn2Nz, (At at), (at))                                                         \
    CALL(CheckEnhanced, Kernel, void, CheckEnhanced, (const AscendC::DataCopyEnhancedParams &params, At at),        \
         (params, at))                                                                                              \
    CALL(CopyLocalDense, Kernel, void, CopyLocalDense, (const LocalRef &dst, const LocalRef &src, uint32_t bytes,   \
         At at), (dst, src, bytes, at))                                                                             \
    CALL(CopyLocalParams, Kernel, void, CopyLocalParams, (const LocalRef &dst, const LocalRef &src,                 \
         const AscendC::DataCopyParams &params, At at), (dst, src, params, at))                                     \
    CALL(CopyPadUbToL1, Kernel, void, CopyPadUbToL1, (const LocalRef &dst, const LocalRef &src,                     \
         const AscendC::DataCopyExtParams &rows, const AscendC::Nd2NzParams &params, At at), (dst, src, rows,       \
         params, at))                                                                                               \
    CALL(Load2D, Kernel, void, Load2D, (const LocalRef &dst, const LocalRef &src,                                   \
         const AscendC::LoadData2DParams &params, At at), (dst, src, params, at))                                   \
    CALL(Load2DGlobal, Kernel, void, Load2DGlobal, (const LocalRef &dst, const GlobalRef &src,                      \
         const AscendC::LoadData2DParams &params, At at), (dst, src, params, at))                                   \
    CALL(Load2DV2, Kernel, void, Load2DV2, (At at), (at))                                                           \
    CALL(LoadTransposed, Kernel, void, LoadTransposed, (const LocalRef &dst, const LocalRef &src,                   \
         const AscendC::LoadData2dTransposeParams &params, At at), (dst, src, params, at))                          \
    CALL(LoadSparse, Kernel, void, LoadSparse, (const LocalRef &dst, const LocalRef &src, const LocalRef &index,    \
         const AscendC::LoadData2DParams &params, At at), (dst, src, index, params, at))                            \
    CALL(LoadImageToColumn, Kernel, void, LoadImageToColumn, (const LocalRef &dst, const LocalRef &src,             \
         const Load3D &load, At at), (dst, src, load, at))                                                          \
    CALL(SetFeatureMatrix, Kernel, void, SetFeatureMatrix, (uint16_t height, uint16_t width, const uint8_t *pad,    \
         At at), (height, width, In<4>(pad), at))                                                                   \
    CALL(SetFmatrix, Kernel, void, SetFmatrix, (uint16_t height, uint16_t width, const uint8_t *pad,                \
         At at), (height, width, In<4>(pad), at))                                                                   \
    CALL(SetLoadPadding, Kernel, void, SetLoadPadding, (uint64_t bits, At at), (bits, at))                          \
    CALL(SetLoadBoundary, Kernel, void, SetLoadBoundary, (uint32_t bytes, At at), (bytes, at))                      \
    CALL(SetLoadRepeat, Kernel, void, SetLoadRepeat, (const AscendC::LoadDataRepeatParam &params, At at),           \
         (params, at))                                                                                              \
    CALL(FillMatrix, Kernel, void, FillMatrix, (const LocalRef &dst, const FillCall &fill, At at), (dst, fill,      \
         at))                                                                                                       \
    CALL(MatrixMultiply, Kernel, void, MatrixMultiply, (const LocalRef &dst, const LocalRef &left,                  \
         const LocalRef &right, const LocalRef *bias, const AscendC::MmadParams &params, bool sparse, At at),       \
         (dst, left, right, Opt(bias), params, sparse, at))                                                         \
    CALL(SetHalfFloat32, Kernel, void, SetHalfFloat32, (bool enabled, At at), (enabled, at))                        \
    CALL(SetHalfFloat32Rounding, Kernel, void, SetHalfFloat32Rounding, (bool to_zero, At at), (to_zero, at))        \
    CALL(SetMatrixOrder, Kernel, void, SetMatrixOrder, (bool row_major, At at), (row_major, at))                    \
    CALL(FixpipeToL1, Kernel, void, FixpipeToL1, (const LocalRef &dst, const LocalRef &src,                         \
         const FixpipeCall &call, At at), (dst, src, call, at))                                                     \
    CALL(SetFixpipeMatrices, Kernel, void, SetFixpipeMatrices, (uint16_t count, uint16_t src_stride,                \
         uint16_t dst_stride, At at), (count, src_stride, dst_stride, at))                                          \
    CALL(SetFixpipeScalar, Kernel, void, SetFixpipeScalar, (uint64_t bits, At at), (bits, at))                      \
    CALL(SetFixpipeVector, Kernel, void, SetFixpipeVector, (const LocalRef &tensor, bool clear_unit_flags,          \
         At at), (tensor, clear_unit_flags, at))                                                                    \
    CALL(DumpLocal, Kernel, void, DumpLocal, (const LocalRef &tensor, uint32_t label, uint64_t skip,                \
         uint32_t count, const AscendC::ShapeInfo *shape, At at), (tensor, label, skip, count, Opt(shape), at))     \
    CALL(DumpGlobal, Kernel, void, DumpGlobal, (const GlobalRef &tensor, uint32_t label, uint64_t skip,             \
         uint32_t count, const AscendC::ShapeInfo *shape, At at), (tensor, label, skip, count, Opt(shape), at))     \
    CALL(DumpAddress, Kernel, void, DumpAddress, (const void *address, DType dtype, const char *memory,             \
         uint32_t label, uint32_t count, At at), (Device(address), dtype, memory, label, count, at))                \
    CALL(PrintTime, Kernel, void, PrintTime, (uint32_t label, At at), (label, at))                                  \
    CALL(RestOfMemory, Kernel, LocalRef, RestOfMemory, (AscendC::TPosition position, At at), (position, at))        \
    CALL(TilingKey, Kernel, uint64_t, TilingKey, (At at), (at))                                                     \
    CALL(SetTilingKey, Anywhere, void, SetTilingKey, (uint64_t key), (key))                                         \
    CALL(FixpipeToGlobal, Kernel, void, FixpipeToGlobal, (const GlobalRef &dst, const LocalRef &src,                \
         const FixpipeCall &call, At at), (dst, src, call, at))

#define EVK_ENTRY_METHODS(METHOD) \
    METHOD(PoolAssign, PoolRegion, InOut, void, Assign, (const LocalRef &whole), , (whole))                         \
    METHOD(PoolShare, PoolRegion, InOut, void, Share, (const PoolRegion &other, uint32_t bytes, At at), , (other,   \
         bytes, at))                                                                                                \
    METHOD(PoolTake, PoolRegion, InOut, LocalRef, Take, (uint64_t bytes, uint32_t max_buffers, bool counts,         \
         At at), , (bytes, max_buffers, counts, at))                                                                \
    METHOD(PoolFinish, PoolRegion, InOut, void, Finish, (), , ())                                                   \
    METHOD(PoolClear, PoolRegion, InOut, void, Clear, (), , ())                                                     \
    METHOD(MatmulRegister, matmul::Object, Handle, void, Register, (At at), , (at))                                 \
    METHOD(MatmulInit, matmul::Object, Handle, void, Init, (const ::AscendC::tiling::TCubeTiling *tiling, At at),   \
         , (Opt(tiling), at))                                                                                       \
    METHOD(MatmulSetOrgShape, matmul::Object, Handle, void, SetOrgShape, (int m, int n, int ka, int kb, int kc,     \
         At at), , (m, n, ka, kb, kc, at))                                                                          \
    METHOD(MatmulSetSingleShape, matmul::Object, Handle, void, SetSingleShape, (int m, int n, int k, At at), ,      \
         (m, n, k, at))                                                                                             \
    METHOD(MatmulSetTail, matmul::Object, Handle, void, SetTail, (int m, int n, int k, At at), , (m, n, k, at))     \
    METHOD(MatmulSetSource, matmul::Object, Handle, void, SetSource, (matmul::Side side,                            \
         const matmul::Source &source, At at), , (side, source, at))                                                \
    METHOD(MatmulClearBias, matmul::Object, Handle, void, ClearBias, (At at), , (at))                               \
    METHOD(MatmulSetQuantScalar, matmul::Object, Handle, void, SetQuantScalar, (uint64_t bits, At at), , (bits,     \
         at))                                                                                                       \
    METHOD(MatmulSetQuantGlobal, matmul::Object, Handle, void, SetQuantVector, (const GlobalRef &tensor, At at),    \
         , (tensor, at))                                                                                            \
    METHOD(MatmulSetQuantLocal, matmul::Object, Handle, void, SetQuantVector, (const LocalRef &tensor, At at), ,    \
         (tensor, at))                                                                                              \
    METHOD(MatmulSetSparseIndex, matmul::Object, Handle, void, SetSparseIndex, (const GlobalRef &tensor, At at),    \
         , (tensor, at))                                                                                            \
    METHOD(MatmulSetWorkspace, matmul::Object, Handle, void, SetWorkspace, (const GlobalRef &tensor, At at), ,      \
         (tensor, at))                                                                                              \
    METHOD(MatmulSetUserInfo, matmul::Object, Handle, void, SetUserInfo, (uint64_t bits), , (bits))                 \
    METHOD(MatmulSetCallbackData, matmul::Object, Handle, void, SetCallbackData, (uint64_t bits), , (bits))         \
    METHOD(MatmulSetHalfFloat32, matmul::Object, Handle, void, SetHalfFloat32, (bool enabled, bool to_zero), ,      \
         (enabled, to_zero))                                                                                        \
    METHOD(MatmulSetBatch, matmul::Object, Handle, void, SetBatch, (int32_t a, int32_t b, At at), , (a, b, at))     \
    METHOD(MatmulIterate, matmul::Object, Handle, bool, Iterate, (bool sync, bool accumulate,                       \
         const LocalRef *co1, At at), , (sync, accumulate, Opt(co1), at))                                           \
    METHOD(MatmulGetTensorC, matmul::Object, Handle, void, GetTensorC, (bool sync, const matmul::Target &target,    \
         At at), , (sync, target, at))                                                                              \
    METHOD(MatmulGetWorkspaceC, matmul::Object, Handle, GlobalRef, GetWorkspaceC, (At at), , (at))                  \
    METHOD(MatmulIterateAll, matmul::Object, Handle, void, IterateAll, (bool sync, const matmul::Target &target,    \
         bool wait, bool fake, At at), , (sync, target, wait, fake, at))                                            \
    METHOD(MatmulIterateBatch, matmul::Object, Handle, void, IterateBatch, (bool sync,                              \
         const matmul::Target &target, const matmul::BatchCall &call, At at), , (sync, target, call, at))           \
    METHOD(MatmulIterateSetBatch, matmul::Object, Handle, void, IterateBatch, (const matmul::Target &target,        \
         matmul::BatchCall call, At at), , (target, call, at))                                                      \
    METHOD(MatmulIterateNBatch, matmul::Object, Handle, void, IterateNBatch, (bool sync, uint32_t loops,            \
         const matmul::BatchCall &call, bool sequential, At at), , (sync, loops, call, sequential, at))             \
    METHOD(MatmulGetBatchGlobal, matmul::Object, Handle, GlobalRef, GetBatchC, (uint32_t batch_a,                   \
         uint32_t batch_b, At at), , (batch_a, batch_b, at))                                                        \
    METHOD(MatmulGetBatchLocal, matmul::Object, Handle, void, GetBatchC, (const LocalRef &target,                   \
         uint32_t batch_a, uint32_t batch_b, At at), , (target, batch_a, batch_b, at))                              \
    METHOD(MatmulWait, matmul::Object, Handle, void, Wait, (At at), , (at))                                         \
    METHOD(MatmulEnd, matmul::Object, Handle, void, End, (At at), , (at))                                           \
    METHOD(MatmulOffset, matmul::Object, Handle, AscendC::MatrixOffset, Offset, (), const, ())

#define EVK_ENTRY_OTHERS(OTHER) \
    OTHER(Blocks, Kernel)                                                                                           \
    OTHER(QueueInit, Kernel)                                                                                        \
    OTHER(QueuePrepare, Kernel)                                                                                     \
    OTHER(QueuePlace, Kernel)                                                                                       \
    OTHER(QueueAlloc, Kernel)                                                                                       \
    OTHER(QueuePush, Kernel)                                                                                        \
    OTHER(QueuePop, Kernel)                                                                                         \
    OTHER(QueueFree, Kernel)                                                                                        \
    OTHER(QueueFreeAllEvents, Kernel)                                                                               \
    OTHER(LocalGet, Kernel)                                                                                         \
    OTHER(GlobalGet, Kernel)                                                                                        \
    OTHER(ReadUncached, Kernel)                                                                                     \
    OTHER(ReadTiling, Kernel)                                                                                       \
    OTHER(HostCall, Kernel)                                                                                         \
    OTHER(PrintText, Anywhere)                                                                                      \
    OTHER(PipeClose, Kernel)                                                                                        \
    OTHER(AllocBuffer, Kernel)                                                                                      \
    OTHER(AllocRegion, Kernel)                                                                                      \
    OTHER(AllocStatic, Kernel)                                                                                      \
    OTHER(PipeReset, Kernel)                                                                                        \
    OTHER(PipeOpen, Kernel)                                                                                         \
    OTHER(ServeIfDriven, Kernel)                                                                                    \
    OTHER(TrapCore, Kernel)                                                                                         \
    OTHER(FailAssert, Kernel)                                                                                       \
    OTHER(MatmulMake, Kernel)                                                                                       \
    OTHER(MatmulDrop, Kernel)                                                                                       \
    OTHER(Launch, Host)

namespace evokernel::twin::wire {

enum class Entry : uint16_t {
#define EVK_ID(id, ...) id,
    EVK_ENTRY_CALLS(EVK_ID) EVK_ENTRY_METHODS(EVK_ID) EVK_ENTRY_OTHERS(EVK_ID)
#undef EVK_ID
    Count,
};

}  // namespace evokernel::twin::wire
