// evokernel-candidate LIBRARY: the process of a candidate. Standard output is the memory that it shares with the judge.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "blocks.h"
#include "chip.h"
#include "client/client.h"

namespace {

using namespace evokernel::twin;

using TilingFunction = int (*)(const int64_t *, const float *, uint32_t, uint64_t, void *, uint64_t, uint32_t *,
                               uint64_t *);
using LaunchFunction = void (*)(void *, uint8_t *const *, uint8_t *, const void *);

TilingFunction tiling_function = nullptr;
LaunchFunction launch_function = nullptr;
alignas(16) uint8_t tiling_data[wire::kLargestTiling];

std::string Load(const char *path)
{
    void *library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return std::string("The candidate's library cannot be loaded: ") + ::dlerror() + ".";
    }
    void *tiling = ::dlsym(library, "EvokernelComputeTiling");
    void *launch = ::dlsym(library, "EvokernelLaunch");
    if (tiling == nullptr || launch == nullptr) {
        return "The candidate's library lacks EvokernelComputeTiling or EvokernelLaunch; link it with glue.cpp.";
    }
    std::memcpy(&tiling_function, &tiling, sizeof(tiling));
    std::memcpy(&launch_function, &launch, sizeof(launch));
    return "";
}

template <typename T> std::vector<T> List(wire::Reader &reader)
{
    std::vector<T> list(reader.Raw<uint32_t>());
    for (T &element : list) {
        element = reader.Raw<T>();
    }
    return list;
}

client::Outcome Tiling()
{
    wire::Reader reader = client::Arguments();
    const auto sizes = List<int64_t>(reader);
    const auto scalars = List<float>(reader);
    const Chip &chip = CurrentChip();
    client::Outcome outcome;
    std::memset(tiling_data, blocks::Undefined(), sizeof(tiling_data));
    const bool within = blocks::WithinHostTime([&] {
        outcome.good = tiling_function(sizes.data(), scalars.data(), static_cast<uint32_t>(chip.aiv), chip.ub_bytes,
                                       tiling_data, sizeof(tiling_data), &outcome.blocks, &outcome.workspace) != 0;
    });
    if (outcome.good) {
        outcome.tiling.assign(reinterpret_cast<const char *>(tiling_data), wire::kToldTiling);
    }
    if (!within) {
        outcome.good = false;
        outcome.words = "host-time";
    }
    return outcome;
}

client::Outcome Launch()
{
    wire::Reader reader = client::Arguments();
    std::vector<uint8_t *> tensors;
    for (const uint64_t address : List<uint64_t>(reader)) {
        tensors.push_back(reinterpret_cast<uint8_t *>(address));
    }
    auto *workspace = reinterpret_cast<uint8_t *>(reader.Raw<uint64_t>());
    blocks::SoilStack();
    launch_function(nullptr, tensors.data(), workspace, tiling_data);
    ++blocks::counter.run;
    return {};
}

client::Outcome Hello(const char *path)
{
    wire::Reader reader = client::Arguments();
    reader.Bytes(&CurrentChip(), sizeof(Chip));
    client::SetHasValues(reader.Raw<uint8_t>() != 0);
    client::Outcome outcome;
    outcome.words = Load(path);
    outcome.good = outcome.words.empty();
    return outcome;
}

// Device memory is not in this process: a pointer into it is a number, and reading there ends here.
void OnFault(int number, siginfo_t *info, void *)
{
    const bool overrun = client::StackOverrun(info->si_addr);
    const char *const words =
        overrun ? "its stack of 1 MB is full; use smaller local arrays or less recursion\n"
                : "it used an address of device or foreign memory as a pointer; read and write through the AscendC "
                  "interface (DataCopy, GetValue, SetValue)\n";
    if (::write(STDERR_FILENO, words, std::strlen(words)) < 0) {
        ::_exit(3);
    }
    ::raise(number);  // now with the default action
}

void WatchFaults()
{
    alignas(16) static unsigned char memory[64 * 1024];  // the kernel's own stack may be full
    stack_t stack{};
    stack.ss_sp = memory;
    stack.ss_size = sizeof(memory);
    struct sigaction action;
    std::memset(&action, 0, sizeof(action));
    action.sa_sigaction = OnFault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_NODEFER;
    if (::sigaltstack(&stack, nullptr) == 0) {
        ::sigaction(SIGSEGV, &action, nullptr);
        ::sigaction(SIGBUS, &action, nullptr);
    }
}

}  // namespace

int main(int argc, char **argv)
{
    wire::Shared *shared = argc == 2 ? wire::MapStandardOutput() : nullptr;
    if (shared == nullptr) {
        std::fprintf(stderr, "usage: evokernel-candidate LIBRARY, with the memory shared with the judge as output\n");
        return 2;
    }
    WatchFaults();
    if (!wire::Await(*shared, wire::Turn::Candidate)) {
        return 3;
    }
    client::Connect(shared);
    auto command = static_cast<wire::Command>(shared->command);
    while (command != wire::Command::Exit) {
        client::Outcome outcome;
        if (command == wire::Command::Hello) {
            outcome = Hello(argv[1]);
        } else if (command == wire::Command::Tiling) {
            outcome = Tiling();
        } else if (command == wire::Command::Launch) {
            outcome = Launch();
        }
        command = client::Answer(outcome);
    }
    return 0;
}
