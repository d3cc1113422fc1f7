#include "fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#if !defined(__linux__) || !(defined(__x86_64__) || defined(__aarch64__))
#include <ucontext.h>
#define EVK_UCONTEXT
#endif

#ifndef EVK_UCONTEXT
// Stores what a callee must keep, exchanges the stacks and takes the same back from the other one.
extern "C" void evokernel_switch_stack(void **save, void *load);

#if defined(__x86_64__)
asm(R"(
.text
.p2align 4
.globl evokernel_switch_stack
.hidden evokernel_switch_stack
.type evokernel_switch_stack, @function
evokernel_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    subq $8, %rsp
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    ldmxcsr (%rsp)
    fldcw 4(%rsp)
    addq $8, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size evokernel_switch_stack, .-evokernel_switch_stack
)");
#else
asm(R"(
.text
.p2align 4
.globl evokernel_switch_stack
.hidden evokernel_switch_stack
.type evokernel_switch_stack, %function
evokernel_switch_stack:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x2, sp
    str x2, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
.size evokernel_switch_stack, .-evokernel_switch_stack
)");
#endif
#endif

namespace evokernel::twin {

namespace {

constexpr size_t kGuardBytes = 64 * 1024;  // more than one frame of a careless kernel
constexpr size_t kStackBytes = 1024 * 1024;
constexpr size_t kSoiledBytes = 64 * 1024;  // twice what a core of a chip has

Fiber *entering = nullptr;

}  // namespace

Fiber::~Fiber()
{
    if (stack_ != nullptr) {
        ::munmap(stack_, kGuardBytes + kStackBytes);
    }
#ifdef EVK_UCONTEXT
    delete static_cast<ucontext_t *>(inside_);
    delete static_cast<ucontext_t *>(outside_);
#endif
}

bool Fiber::InGuard(const void *address) const
{
    const auto *byte = static_cast<const unsigned char *>(address);
    return stack_ != nullptr && byte >= stack_ && byte < stack_ + kGuardBytes;
}

void Fiber::Enter()
{
    Fiber &self = *entering;
    self.body_(self.argument_);
    self.Quit();
}

void Fiber::Quit()
{
    done_ = true;
    Leave();
    std::abort();  // nothing resumes a fiber that is done
}

uintptr_t Fiber::Top() const { return reinterpret_cast<uintptr_t>(stack_ + kGuardBytes + kStackBytes); }

bool Fiber::Prepare(void (*body)(void *), void *argument, uint8_t undefined)
{
    if (stack_ == nullptr) {
        void *mapping = ::mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapping == MAP_FAILED || ::mprotect(mapping, kGuardBytes, PROT_NONE) != 0) {
            return false;
        }
        stack_ = static_cast<unsigned char *>(mapping);
    }
    std::memset(stack_ + kGuardBytes + kStackBytes - kSoiledBytes, undefined, kSoiledBytes);
    body_ = body;
    argument_ = argument;
    done_ = false;
#ifdef EVK_UCONTEXT
    auto *context = inside_ == nullptr ? new ucontext_t : static_cast<ucontext_t *>(inside_);
    outside_ = outside_ == nullptr ? new ucontext_t : outside_;
    inside_ = context;
    ::getcontext(context);
    context->uc_stack.ss_sp = stack_ + kGuardBytes;
    context->uc_stack.ss_size = kStackBytes;
    context->uc_link = nullptr;
    ::makecontext(context, &Fiber::Enter, 0);
#elif defined(__x86_64__)
    // From the top: padding that aligns the entry as a call would, its address, six registers, control words.
    auto *top = reinterpret_cast<uint64_t *>(stack_ + kGuardBytes + kStackBytes);
    std::memset(top - 10, 0, 10 * sizeof(uint64_t));
    top[-2] = reinterpret_cast<uint64_t>(&Fiber::Enter);
    uint32_t vector_control = 0;
    uint16_t float_control = 0;
    asm volatile("stmxcsr %0" : "=m"(vector_control));
    asm volatile("fnstcw %0" : "=m"(float_control));
    const uint64_t control = vector_control | uint64_t{float_control} << 32;
    std::memcpy(top - 9, &control, sizeof(control));
    inside_ = top - 9;
#else
    auto *top = reinterpret_cast<uint64_t *>(stack_ + kGuardBytes + kStackBytes);
    std::memset(top - 20, 0, 20 * sizeof(uint64_t));
    top[-9] = reinterpret_cast<uint64_t>(&Fiber::Enter);  // x30 of the frame that starts at top[-20]
    inside_ = top - 20;
#endif
    return true;
}

void Fiber::Resume()
{
    entering = this;
#ifdef EVK_UCONTEXT
    ::swapcontext(static_cast<ucontext_t *>(outside_), static_cast<ucontext_t *>(inside_));
#else
    evokernel_switch_stack(&outside_, inside_);
#endif
}

void Fiber::Leave()
{
#ifdef EVK_UCONTEXT
    ::swapcontext(static_cast<ucontext_t *>(inside_), static_cast<ucontext_t *>(outside_));
#else
    evokernel_switch_stack(&inside_, outside_);
#endif
}

}  // namespace evokernel::twin
