// Headers of the standard library that many sources include, precompiled once for all of them (twin/build.py).
// Each source still includes what it uses.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>
