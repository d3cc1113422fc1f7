// The Matmul object without its types: the templates of the API are thin wrappers around it.
#pragma once
#include <memory>

#include "evokernel/twin/api.h"
#include "evokernel/twin/matmul/cube_tiling.h"
#include "evokernel/twin/matmul/static_tiling.h"
#include "evokernel/twin/matmul/types.h"

namespace evokernel::twin::matmul {

struct OperandSpec {
    AscendC::TPosition position = AscendC::TPosition::GM;
    CubeFormat format = CubeFormat::ND;
    DType dtype = DType::F16;
    bool may_transpose = false;
    LayoutMode layout = LayoutMode::NONE;
    bool shared = false;
    bool sparse = false;
};

// What the template arguments say.
struct Spec {
    OperandSpec a, b, c, bias;
    MatmulConfig config;
    MatmulApiStaticTiling fixed;  // -1 where the tiling of run time holds
    AscendC::Impl::Detail::PolicyKind policy = AscendC::Impl::Detail::PolicyKind::Default;
    AscendC::CopyOutCallback copy_out = nullptr;
    AscendC::CopyInCallback copy_a = nullptr;
    AscendC::CopyInCallback copy_b = nullptr;
};

// Where A, B or the bias come from.
struct Source {
    enum class Kind : uint8_t { None, Global, Local, Scalar };
    Kind kind = Kind::None;
    GlobalRef global;
    LocalRef local;
    uint64_t bits = 0;  // of a scalar
    bool transposed = false;
};

// Where C goes: one or both of these.
struct Target {
    bool to_global = false;
    bool to_local = false;
    GlobalRef global;
    LocalRef local;
    uint8_t atomic = 0;
    bool sequential = false;
};

struct BatchCall {
    uint32_t batch_a = 1;
    uint32_t batch_b = 1;
    uint32_t stride_a = 0;  // elements, 0: dense
    uint32_t stride_b = 0;
    uint32_t stride_c = 0;
    bool accumulate = false;
};

enum class Side : uint8_t { A, B, Bias };

class ObjectState;

class Object {
public:
    Object(const Spec &spec, bool cube_only);
    ~Object();
    Object(const Object &) = delete;
    Object &operator=(const Object &) = delete;

    void Register(At at);
    void Init(const ::AscendC::tiling::TCubeTiling *tiling, At at);
    void SetOrgShape(int m, int n, int ka, int kb, int kc, At at);
    void SetSingleShape(int m, int n, int k, At at);
    void SetTail(int m, int n, int k, At at);
    void SetSource(Side side, const Source &source, At at);
    void ClearBias(At at);
    void SetQuantScalar(uint64_t bits, At at);
    void SetQuantVector(const GlobalRef &tensor, At at);
    void SetQuantVector(const LocalRef &tensor, At at);
    void SetSparseIndex(const GlobalRef &tensor, At at);
    void SetWorkspace(const GlobalRef &tensor, At at);
    void SetUserInfo(uint64_t bits);
    void SetCallbackData(uint64_t bits);
    void SetHalfFloat32(bool enabled, bool to_zero);
    void SetBatch(int32_t a, int32_t b, At at);

    bool Iterate(bool sync, bool accumulate, const LocalRef *co1, At at);
    void GetTensorC(bool sync, const Target &target, At at);
    GlobalRef GetWorkspaceC(At at);
    void IterateAll(bool sync, const Target &target, bool wait, bool fake, At at);
    void IterateBatch(bool sync, const Target &target, const BatchCall &call, At at);
    void IterateBatch(const Target &target, BatchCall call, At at);  // batches from SetBatchNum
    void IterateNBatch(bool sync, uint32_t loops, const BatchCall &call, bool sequential, At at);
    GlobalRef GetBatchC(uint32_t batch_a, uint32_t batch_b, At at);
    void GetBatchC(const LocalRef &target, uint32_t batch_a, uint32_t batch_b, At at);
    void Wait(At at);
    void End(At at);
    AscendC::MatrixOffset Offset() const;

private:
    std::shared_ptr<ObjectState> state_;
};

// A cube core of a mixed launch whose Matmul objects are driven by its vector cores serves them from here on.
void ServeIfDriven(bool cube_only, const Spec &spec, At at);

}  // namespace evokernel::twin::matmul
