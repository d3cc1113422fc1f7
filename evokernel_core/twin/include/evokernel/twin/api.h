// Entry points of the compiled library. The templates of the API are thin wrappers around these.
#pragma once
#include "evokernel/twin/api_table.h"
#include "evokernel/twin/enums.h"
#include "evokernel/twin/language.h"
#include "evokernel/twin/refs.h"

namespace evokernel::twin {

// Element-wise instructions on the vector pipe. Operands beyond those an op has are ignored.
struct VecCall {
    Api op;
    LocalRef dst;
    LocalRef src0;
    LocalRef src1;
    Scalar scalar;
    bool flag = false;  // ShiftRight: round
};
void Vector(const VecCall &call, const Form &form, At at);

// `dst = a + b`: an operator cannot tell where it was called, so the place is that of the last call.
template <typename T> struct Expression {
    Api op;
    LocalRef a;
    LocalRef b;
};
// `dst = a < b`, in the same way.
template <typename T> struct Comparison {
    AscendC::CMPMODE mode;
    LocalRef a;
    LocalRef b;
};
At LastPlace();
void FusedCast(Api op, const LocalRef &dst, const LocalRef &src0, const LocalRef &src1, const Form &form, At at);
void Cast(const LocalRef &dst, const LocalRef &src, AscendC::RoundMode mode, const Form &form, At at);
void Duplicate(const LocalRef &dst, Scalar value, uint64_t pattern, const Form &form, At at);
void CopyVector(const LocalRef &dst, const LocalRef &src, const Form &form, At at);
void Brcb(const LocalRef &dst, const LocalRef &src, int64_t repeats, uint16_t dst_block, uint16_t dst_repeat, At at);
void CreateVecIndex(const LocalRef &dst, Scalar first, Scalar step, const Form &form, const char *name, At at);

void Compare(const LocalRef &dst, const LocalRef &src0, const LocalRef &src1, AscendC::CMPMODE mode,
             const Form &form, At at);
void CompareScalar(const LocalRef &dst, const LocalRef &src, Scalar scalar, AscendC::CMPMODE mode, const Form &form,
                   At at);
void CompareToRegister(const LocalRef &src0, const LocalRef &src1, AscendC::CMPMODE mode, const Form &form, At at);
void Select(const LocalRef &dst, const LocalRef &mask, const LocalRef &src0, const LocalRef *src1, Scalar scalar,
            AscendC::SELMODE mode, const Form &form, At at);
void SetCompareMask(const LocalRef &src, At at);
void GetCompareMask(const LocalRef &dst, At at);
uint64_t GatherMask(const LocalRef &dst, const LocalRef &src, const LocalRef *pattern, uint8_t fixed_pattern,
                    bool counter, uint32_t mask, const AscendC::GatherMaskParams &params, At at);
void Gather(const LocalRef &dst, const LocalRef &src, const LocalRef &offsets, uint32_t base, const Form &form, At at);
void Gatherb(const LocalRef &dst, const LocalRef &src, const LocalRef &offsets, int64_t repeats, uint16_t dst_block,
             uint16_t dst_repeat, At at);
void Transpose16(const LocalRef &dst, const LocalRef &src, At at);
void Sort32(const LocalRef &dst, const LocalRef &score, const LocalRef &index, int64_t repeats, At at);

enum class Reduce : uint8_t { Sum, Max, Min };
void WholeReduce(Reduce op, const LocalRef &dst, const LocalRef &src, const Form &form, int32_t dst_repeat,
                 AscendC::ReduceOrder order, At at);
void BlockReduce(Reduce op, const LocalRef &dst, const LocalRef &src, const Form &form, int32_t dst_repeat, At at);
void PairReduce(Reduce op, const LocalRef &dst, const LocalRef &src, const Form &form, int32_t dst_repeat, At at);
void ReduceAll(Reduce op, const LocalRef &dst, const LocalRef &src, const LocalRef &tmp, const Form &form, bool index,
               At at);
// The sum of all repeats, which LastSum() then reads.
void SumIntoRegister(const LocalRef &src, const Form &form, const char *name, At at);
float LastSum();
void LastMaxMin(float *value, uint32_t *index);

// Mask register.
void SetMaskMode(bool counter);
void SetMaskRegister(uint64_t high, uint64_t low);
void SetMaskLength(int64_t lanes, DType dtype, bool counter);
void SetDeqScale(float scale);

// Moves between global memory and a core.
struct Burst {
    uint32_t count = 1;
    uint32_t length = 0;      // bytes of one block
    uint32_t src_stride = 0;  // bytes from the start of a block to the start of the next
    uint32_t dst_stride = 0;
};
struct Padding {
    bool enabled = false;
    uint32_t left = 0;   // elements
    uint32_t right = 0;  // elements
    uint64_t pattern = 0;
};
void CopyIn(const LocalRef &dst, const GlobalRef &src, const Burst &burst, At at);
void CopyOut(const GlobalRef &dst, const LocalRef &src, const Burst &burst, At at);
void CopyCountIn(const LocalRef &dst, const GlobalRef &src, int64_t count, At at);
void CopyCountOut(const GlobalRef &dst, const LocalRef &src, int64_t count, At at);
void CopyPadIn(const LocalRef &dst, const GlobalRef &src, const AscendC::DataCopyExtParams &params,
               const Padding &padding, At at);
void CopyPadOut(const GlobalRef &dst, const LocalRef &src, const AscendC::DataCopyExtParams &params, At at);
void CopyLocal(const LocalRef &dst, const LocalRef &src, const Burst &burst, const char *name, At at);
void CopyLocalCount(const LocalRef &dst, const LocalRef &src, int64_t count, At at);
void CheckCopyParams(const AscendC::DataCopyParams &params, const char *name, At at);

enum class Atomic : uint8_t { None, Add, Max, Min };
void SetAtomic(Atomic op, DType dtype, At at);

// Scalar access. The returned value is zero in timing mode.
uint64_t LocalGet(const LocalRef &tensor, int64_t index, At at);
void LocalSet(const LocalRef &tensor, int64_t index, uint64_t bits, At at);
uint64_t GlobalGet(const GlobalRef &tensor, int64_t index, At at);
void GlobalSet(const GlobalRef &tensor, int64_t index, uint64_t bits, At at);
void CleanDataCache(const uint8_t *line, At at);  // null: all lines
uint8_t *LocalAddress(const LocalRef &tensor);
// The unified buffer from where a raw pointer points to its end; from its start in timing mode, which has no
// memory. An error for a pointer that is none into it.
LocalRef LocalAt(const volatile void *pointer, DType dtype, const char *api, At at);
void ScalarCycles(double cycles);

// Synchronisation.
void SetFlag(AscendC::HardEvent event, int64_t id, At at);
void WaitFlag(AscendC::HardEvent event, int64_t id, At at);
// An instruction names two pipes between which there is no flag.
void NoSuchFlag(const char *api, At at);
void Barrier(pipe_t pipe, At at);
int8_t AllocEvent(AscendC::HardEvent event, At at);
void ReleaseEvent(AscendC::HardEvent event, int64_t id, At at);
int8_t FetchEvent(AscendC::HardEvent event);

// What a core knows about itself.
int64_t BlockIdx();
int64_t BlockNum();
int64_t SubBlockIdx();
int64_t SubBlockNum();  // vector cores of a block, 1 on a cube core
int64_t TaskRatio();
bool OnCubeCore();
int64_t SystemCycle();
void InitSocState();
uint64_t UsableUbBytes();
uint8_t *SystemWorkspace();
void SetSystemWorkspace(uint8_t *workspace);
uint32_t DTypeBytes(DType dtype);

// Buffers. The live TPipe belongs to a core.
void PipeOpen(void *pipe, At at);
void PipeReset();
void PipeClose(bool wait = true);
uint8_t *PositionBase(AscendC::TPosition position);
void *LivePipe();
LocalRef AllocStatic(AscendC::TPosition position, uint32_t address, uint64_t bytes, At at);
LocalRef AllocBuffer(uint64_t bytes, AscendC::TPosition position, At at);
LocalRef AllocRegion(uint64_t bytes, AscendC::TPosition position, At at);  // to be divided further

}  // namespace evokernel::twin
