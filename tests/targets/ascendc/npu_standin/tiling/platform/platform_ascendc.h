#pragma once
#include <cstdint>
namespace platform_ascendc { enum class CoreMemType { UB };
class PlatformAscendC { public: void GetCoreMemSize(const CoreMemType &, uint64_t &) const; uint32_t GetCoreNumAiv() const; };
class PlatformAscendCManager { public: static PlatformAscendC *GetInstance(); }; }
