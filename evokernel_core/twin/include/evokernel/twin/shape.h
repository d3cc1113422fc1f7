// Formats of a tensor, and the shape that a kernel may note on one.
#pragma once
#include <cstdint>

namespace AscendC {

enum class DataFormat : uint8_t { ND = 0, NZ, NCHW, NC1HWC0, NHWC, NCDHW, NDC1HWC0, FRACTAL_Z_3D };

constexpr int K_MAX_DIM = 8;

struct ShapeInfo {
    ShapeInfo() = default;
    ShapeInfo(const uint8_t dims, const uint32_t sizes[], const uint8_t original_dims, const uint32_t original_sizes[],
              const DataFormat format)
        : shapeDim(dims), originalShapeDim(original_dims), dataFormat(format)
    {
        Copy(dims, sizes, shape);
        Copy(original_dims, original_sizes, originalShape);
    }
    ShapeInfo(const uint8_t dims, const uint32_t sizes[], const DataFormat format)
        : ShapeInfo(dims, sizes, dims, sizes, format)
    {
    }
    ShapeInfo(const uint8_t dims, const uint32_t sizes[]) : ShapeInfo(dims, sizes, DataFormat::ND) {}

    uint8_t shapeDim = 0;
    uint8_t originalShapeDim = 0;
    uint32_t shape[K_MAX_DIM] = {};
    uint32_t originalShape[K_MAX_DIM] = {};
    DataFormat dataFormat = DataFormat::ND;

private:
    static void Copy(uint8_t dims, const uint32_t *from, uint32_t *to)
    {
        for (int i = 0; i < dims && i < K_MAX_DIM; ++i) {
            to[i] = from[i];
        }
    }
};

inline int GetShapeSize(const ShapeInfo &info)
{
    int size = 1;
    for (int i = 0; i < info.shapeDim && i < K_MAX_DIM; ++i) {
        size *= static_cast<int>(info.shape[i]);
    }
    return size;
}

}  // namespace AscendC

namespace evokernel::twin {

// One lasting copy of each distinct shape, so that a tensor carries an address only.
const AscendC::ShapeInfo *KeepShape(const AscendC::ShapeInfo &shape);

}  // namespace evokernel::twin
