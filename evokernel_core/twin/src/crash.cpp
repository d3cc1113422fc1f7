#include "crash.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "core.h"
#include "time/schedule.h"

namespace evokernel::twin {

namespace {

constexpr size_t kSignalStack = 64 * 1024;  // the kernel's own stack may be full

void Write(const char *text, int length)
{
    if (length > 0 && ::write(STDERR_FILENO, text, static_cast<size_t>(length)) < 0) {
        return;  // there is nobody left to tell
    }
}

void OnSignal(int number, siginfo_t *info, void *)
{
    if (InKernel()) {
        const Core &core = TheCore();
        const bool overrun = (number == SIGSEGV || number == SIGBUS) && StackOverrun(info->si_addr);
        char text[512];
        const int length = std::snprintf(
            text, sizeof(text), "\n%s core %lld of kernel %s, after line %d of %s%s\n",
            core.kind == CoreKind::Cube ? "cube" : "vector", static_cast<long long>(core.Index()), CurrentCrew().name,
            core.last_at.line, core.last_at.file == nullptr ? "" : core.last_at.file,
            overrun ? ": its stack of 1 MB is full; use smaller local arrays or less recursion" : "");
        Write(text, length < static_cast<int>(sizeof(text)) ? length : static_cast<int>(sizeof(text)) - 1);
    }
    ::raise(number);  // SA_RESETHAND: now with the default action
}

}  // namespace

void ReportCrashes()
{
    static bool done = false;
    if (done) {
        return;
    }
    done = true;
    alignas(16) static unsigned char memory[kSignalStack];
    stack_t stack{};
    stack.ss_sp = memory;
    stack.ss_size = sizeof(memory);
    if (::sigaltstack(&stack, nullptr) != 0) {
        return;
    }
    struct sigaction action;
    std::memset(&action, 0, sizeof(action));
    action.sa_sigaction = OnSignal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_NODEFER;
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
        struct sigaction before;
        if (::sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) {
            ::sigaction(number, &action, nullptr);
        }
    }
}

}  // namespace evokernel::twin
