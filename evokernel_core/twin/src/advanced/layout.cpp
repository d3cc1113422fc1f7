// The high-level changes of layout: Transpose with its scenarios, and TransData.
#include <cstring>
#include <vector>

#include "evokernel/twin/api_vector.h"
#include "vector/walk.h"

namespace evokernel::twin {

namespace {

constexpr uint32_t kSide = 16;  // of a fractal

uint32_t RoundUp(uint32_t value) { return (value + kSide - 1) / kSide * kSide; }

// Index of (row, column) of a matrix in NZ: columns of fractals, rows inside. Heights are whole fractals.
uint64_t NzIndex(uint32_t row, uint32_t column, uint32_t rows)
{
    return (uint64_t{column / kSide} * (rows / kSide) + row / kSide) * kSide * kSide + row % kSide * kSide +
           column % kSide;
}

// [B, N, S, D] with D = H / N, as every scenario but the plain one names its shape.
struct Heads {
    uint32_t b, n, s, d;

    uint32_t Wide() const { return RoundUp(d); }   // D in whole fractals
    uint32_t H() const { return n * d; }
};

struct Position {
    uint32_t b, n, s, d;
};

// Elements of one image [N, S, D] or [S, H] in the padded layouts.
uint64_t HeadNz(const Heads &shape, const Position &p)
{
    const uint64_t head = uint64_t{shape.Wide()} * RoundUp(shape.s);
    return (uint64_t{p.b} * shape.n + p.n) * head + NzIndex(p.s, p.d, RoundUp(shape.s));
}
uint64_t MergedNz(const Heads &shape, const Position &p)
{
    return uint64_t{p.b} * RoundUp(shape.H()) * RoundUp(shape.s) + NzIndex(p.s, p.n * shape.d + p.d, RoundUp(shape.s));
}
uint64_t SwappedNd(const Heads &shape, const Position &p)
{
    return ((uint64_t{p.b} * shape.s + p.s) * shape.n + p.n) * shape.d + p.d;
}
uint64_t SwappedNz(const Heads &shape, const Position &p)
{
    const uint64_t step = uint64_t{shape.Wide()} * RoundUp(shape.n);
    return (uint64_t{p.b} * shape.s + p.s) * step + NzIndex(p.n, p.d, RoundUp(shape.n));
}
uint64_t HeadNd(const Heads &shape, const Position &p)
{
    return ((uint64_t{p.b} * shape.n + p.n) * shape.s + p.s) * shape.Wide() + p.d;
}
uint64_t MergedNd(const Heads &shape, const Position &p)
{
    return (uint64_t{p.b} * shape.s + p.s) * RoundUp(shape.H()) + p.n * shape.d + p.d;
}

using Index = uint64_t (*)(const Heads &, const Position &);
struct Scenario {
    Index from;
    Index to;
};
constexpr Scenario kScenarios[] = {
    {HeadNz, SwappedNd}, {HeadNz, SwappedNz}, {MergedNz, HeadNz},
    {MergedNz, HeadNd},  {HeadNz, MergedNd},  {HeadNz, MergedNz},
};

struct Moved {
    std::vector<uint64_t> from;
    std::vector<uint64_t> to;
    uint64_t from_end = 0;
    uint64_t to_end = 0;

    void Add(uint64_t source, uint64_t target)
    {
        from.push_back(source);
        to.push_back(target);
        from_end = source + 1 > from_end ? source + 1 : from_end;
        to_end = target + 1 > to_end ? target + 1 : to_end;
    }
};

void Apply(const Moved &moved, const LocalRef &dst, const LocalRef &src, const char *api, At at)
{
    const uint32_t width = DTypeBytes(src.dtype);
    Core &core = TheCore();
    if (LocalRange(src, moved.from_end * width, 32, false, api, "src", at) == nullptr ||
        LocalRange(dst, moved.to_end * width, 32, true, api, "dst", at) == nullptr) {
        return;
    }
    if (dst.address < src.address + moved.from_end * width && src.address < dst.address + moved.to_end * width) {
        ReportError("overlap", at, "%s has overlapping operands at bytes %u and %u of UB; give dst a place of its own.",
                    api, dst.address, src.address);
        return;
    }
    for (size_t i = 0; i < moved.from.size(); ++i) {
        const uint64_t from = src.address + moved.from[i] * width;
        const uint64_t to = dst.address + moved.to[i] * width;
        std::memcpy(core.ub + to, core.ub + from, width);
        std::memcpy(core.undefined + to, core.undefined + from, width);
    }
}

bool TypeKnown(const LocalRef &src, bool four_bytes, bool brain, const char *api, At at)
{
    const uint32_t width = DTypeBytes(src.dtype);
    if ((width == 2 && (brain || src.dtype != DType::BF16)) || (width == 4 && four_bytes)) {
        return true;
    }
    ReportError("dtype-unsupported", at, "%s does not support %s on this chip.", api, DTypeName(src.dtype));
    return false;
}

bool TmpFits(const LocalRef *tmp, uint64_t needed, const char *api, const char *source, At at)
{
    if (tmp == nullptr || tmp->address + needed <= tmp->limit) {
        return true;
    }
    ReportError("temp-buffer", at, "%s needs %llu bytes of temporary space, but gets %u; take the size from %s.", api,
                static_cast<unsigned long long>(needed), tmp->limit - tmp->address, source);
    return false;
}

Moved PlainTranspose(uint32_t height, uint32_t width)
{
    Moved moved;
    for (uint32_t r = 0; r < height; ++r) {
        for (uint32_t c = 0; c < width; ++c) {
            moved.Add(uint64_t{r} * width + c, uint64_t{c} * height + r);
        }
    }
    return moved;
}

}  // namespace

void TransposeLayout(uint32_t scenario, const LocalRef &dst, const LocalRef &src, const LocalRef *tmp,
                     uint32_t tmp_bytes, const uint32_t *shape, At at)
{
    constexpr uint32_t plain = 7;
    if (scenario < 1 || scenario > plain) {
        ReportError("param-limit", at, "Transpose has the scenarios 1 to 7 on this chip, not %u.", scenario);
        return;
    }
    uint64_t elements = 1;
    for (int i = 0; i < (scenario == plain ? 2 : 4); ++i) {
        elements *= shape[i];
    }
    if (elements == 0) {
        return;
    }
    const uint32_t width = DTypeBytes(src.dtype);
    const double pass = static_cast<double>((elements * width + kRepeatBytes - 1) / kRepeatBytes);
    for (int i = 0; i < (scenario == plain ? 1 : scenario <= 2 ? 2 : 3); ++i) {
        RunVector("Transpose", pass, at);
    }
    if (TheCore().timing || !TypeKnown(src, true, false, "Transpose", at) ||
        !TmpFits(tmp, tmp_bytes, "Transpose", "GetTransposeMaxMinTmpSize", at)) {
        return;
    }
    if (scenario == plain) {
        if (shape[0] % kSide != 0 || shape[1] % kSide != 0) {
            ReportError("alignment", at, "Transpose of a matrix needs sides of a multiple of 16, not %u and %u.",
                        shape[0], shape[1]);
            return;
        }
        Apply(PlainTranspose(shape[0], shape[1]), dst, src, "Transpose", at);
        return;
    }
    const Heads heads{shape[0], shape[1], shape[2], shape[3]};
    Moved moved;
    for (Position p{0, 0, 0, 0}; p.b < heads.b; ++p.b) {
        for (p.n = 0; p.n < heads.n; ++p.n) {
            for (p.s = 0; p.s < heads.s; ++p.s) {
                for (p.d = 0; p.d < heads.d; ++p.d) {
                    moved.Add(kScenarios[scenario - 1].from(heads, p), kScenarios[scenario - 1].to(heads, p));
                }
            }
        }
    }
    Apply(moved, dst, src, "Transpose", at);
}

namespace {

// [N, C, D, H, W]; H and W count as one axis whose rows start on 32 bytes in the plain layout.
struct Volume {
    uint32_t n, c, d, area;

    uint64_t Plain(uint32_t in, uint32_t ic, uint32_t id, uint32_t i) const
    {
        return ((uint64_t{in} * c + ic) * d + id) * RoundUp(area) + i;
    }
    uint64_t Blocks(uint32_t in, uint32_t ic, uint32_t id, uint32_t i) const
    {
        const uint32_t c1 = RoundUp(c) / kSide;
        return (((uint64_t{in} * d + id) * c1 + ic / kSide) * area + i) * kSide + ic % kSide;
    }
    uint64_t Fractals(uint32_t in, uint32_t ic, uint32_t id, uint32_t i) const
    {
        const uint32_t c1 = RoundUp(c) / kSide;
        const uint32_t n1 = RoundUp(n) / kSide;
        const uint64_t fractal = ((uint64_t{id} * c1 + ic / kSide) * area + i) * n1 + in / kSide;
        return (fractal * kSide + in % kSide) * kSide + ic % kSide;
    }
};

// Rounded-up channels and batches of the blocked layouts hold zeros.
void ClearBlocks(const LocalRef &dst, uint64_t elements, const char *api, At at)
{
    const uint32_t width = DTypeBytes(dst.dtype);
    uint8_t *to = LocalRange(dst, elements * width, 32, true, api, "dst", at);
    if (to != nullptr) {
        std::memset(to, 0, elements * width);
        MarkDefined(dst.address, elements * width);
    }
}

}  // namespace

// As the public TransData sample sizes its buffer: rows of whole blocks, and one image of fractals.
uint64_t FractalTmpElements(Fractal kind, const uint32_t *ncdhw)
{
    constexpr uint64_t staging = 512;
    const uint64_t d = ncdhw[2];
    const uint64_t area = RoundUp(ncdhw[3] * ncdhw[4]);
    const uint64_t image = d * RoundUp(ncdhw[1]) * area;
    switch (kind) {
        case Fractal::ToNdc1hwc0:
            return d * area + image;
        case Fractal::FromNdc1hwc0:
            return staging + image;
        case Fractal::ToZ3d:
            return ncdhw[1] * d * area + RoundUp(ncdhw[0]) * image;
        default: {
            const bool whole = ncdhw[0] % kSide == 0 && ncdhw[1] % kSide == 0;
            return (whole ? 1 : 2) * RoundUp(ncdhw[0]) * image;
        }
    }
}

void TransposeFractal(Fractal kind, const LocalRef &dst, const LocalRef &src, const LocalRef *tmp,
                      const uint32_t *ncdhw, At at)
{
    const Volume volume{ncdhw[0], ncdhw[1], ncdhw[2], ncdhw[3] * ncdhw[4]};
    const bool z3d = kind == Fractal::ToZ3d || kind == Fractal::FromZ3d;
    const bool blocked = kind == Fractal::ToZ3d || kind == Fractal::ToNdc1hwc0;
    const uint64_t block_elements =
        uint64_t{z3d ? RoundUp(volume.n) : volume.n} * RoundUp(volume.c) * volume.d * volume.area;
    const uint64_t plain_elements = uint64_t{volume.n} * volume.c * volume.d * RoundUp(volume.area);
    if (block_elements == 0) {
        return;
    }
    const uint32_t width = DTypeBytes(src.dtype);
    const double pass = static_cast<double>((block_elements * width + kRepeatBytes - 1) / kRepeatBytes);
    RunVector("TransData", pass, at);
    RunVector("TransData", pass, at);
    if (TheCore().timing || !TypeKnown(src, false, true, "TransData", at) ||
        !TmpFits(tmp, FractalTmpElements(kind, ncdhw) * width, "TransData", "GetTransDataMaxMinTmpSize", at)) {
        return;
    }
    Moved moved;
    for (uint32_t n = 0; n < volume.n; ++n) {
        for (uint32_t c = 0; c < volume.c; ++c) {
            for (uint32_t d = 0; d < volume.d; ++d) {
                for (uint32_t i = 0; i < volume.area; ++i) {
                    const uint64_t plain = volume.Plain(n, c, d, i);
                    const uint64_t block = z3d ? volume.Fractals(n, c, d, i) : volume.Blocks(n, c, d, i);
                    moved.Add(blocked ? plain : block, blocked ? block : plain);
                }
            }
        }
    }
    if (blocked) {
        ClearBlocks(dst, block_elements, "TransData", at);
    } else if (LocalRange(dst, plain_elements * width, 32, true, "TransData", "dst", at) == nullptr) {
        return;
    }
    Apply(moved, dst, src, "TransData", at);
}

}  // namespace evokernel::twin
