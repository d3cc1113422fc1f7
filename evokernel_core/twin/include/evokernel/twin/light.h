// First in the interface: what it leaves out, each kernel would pay for. A precompiled header holds no bodies of
// templates that it uses; the compiler makes them again in each kernel, called or not.
#pragma once
#include <cstddef>

#ifdef __GLIBCXX__
#undef _GLIBCXX_USE_STD_SPEC_FUNCS  // Bessel functions and the like in <cmath>, which no kernel has
#endif
