// The Matmul object of the API.
#pragma once
#include "evokernel/twin/matmul/object.h"
#include "evokernel/twin/pipe.h"
#include "evokernel/twin/sync.h"

namespace evokernel::twin::matmul {

template <typename Type> constexpr OperandSpec SpecOf()
{
    OperandSpec spec;
    spec.position = Type::pos;
    spec.format = Type::format;
    spec.dtype = kDType<typename Type::T>;
    spec.may_transpose = Type::isTrans;
    spec.layout = Type::layout;
    spec.shared = Type::ibShare;
    spec.sparse = Type::sparse;
    return spec;
}

constexpr const MatmulConfig &ConfigIn(const MatmulConfig &config) { return config; }
constexpr const MatmulConfig &ConfigIn(const MatmulApiStaticTiling &tiling) { return tiling.cfg; }

constexpr MatmulApiStaticTiling FixedIn(const MatmulConfig &) { return MatmulApiStaticTiling{}; }
constexpr MatmulApiStaticTiling FixedIn(const MatmulApiStaticTiling &tiling) { return tiling; }

}  // namespace evokernel::twin::matmul

#define MATMUL_POLICY_DEFAULT_OF(DEFAULT) \
    template <const auto & = MM_CFG, typename...> class MATMUL_POLICY = AscendC::Impl::Detail::DEFAULT

namespace AscendC {

template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE, const auto &MM_CFG = CFG_NORM,
          class MM_CB = MatmulCallBackFunc<nullptr, nullptr, nullptr>, MATMUL_POLICY_DEFAULT_OF(MatmulPolicy)>
class MatmulImpl {
    using Target = twin::matmul::Target;

public:
    using AType = A_TYPE;
    using BType = B_TYPE;
    using CType = C_TYPE;
    using BiasType = BIAS_TYPE;
    using SrcAT = typename A_TYPE::T;
    using SrcBT = typename B_TYPE::T;
    using SrcT = typename A_TYPE::T;
    using DstT = typename C_TYPE::T;
    using BiasT = typename BIAS_TYPE::T;
    using L0cT = typename GetMmDstType<SrcT>::Type;

#ifdef ASCENDC_CUBE_ONLY
    explicit MatmulImpl(bool cube_only = true) : object_(Describe(), cube_only) {}
#else
    explicit MatmulImpl(bool cube_only = false) : object_(Describe(), cube_only) {}
#endif

    void Init(const ::AscendC::tiling::TCubeTiling *cubeTiling, TPipe * = nullptr, EVK_AT) { object_.Init(cubeTiling, at); }
    void SetSubBlockIdx(uint8_t) {}
    uint8_t GetSubBlockIdx() const { return static_cast<uint8_t>(twin::SubBlockIdx()); }

    void SetOrgShape(int orgM, int orgN, int orgK, EVK_AT) { object_.SetOrgShape(orgM, orgN, orgK, orgK, 0, at); }
    void SetOrgShape(int orgM, int orgN, int orgKa, int orgKb, int orgKc = 0, EVK_AT)
    {
        object_.SetOrgShape(orgM, orgN, orgKa, orgKb, orgKc, at);
    }
    void SetSingleShape(int singleM, int singleN, int singleK, EVK_AT)
    {
        object_.SetSingleShape(singleM, singleN, singleK, at);
    }
    void SetTail(int tailM = -1, int tailN = -1, int tailK = -1, EVK_AT) { object_.SetTail(tailM, tailN, tailK, at); }

    void SetTensorA(const GlobalTensor<SrcAT> &gm, bool isTransposeA = false, EVK_AT)
    {
        object_.SetSource(twin::matmul::Side::A, Global(gm.Ref(), isTransposeA), at);
    }
    void SetTensorA(const LocalTensor<SrcAT> &leftMatrix, bool isTransposeA = false, EVK_AT)
    {
        object_.SetSource(twin::matmul::Side::A, Local(leftMatrix.Ref(), isTransposeA), at);
    }
    void SetTensorA(SrcAT aScalar, EVK_AT) { object_.SetSource(twin::matmul::Side::A, Scalar(ToBits(aScalar)), at); }
    void SetTensorB(const GlobalTensor<SrcBT> &gm, bool isTransposeB = false, EVK_AT)
    {
        object_.SetSource(twin::matmul::Side::B, Global(gm.Ref(), isTransposeB), at);
    }
    void SetTensorB(const LocalTensor<SrcBT> &rightMatrix, bool isTransposeB = false, EVK_AT)
    {
        object_.SetSource(twin::matmul::Side::B, Local(rightMatrix.Ref(), isTransposeB), at);
    }
    void SetTensorB(SrcBT bScalar, EVK_AT) { object_.SetSource(twin::matmul::Side::B, Scalar(ToBits(bScalar)), at); }
    void SetBias(const GlobalTensor<BiasT> &biasGlobal, EVK_AT)
    {
        object_.SetSource(twin::matmul::Side::Bias, Global(biasGlobal.Ref(), false), at);
    }
    void SetBias(const LocalTensor<BiasT> &inputBias, EVK_AT)
    {
        object_.SetSource(twin::matmul::Side::Bias, Local(inputBias.Ref(), false), at);
    }
    void ClearBias(EVK_AT) { object_.ClearBias(at); }
    void DisableBias(EVK_AT) { object_.ClearBias(at); }
    void SetSparseIndex(const GlobalTensor<uint8_t> &indexGlobal, EVK_AT)
    {
        object_.SetSparseIndex(indexGlobal.Ref(), at);
    }

    void SetQuantScalar(const uint64_t quantScalar, EVK_AT) { object_.SetQuantScalar(quantScalar, at); }
    void SetQuantVector(const GlobalTensor<uint64_t> &quantTensor, EVK_AT)
    {
        object_.SetQuantVector(quantTensor.Ref(), at);
    }
    void SetQuantVector(const LocalTensor<uint64_t> &quantTensor, EVK_AT)
    {
        object_.SetQuantVector(quantTensor.Ref(), at);
    }

    template <class T> void SetWorkspace(GlobalTensor<T> &addr, EVK_AT) { object_.SetWorkspace(addr.Ref(), at); }
    template <class T> void SetWorkspace(__gm__ const T *addr, int size, EVK_AT)
    {
        GlobalTensor<T> tensor;
        tensor.SetGlobalBuffer(const_cast<__gm__ T *>(addr), static_cast<uint64_t>(size));
        object_.SetWorkspace(tensor.Ref(), at);
    }
    void SetLocalWorkspace(const LocalTensor<uint8_t> &) {}  // of chips whose formats are changed in UB
    void SetUserDefInfo(const uint64_t tilingPtr) { object_.SetUserInfo(tilingPtr); }
    void SetSelfDefineData(const uint64_t dataPtr) { object_.SetCallbackData(dataPtr); }
    void SetHF32(bool enableHF32 = false, int32_t transMode = 0) { object_.SetHalfFloat32(enableHF32, transMode != 0); }
    void SetBatchNum(int32_t batchA, int32_t batchB, EVK_AT) { object_.SetBatch(batchA, batchB, at); }

    template <bool sync = true> bool Iterate(bool enPartialSum = false, EVK_AT)
    {
        return object_.Iterate(sync, enPartialSum, nullptr, at);
    }
    template <bool sync = true, typename T>
    bool Iterate(bool enPartialSum, const LocalTensor<T> &localCmatrix, EVK_AT)
    {
        return object_.Iterate(sync, enPartialSum, &localCmatrix.Ref(), at);
    }

    template <bool sync = true>
    void GetTensorC(const GlobalTensor<DstT> &gm, uint8_t enAtomic = 0, bool enSequentialWrite = false, EVK_AT)
    {
        object_.GetTensorC(sync, To(gm.Ref(), enAtomic, enSequentialWrite), at);
    }
    template <bool sync = true, bool doPad = false>
    void GetTensorC(const LocalTensor<DstT> &c, uint8_t enAtomic = 0, bool enSequentialWrite = false, uint32_t = 0,
                    uint32_t = 0, uint32_t = 0, uint32_t = 0, EVK_AT)
    {
        object_.GetTensorC(sync, To(c.Ref(), enAtomic, enSequentialWrite), at);
    }
    template <bool sync = true>
    void GetTensorC(const GlobalTensor<DstT> &gm, const LocalTensor<DstT> &co2Local, uint8_t enAtomic = 0,
                    bool enSequentialWrite = false, EVK_AT)
    {
        Target target = To(gm.Ref(), enAtomic, enSequentialWrite);
        target.to_local = true;
        target.local = co2Local.Ref();
        object_.GetTensorC(sync, target, at);
    }
    template <bool sync = true> GlobalTensor<DstT> GetTensorC(uint8_t = 0, bool = false, EVK_AT)
    {
        return Tensor(object_.GetWorkspaceC(at));
    }
    void AsyncGetTensorC(const LocalTensor<DstT> &c, EVK_AT) { object_.GetTensorC(false, To(c.Ref(), 0, false), at); }
    void WaitGetTensorC(EVK_AT)
    {
        const TEventID id = GetTPipePtr()->FetchEventID(HardEvent::MTE2_V);
        twin::SetFlag(HardEvent::MTE2_V, id, at);
        twin::WaitFlag(HardEvent::MTE2_V, id, at);
    }

    template <bool sync = true>
    void IterateAll(const GlobalTensor<DstT> &gm, uint8_t enAtomic = 0, bool enSequentialWrite = false,
                    bool waitIterateAll = false, bool fakeMsg = false, EVK_AT)
    {
        object_.IterateAll(sync, To(gm.Ref(), enAtomic, enSequentialWrite), waitIterateAll, fakeMsg, at);
    }
    template <bool sync = true> void IterateAll(const LocalTensor<DstT> &ubCmatrix, uint8_t enAtomic = 0, EVK_AT)
    {
        object_.IterateAll(sync, To(ubCmatrix.Ref(), enAtomic, false), false, false, at);
    }
    void WaitIterateAll(EVK_AT) { object_.Wait(at); }
    void WaitIterateBatch(EVK_AT) { object_.Wait(at); }

    template <bool sync = true, bool waitIterateBatch = false>
    void IterateBatch(const GlobalTensor<DstT> &gm, uint32_t batchA, uint32_t batchB, bool enSequentialWrite,
                      const uint32_t matrixStrideA = 0, const uint32_t matrixStrideB = 0,
                      const uint32_t matrixStrideC = 0, const bool enPartialSum = false, const uint8_t enAtomic = 0,
                      EVK_AT)
    {
        (void)enSequentialWrite;
        object_.IterateBatch(sync, To(gm.Ref(), enAtomic, false),
                             {batchA, batchB, matrixStrideA, matrixStrideB, matrixStrideC, enPartialSum}, at);
    }
    template <bool sync = true>
    void IterateBatch(const LocalTensor<DstT> &ubCmatrix, uint32_t batchA, uint32_t batchB, bool,
                      const uint32_t matrixStrideA = 0, const uint32_t matrixStrideB = 0,
                      const uint32_t matrixStrideC = 0, const bool enPartialSum = false, const uint8_t enAtomic = 0,
                      EVK_AT)
    {
        object_.IterateBatch(sync, To(ubCmatrix.Ref(), enAtomic, true),
                             {batchA, batchB, matrixStrideA, matrixStrideB, matrixStrideC, enPartialSum}, at);
    }
    // On cube cores: the batch counts come from SetBatchNum.
    template <typename Flag, std::enable_if_t<std::is_same_v<Flag, bool>, int> = 0>
    void IterateBatch(const GlobalTensor<DstT> &gm, Flag enPartialSum, uint8_t enAtomic, bool,
                      const uint32_t matrixStrideA = 0, const uint32_t matrixStrideB = 0,
                      const uint32_t matrixStrideC = 0, EVK_AT)
    {
        object_.IterateBatch(To(gm.Ref(), enAtomic, false),
                             {1, 1, matrixStrideA, matrixStrideB, matrixStrideC, enPartialSum}, at);
    }
    template <bool sync = true, bool waitIterateBatch = false>
    void IterateNBatch(const uint32_t batchLoop, uint32_t batchA, uint32_t batchB, bool enSequentialWrite,
                       const uint32_t matrixStrideA = 0, const uint32_t matrixStrideB = 0,
                       const uint32_t matrixStrideC = 0, EVK_AT)
    {
        object_.IterateNBatch(sync, batchLoop, {batchA, batchB, matrixStrideA, matrixStrideB, matrixStrideC, false},
                              enSequentialWrite, at);
    }
    template <bool sync = true> GlobalTensor<DstT> GetBatchTensorC(uint32_t batchA, uint32_t batchB, bool = false, EVK_AT)
    {
        return Tensor(object_.GetBatchC(batchA, batchB, at));
    }
    template <bool sync = true>
    void GetBatchTensorC(const LocalTensor<DstT> &c, uint32_t batchA, uint32_t batchB, bool = false, EVK_AT)
    {
        object_.GetBatchC(c.Ref(), batchA, batchB, at);
    }
    template <bool sync = true> GlobalTensor<DstT> GetBatchC(uint32_t batchA, uint32_t batchB, bool = false, EVK_AT)
    {
        return Tensor(object_.GetBatchC(batchA, batchB, at));
    }
    template <bool sync = true>
    void GetBatchC(const LocalTensor<DstT> &c, uint32_t batchA, uint32_t batchB, bool = false, EVK_AT)
    {
        object_.GetBatchC(c.Ref(), batchA, batchB, at);
    }

    MatrixOffset GetOffsetC() { return object_.Offset(); }
    void End(EVK_AT) { object_.End(at); }

    // For REGIST_MATMUL_OBJ.
    void Register(twin::At at) { object_.Register(at); }
    static twin::matmul::Spec Describe()
    {
        twin::matmul::Spec spec;
        spec.a = twin::matmul::SpecOf<A_TYPE>();
        spec.b = twin::matmul::SpecOf<B_TYPE>();
        spec.c = twin::matmul::SpecOf<C_TYPE>();
        spec.bias = twin::matmul::SpecOf<BIAS_TYPE>();
        spec.config = twin::matmul::ConfigIn(MM_CFG);
        spec.fixed = twin::matmul::FixedIn(MM_CFG);
        spec.policy = MATMUL_POLICY<MM_CFG>::kind;
        spec.copy_out = MM_CB::DataCopyOut;
        spec.copy_a = MM_CB::CopyA1;
        spec.copy_b = MM_CB::CopyB1;
        return spec;
    }

private:
    static twin::matmul::Source Global(const twin::GlobalRef &ref, bool transposed)
    {
        twin::matmul::Source source;
        source.kind = twin::matmul::Source::Kind::Global;
        source.global = ref;
        source.transposed = transposed;
        return source;
    }
    static twin::matmul::Source Local(const twin::LocalRef &ref, bool transposed)
    {
        twin::matmul::Source source;
        source.kind = twin::matmul::Source::Kind::Local;
        source.local = ref;
        source.transposed = transposed;
        return source;
    }
    static twin::matmul::Source Scalar(uint64_t bits)
    {
        twin::matmul::Source source;
        source.kind = twin::matmul::Source::Kind::Scalar;
        source.bits = bits;
        return source;
    }
    static Target To(const twin::GlobalRef &ref, uint8_t atomic, bool sequential)
    {
        Target target;
        target.to_global = true;
        target.global = ref;
        target.atomic = atomic;
        target.sequential = sequential;
        return target;
    }
    static Target To(const twin::LocalRef &ref, uint8_t atomic, bool sequential)
    {
        Target target;
        target.to_local = true;
        target.local = ref;
        target.atomic = atomic;
        target.sequential = sequential;
        return target;
    }
    static GlobalTensor<DstT> Tensor(const twin::GlobalRef &ref)
    {
        GlobalTensor<DstT> tensor;
        tensor.SetGlobalBuffer(reinterpret_cast<__gm__ DstT *>(ref.address), ref.bytes / sizeof(DstT));
        return tensor;
    }

    twin::matmul::Object object_;
};

template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE, const auto &MM_CFG = CFG_NORM,
          class MM_CB = MatmulCallBackFunc<nullptr, nullptr, nullptr>, MATMUL_POLICY_DEFAULT_OF(MatmulPolicy)>
class Matmul : public MatmulImpl<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, MATMUL_POLICY> {
    using MatmulImpl<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, MATMUL_POLICY>::MatmulImpl;
};

template <class A_TYPE, class B_TYPE, class C_TYPE, class BIAS_TYPE = C_TYPE, const auto &MM_CFG = CFG_NORM,
          class MM_CB = MatmulCallBackFunc<nullptr, nullptr, nullptr>, MATMUL_POLICY_DEFAULT_OF(MatmulPolicy)>
using MatmulClient = Matmul<A_TYPE, B_TYPE, C_TYPE, BIAS_TYPE, MM_CFG, MM_CB, MATMUL_POLICY>;

}  // namespace AscendC

namespace evokernel::twin::matmul {

inline void Regist(At) {}
template <typename Mm, typename Next, typename... Rest> void RegistWith(At at, Mm &mm, Next &&next, Rest &&...rest);

// Objects, each followed by its tiling or not.
template <typename Mm, typename... Rest> void Regist(At at, Mm &mm, Rest &&...rest)
{
    if constexpr (sizeof...(Rest) > 0) {
        RegistWith(at, mm, std::forward<Rest>(rest)...);
    } else {
        mm.Register(at);
    }
}

template <typename Mm, typename Next, typename... Rest> void RegistWith(At at, Mm &mm, Next &&next, Rest &&...rest)
{
    mm.Register(at);
    // A pointer may be __restrict, which std::is_pointer does not take for one.
    if constexpr (std::is_convertible_v<Next, const void *>) {
        mm.Init(reinterpret_cast<const ::AscendC::tiling::TCubeTiling *>(static_cast<const void *>(next)), nullptr, at);
        Regist(at, std::forward<Rest>(rest)...);
    } else {
        Regist(at, next, std::forward<Rest>(rest)...);
    }
}

template <typename Mm, typename... Rest> void RegistAll(bool cube_only, At at, Mm &mm, Rest &&...rest)
{
    Regist(at, mm, std::forward<Rest>(rest)...);
    ServeIfDriven(cube_only, Mm::Describe(), at);
}

}  // namespace evokernel::twin::matmul

#ifdef ASCENDC_CUBE_ONLY
#define EVK_CUBE_ONLY true
#else
#define EVK_CUBE_ONLY false
#endif

#define REGIST_MATMUL_OBJ(tpipe, workspace, ...)                                                     \
    do {                                                                                             \
        static_cast<void>(tpipe);                                                                    \
        static_cast<void>(workspace);                                                                \
        ::evokernel::twin::matmul::RegistAll(EVK_CUBE_ONLY, ::evokernel::twin::At::Here(), __VA_ARGS__); \
    } while (false)

namespace matmul {

using namespace AscendC;

}  // namespace matmul

using AscendC::GetSysWorkSpacePtr;
using AscendC::GetTPipePtr;
