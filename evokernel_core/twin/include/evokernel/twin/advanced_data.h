// Entry points of the library for high-level functions that reduce, broadcast, filter and quantise.
#pragma once
#include "evokernel/twin/refs.h"

namespace evokernel::twin {

enum class RowOp : uint8_t { Sum, Mean, Max, Min, Prod, Any, All };

// Sum and Mean of `rows` rows at a distance of `inner`. `accumulate`: the type that is computed in.
void RowReduce(RowOp op, const LocalRef &dst, const LocalRef &src, const LocalRef *temporary, DType accumulate,
               uint32_t rows, uint32_t inner, uint32_t n, At at);
// ReduceXxx with a pattern: AR (rows kept) or RA. The inner axis is padded to 32 bytes.
void PatternReduce(RowOp op, bool rows_kept, const LocalRef &dst, const LocalRef &src, const LocalRef *temporary,
                   const uint32_t *shape, bool padded, At at);
void CumulativeSum(const LocalRef &dst, const LocalRef *last_row, const LocalRef &src, const LocalRef *temporary,
                   uint32_t outer, uint32_t inner, bool along_rows, At at);
void XorSum(const LocalRef &dst, const LocalRef &a, const LocalRef &b, const LocalRef *temporary, uint32_t count,
            At at);
void BroadcastTensor(const LocalRef &dst, const LocalRef &src, const LocalRef *temporary, const uint32_t *dst_shape,
                     const uint32_t *src_shape, int dims, At at);
// The form with a fixed number of dimensions (1 or 2) and axis.
void BroadcastAxis(const LocalRef &dst, const LocalRef &src, const LocalRef *temporary, const uint32_t *dst_shape,
                   const uint32_t *src_shape, int dims, int axis, At at);

struct FilterShape {
    uint32_t rows;
    uint32_t columns;
    uint32_t mask_columns;
};
void DropElements(const LocalRef &dst, const LocalRef &src, const LocalRef &mask, const LocalRef *temporary,
                  float keep, const FilterShape &shape, uint32_t mode, At at);
// `taken`: the element is that of `src` where (mask != 0) == taken, else the scalar.
void SelectBytes(const LocalRef &dst, const LocalRef &src, Scalar scalar, bool taken, const LocalRef &mask,
                 const LocalRef &temporary, const FilterShape &shape, bool reuse_mask, At at);

// dst = scale * src + offset, rounded to int8. Null tensors: the scalars. `period`: elements of the tensors.
struct QuantCall {
    LocalRef dst;
    LocalRef src;
    const LocalRef *scale = nullptr;
    const LocalRef *offset = nullptr;
    float scale_value = 1;
    float offset_value = 0;
    const LocalRef *temporary = nullptr;
    uint32_t period = 0;
    uint32_t count = 0;
};
void Quantise(const QuantCall &call, At at);

struct DequantCall {
    LocalRef dst;
    LocalRef src;
    const LocalRef *scale = nullptr;
    float scale_value = 1;
    DType scale_type = DType::F32;
    const LocalRef *temporary = nullptr;
    uint32_t m = 0;
    uint32_t n = 0;
    uint32_t count = 0;
    bool single_row = true;
};
void Dequantise(const DequantCall &call, At at);

// dst[i][j] = scale * (src[i][j] + offset); `k` of src as [k, n] or, transposed, [n, k]. Null: the scalars.
struct AntiQuantCall {
    LocalRef dst;
    LocalRef src;
    const LocalRef *scale = nullptr;
    const LocalRef *offset = nullptr;
    float scale_value = 1;
    float offset_value = 0;
    const LocalRef *temporary = nullptr;
    uint32_t k = 0;
    uint32_t height = 0;  // of scale; 0: not told
    uint32_t width = 0;
    bool transposed = false;
};
void AntiQuantise(const AntiQuantCall &call, At at);

// Least bytes of the temporaries.
uint64_t RowReduceTemporary(uint64_t n, uint32_t type_size);
uint64_t PatternTemporary(RowOp op, uint64_t rows, uint64_t columns, uint32_t type_size, bool rows_kept, bool reuse);
uint64_t CumulativeTemporary(uint64_t outer, uint64_t inner, uint32_t type_size, bool along_rows);
uint64_t BroadcastTemporary(uint64_t columns, uint32_t type_size);
constexpr uint64_t FilterTemporary() { return 256; }  // one repeat at a time
uint64_t SelectTemporary(uint64_t columns);
uint64_t QuantTemporary(uint32_t type_size);
uint64_t DequantTemporary(uint64_t columns);
uint64_t AntiQuantTemporary(uint64_t columns);

}  // namespace evokernel::twin
