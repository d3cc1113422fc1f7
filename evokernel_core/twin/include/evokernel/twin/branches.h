// Hints about branches, on host and device.
#pragma once

inline constexpr bool likely(bool condition) { return condition; }
inline constexpr bool unlikely(bool condition) { return condition; }
