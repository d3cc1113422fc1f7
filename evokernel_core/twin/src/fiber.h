// A call that can be left in the middle and taken up again: its own stack, switched to and from.
#pragma once
#include <cstddef>
#include <cstdint>

namespace evokernel::twin {

class Fiber {
public:
    Fiber() = default;
    ~Fiber();
    Fiber(const Fiber &) = delete;
    Fiber &operator=(const Fiber &) = delete;

    // Gets a stack where there is none yet; false where memory is short. What ran on it before is dropped, and what a
    // body may look at without having written it is `undefined` in every byte.
    bool Prepare(void (*body)(void *), void *argument, uint8_t undefined);

    // Where the stack begins: it grows down from here.
    uintptr_t Top() const;

    // Runs the fiber until it calls Leave or its body returns.
    void Resume();

    // Back to the caller of Resume. Only from inside the fiber.
    void Leave();

    // Leaves for good, in the middle of the body. Only from inside the fiber.
    [[noreturn]] void Quit();

    bool Done() const { return done_; }

    // Whether the address lies in the guard below the stack: it ran over.
    bool InGuard(const void *address) const;

private:
    static void Enter();

    unsigned char *stack_ = nullptr;  // guard first
    void *inside_ = nullptr;
    void *outside_ = nullptr;
    void (*body_)(void *) = nullptr;
    void *argument_ = nullptr;
    bool done_ = true;
};

}  // namespace evokernel::twin
