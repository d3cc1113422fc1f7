// Entry points of the compiled library: sorting, transposing, padding, dequantization and registers.
#pragma once
#include "evokernel/twin/api.h"

namespace evokernel::twin {

// Sorted runs of (score, index) pairs of 8 bytes.
struct MergePlan {
    LocalRef runs[4];
    uint16_t lengths[4] = {};  // pairs
    uint16_t valid = 0;        // bit i: run i takes part
    uint32_t repeats = 1;
    bool suspend = false;      // stop as soon as one run is used up
};
void MergeSorted(const LocalRef &dst, const MergePlan &plan, At at);
void MergeResult(uint16_t *taken, At at);
void SortAll(const LocalRef &dst, const LocalRef &score, const LocalRef &index, const LocalRef &tmp, int64_t repeats,
             bool full, At at);

struct TopKCall {
    LocalRef values;
    LocalRef indices;
    LocalRef src;
    LocalRef src_index;
    LocalRef finish;
    const LocalRef *tmp = nullptr;  // null: the framework's own space
    bool given_index = false;
    bool has_finish = false;
    bool small = false;
    bool largest = true;
    int32_t k = 0;
    int32_t rows = 1;
    int32_t inner = 0;
    int32_t n = 0;
    uint32_t tmp_bytes = 0;  // what the tiling says is needed
};
void TopKRows(const TopKCall &call, At at);

struct BlockTranspose {
    bool dst_high = false;
    bool src_high = false;
    uint8_t repeats = 1;
    uint16_t dst_repeat = 0;
    uint16_t src_repeat = 0;
};
void TransposeBlocks(const LocalRef *dst, const LocalRef *src, const BlockTranspose &params, At at);
// A tensor at an address that GetPhyAddr gave.
void SetBlockAddresses(uint32_t reg, const uint64_t *addresses);
void TransposeRegisters(uint32_t dst, uint32_t src, DType dtype, const BlockTranspose &params, const char *api, At at);
LocalRef LocalAt(uint64_t address, DType dtype, const char *api, At at);
void LocalWords(const LocalRef &list, uint64_t *words, uint32_t count, const char *api, At at);

void UnknownTranspose(uint32_t type, At at);
enum class Reshape : uint8_t { Nd2Nd, Nchw2Nhwc, Nhwc2Nchw };
void TransposeImage(Reshape kind, const LocalRef &dst, const LocalRef &src, const LocalRef &tmp, const uint32_t *nchw,
                    At at);
void TransposeLayout(uint32_t scenario, const LocalRef &dst, const LocalRef &src, const LocalRef *tmp,
                     uint32_t tmp_bytes, const uint32_t *shape, At at);
enum class Fractal : uint8_t { ToNdc1hwc0, FromNdc1hwc0, ToZ3d, FromZ3d };
uint64_t FractalTmpElements(Fractal kind, const uint32_t *ncdhw);
void TransposeFractal(Fractal kind, const LocalRef &dst, const LocalRef &src, const LocalRef *tmp,
                      const uint32_t *ncdhw, At at);

void PadRows(const LocalRef &dst, const LocalRef &src, const LocalRef *tmp, const uint32_t *shape, uint32_t left,
             uint32_t right, uint64_t pattern, At at);
void UnPadRows(const LocalRef &dst, const LocalRef &src, const LocalRef *tmp, const uint32_t *shape, uint32_t right,
               At at);

// What SetDeqScale left for the dequantizing instructions.
struct Dequant {
    bool vector = false;
    bool half_block = true;
};
void Dequantize(const LocalRef &dst, const LocalRef &src, const Dequant &how, const Form &form, At at);
void AddDequantize(const LocalRef &dst, const LocalRef &src0, const LocalRef &src1, const Form &form, At at);
void SetDequant(float scale, int16_t offset, bool is_signed);
void SetDequantVector(const LocalRef &table, const float *scales, const int16_t *offsets, const bool *is_signed, At at);

// Slices: start, end, gap, piece and size of each dimension, the fastest first.
void CopySlices(const LocalRef &local, const GlobalRef &global, const uint32_t *local_slices,
                const uint32_t *global_slices, uint32_t dims, bool in, At at);
struct FractalRows {
    uint32_t count, rows, columns, src_matrix, src_column, dst_row, dst_matrix;
};
void CopyFractalsOut(const GlobalRef &dst, const LocalRef &src, const FractalRows &how, At at);

void FillGlobal(const GlobalRef &dst, uint64_t count, uint64_t pattern, const char *name, At at);

// Registers.
void SetControl(int first, int last, int64_t value, At at);
int64_t GetControl(int first, int last);
void SetSaturation(bool floats, bool enabled);
bool GetSaturation(bool floats);
void SetPadPattern(uint64_t pattern);
void SetAtomicDType(DType dtype, At at);
void GetAtomic(Atomic *op, DType *dtype);
void PreloadLine(const GlobalRef &tensor, int64_t offset, At at);
uint64_t ReadUncached(const void *address, uint32_t width, At at);
void WriteUncached(void *address, uint64_t bits, uint32_t width, At at);
uint64_t GlobalWord(const uint64_t *address, At at);
void CheckTensorList(uint32_t length, uint32_t count, uint64_t found_length, uint32_t found_count, At at);

}  // namespace evokernel::twin
