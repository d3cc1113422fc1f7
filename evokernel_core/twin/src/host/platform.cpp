// The chip as host programs see it.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "chip.h"
#include "tiling/platform/platform_ascendc.h"

namespace platform_ascendc {

namespace {

using evokernel::twin::CurrentChip;

constexpr uint32_t kLibraryWorkspace = 16 * 1024 * 1024;

}  // namespace

uint32_t PlatformAscendC::GetCoreNumAic() const { return static_cast<uint32_t>(CurrentChip().aic); }
uint32_t PlatformAscendC::GetCoreNumAiv() const { return static_cast<uint32_t>(CurrentChip().aiv); }
uint32_t PlatformAscendC::GetLibApiWorkSpaceSize() const { return kLibraryWorkspace; }

void PlatformAscendC::GetCoreMemSize(const CoreMemType &type, uint64_t &bytes) const
{
    switch (type) {
        case CoreMemType::L0_A: bytes = CurrentChip().l0a_bytes; break;
        case CoreMemType::L0_B: bytes = CurrentChip().l0b_bytes; break;
        case CoreMemType::L0_C: bytes = CurrentChip().l0c_bytes; break;
        case CoreMemType::L1: bytes = CurrentChip().l1_bytes; break;
        case CoreMemType::L2: bytes = CurrentChip().l2_bytes; break;
        case CoreMemType::UB: bytes = CurrentChip().ub_total_bytes - reserved_ub_; break;
        case CoreMemType::HBM: bytes = CurrentChip().hbm_bytes; break;
        case CoreMemType::FB: bytes = CurrentChip().fixpipe_buffer_bytes; break;
        case CoreMemType::BT: bytes = CurrentChip().bias_table_bytes; break;
        default: bytes = 0; break;
    }
}

void PlatformAscendC::GetCoreMemBw(const CoreMemType &type, uint64_t &bytes_per_cycle) const
{
    const double hz = CurrentChip().mhz * 1e6 * CurrentChip().aic;
    double gbps = 0;
    if (type == CoreMemType::HBM) {
        gbps = CurrentChip().hbm_gbps;
    } else if (type == CoreMemType::L2) {
        gbps = CurrentChip().l2_gbps;
    }
    bytes_per_cycle = hz > 0 ? static_cast<uint64_t>(gbps * 1e9 / hz) : 0;
}

void PlatformAscendC::ReserveLocalMemory(ReservedSize size)
{
    constexpr uint64_t bytes[] = {8 * 1024, 16 * 1024, 32 * 1024};
    reserved_ub_ = bytes[static_cast<int>(size)];
}

uint32_t PlatformAscendC::CalcTschNumBlocks(uint32_t slices, uint32_t cube_cores, uint32_t vector_cores) const
{
    if (cube_cores == 0 || vector_cores == 0 || vector_cores <= cube_cores) {
        return slices;
    }
    const uint32_t ratio = vector_cores / cube_cores;
    return (slices + ratio - 1) / ratio;
}

PlatformAscendC *PlatformAscendCManager::GetInstance(const char *name)
{
    static fe::PlatFormInfos info;
    static PlatformAscendC platform(&info);
    if (name != nullptr && std::strncmp(name, "Ascend910B", 10) != 0 && std::strncmp(name, "Ascend910_93", 12) != 0) {
        std::fprintf(stderr, "PlatformAscendCManager: %s is not modelled; the answers are those of Ascend910B.\n", name);
    }
    return &platform;
}

}  // namespace platform_ascendc
