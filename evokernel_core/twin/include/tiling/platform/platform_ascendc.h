// What a host program asks about the chip.
#pragma once
#include <cstdint>
#include <string>

#ifndef EVK_NPU_ARCH_ENUM
#define EVK_NPU_ARCH_ENUM
enum class NpuArch : uint32_t {
    DAV_1001 = 1001, DAV_2002 = 2002, DAV_2102 = 2102, DAV_2201 = 2201, DAV_3002 = 3002, DAV_3102 = 3102,
    DAV_3003 = 3003, DAV_3113 = 3113, DAV_3510 = 3510, DAV_5102 = 5102, DAV_RESV = 0xFFFF,
};
#endif

namespace fe {

enum class LocalMemType { L0_A = 0, L0_B, L0_C, L1, L2, UB, HBM, RESERVED };

struct OptionalInfos {};
struct OptionalInfo {
    std::string soc_version;
    std::string core_type;
};

// What a tiling function's context carries about the chip; the twin models one chip at a time.
class PlatFormInfos {
public:
    uint32_t GetCoreNum() const;
    uint32_t GetCoreNumByType(const std::string &core_type) const;
    void GetLocalMemSize(const LocalMemType &type, uint64_t &bytes) const;
    void GetLocalMemBw(const LocalMemType &type, uint64_t &bytes_per_cycle) const;
    // A value by section and key of the chip's description; false where the twin has none.
    bool GetPlatformRes(const std::string &section, const std::string &key, std::string &value) const;
    bool GetPlatformResWithLock(const std::string &section, const std::string &key, std::string &value) const
    {
        return GetPlatformRes(section, key, value);
    }
    void SetCoreNumByCoreType(const std::string &) {}
};

}  // namespace fe

namespace platform_ascendc {

using ::NpuArch;

enum class CoreMemType { L0_A = 0, L0_B, L0_C, L1, L2, UB, HBM, FB, BT, RESERVED };
enum class SocVersion {
    ASCEND910 = 0, ASCEND910B, ASCEND310P, ASCEND310B, ASCEND910_93, ASCEND950, ASCEND910_95 = ASCEND950,
    ASCEND910_55, ASCEND310C, KIRINX90, KIRIN9030, RESERVED_VERSION = 99999,
};
enum class ReservedSize { RESERVED_SIZE_8K, RESERVED_SIZE_16K, RESERVED_SIZE_32K };

class PlatformAscendC {
public:
    PlatformAscendC() = delete;
    ~PlatformAscendC() = default;
    explicit PlatformAscendC(fe::PlatFormInfos *info) : info_(info) {}

    uint32_t GetCoreNum() const { return GetCoreNumAic(); }
    uint32_t GetCoreNumAic() const;
    uint32_t GetCoreNumAiv() const;
    uint32_t GetCoreNumVector() const { return 0; }  // vector cores beside the AI cores: another chip
    SocVersion GetSocVersion() const { return SocVersion::ASCEND910B; }
    NpuArch GetCurNpuArch() const { return NpuArch::DAV_2201; }
    uint32_t GetVecRegLen() const { return 0; }  // only chips with vector registers
    void GetCoreMemSize(const CoreMemType &type, uint64_t &bytes) const;
    void GetCoreMemBw(const CoreMemType &type, uint64_t &bytes_per_cycle) const;
    uint32_t GetLibApiWorkSpaceSize() const;
    uint32_t GetResCubeGroupWorkSpaceSize() const { return GetLibApiWorkSpaceSize(); }
    uint32_t GetResGroupBarrierWorkSpaceSize() const { return GetLibApiWorkSpaceSize(); }
    void ReserveLocalMemory(ReservedSize size);

    // Blocks to launch so that every slice has a core: one block is a cube core with its vector cores.
    uint32_t CalcTschNumBlocks(uint32_t slices, uint32_t cube_cores, uint32_t vector_cores) const;
    uint32_t CalcTschBlockDim(uint32_t slices, uint32_t cube_cores, uint32_t vector_cores) const
    {
        return CalcTschNumBlocks(slices, cube_cores, vector_cores);
    }

private:
    fe::PlatFormInfos *info_ = nullptr;
    uint64_t reserved_ub_ = 0;
};

class PlatformAscendCManager {
public:
    static PlatformAscendC *GetInstance() { return GetInstance(nullptr); }
    // The name matters where no device is there to ask; the twin's chip is chosen by its own options.
    static PlatformAscendC *GetInstance(const char *name);
};

}  // namespace platform_ascendc
