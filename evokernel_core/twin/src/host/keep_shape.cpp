// Shapes that kernels note on tensors.
#include <cstring>
#include <deque>

#include "evokernel/twin/shape.h"

namespace evokernel::twin {

namespace {

bool SameShape(const AscendC::ShapeInfo &a, const AscendC::ShapeInfo &b)
{
    return a.shapeDim == b.shapeDim && a.originalShapeDim == b.originalShapeDim && a.dataFormat == b.dataFormat &&
           std::memcmp(a.shape, b.shape, sizeof(a.shape)) == 0 &&
           std::memcmp(a.originalShape, b.originalShape, sizeof(a.originalShape)) == 0;
}

}  // namespace

const AscendC::ShapeInfo *KeepShape(const AscendC::ShapeInfo &shape)
{
    static std::deque<AscendC::ShapeInfo> kept;
    for (const AscendC::ShapeInfo &known : kept) {
        if (SameShape(known, shape)) {
            return &known;
        }
    }
    kept.push_back(shape);
    return &kept.back();
}

}  // namespace evokernel::twin
