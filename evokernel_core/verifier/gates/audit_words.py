"""The words of the audit: what a candidate may and may not mention."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


KEYWORDS = _words("""
    alignas alignof and auto bitand bitor bool break case char class compl const constexpr continue decltype
    default do double else enum explicit extern false final float for friend if inline int long mutable
    namespace noexcept not nullptr operator or override private protected public reinterpret_cast return
    short signed sizeof static static_assert static_cast struct switch template this true typedef typename
    unsigned using virtual void while xor
""")

CALL_KEYWORDS = _words("""
    if for while switch return sizeof alignof alignas decltype static_assert static_cast reinterpret_cast
    noexcept operator constexpr explicit half float int bool char double short long unsigned and or not
""")
"""Lower-case words that stand before a parenthesis without being a call of a function."""

FORBIDDEN_KEYWORDS = _words("""
    asm __asm __asm__ goto throw try catch new delete thread_local volatile union typeid dynamic_cast
    const_cast import module co_await co_yield co_return concept requires register
""")

FORBIDDEN_NAMES = _words("""
    system popen fork vfork clone execve execv execl execlp execvp posix_spawn syscall mmap munmap mprotect
    dlopen dlsym dlclose open openat creat fopen freopen fdopen fread fwrite fclose read write pread pwrite
    close unlink rename remove socket connect bind listen accept send recv ioctl ptrace kill raise abort exit
    _exit _Exit quick_exit atexit signal sigaction setjmp longjmp malloc calloc realloc free memcpy memmove
    memset printf fprintf sprintf snprintf puts putchar scanf getenv setenv environ clock time gettimeofday
    clock_gettime usleep sleep nanosleep pthread_create thread async future mutex chrono ofstream ifstream
    fstream iostream cout cerr stdout stderr rand srand random setrlimit prctl alloca gnu clang evokernel
    GetPhyAddr PRINTF DumpTensor DumpAccChkPoint AscendCTimeStamp GetSystemCycle GetProgramCounter Trap
""")
"""What a kernel has no use for: the operating system, the C library's memory and output, clocks,
raw addresses of the unified buffer, and the twin's own names."""

UNDERSCORED = _words("""
    __global__ __aicore__ __vector__ __cube__ __mix__ __schedmode__
    __gm__ __ubuf__ __cbuf__ __ca__ __cb__ __cc__
    __inline__ __forceinline__ __restrict__ __cplusplus __builtin_inff
""")

STD_TYPES = _words("""
    is_same is_same_v is_integral is_floating_point conditional conditional_t enable_if enable_if_t true_type
    false_type integral_constant remove_reference_t decay_t numeric_limits uint8_t uint16_t uint32_t uint64_t
    int8_t int16_t int32_t int64_t size_t
""")

STD_TILING = STD_TYPES | _words("min max clamp ceil floor sqrt abs log2 gcd lcm round")

BUILT_IN_TYPES = _words("void bool char short int long unsigned signed float double auto half")
