// What a Matmul object remembers, on whichever core it lives.
#pragma once
#include <functional>
#include <vector>

#include "matmul/machine.h"
#include "memory.h"

namespace evokernel::twin::matmul {

// Who does the work. Own: this cube core. Client: the block's cube core, on this vector core's behalf.
// Idle: nobody here, the cube core runs the same code itself.
enum class Role : uint8_t { Own, Client, Idle };

// Global memory of the library: what lies in a vector core's buffers passes through it.
class Scratch {
public:
    ~Scratch();
    GlobalRef Take(uint64_t bytes, DType dtype);

private:
    uint8_t *base_ = nullptr;
    uint64_t bytes_ = 0;
};

class ObjectState : public std::enable_shared_from_this<ObjectState> {
public:
    ObjectState(const Spec &given, bool cube_only_) : spec(given), cube_only(cube_only_) {}

    Role RoleHere(At at) const;
    bool Ready(At at);             // Init was called with a usable tiling
    void Changed() { ++serial, cursor = 0, started = false, posted = false; }
    Job MakeJob(At at);            // with what lies in local buffers moved to where the cube core reads it
    bool NextTile(const Job &job, Tile *tile, int32_t *index);

    // Runs `work` on the cube core: here, or there.
    void OnCube(Role role, std::function<void()> work, At at);
    void CopyToLocal(const Job &job, const Tile &tile, const Target &target, const GlobalRef &from, At at);
    void Finish(Role role, At at);

    Spec spec;
    bool cube_only;
    bool initialised = false;
    bool usable = false;
    TCubeTiling tiling;
    int32_t org_m = 0, org_n = 0, org_ka = 0, org_kb = 0, org_kc = 0;
    int32_t m = 0, n = 0, k = 0;
    Source a, b, bias;
    bool bias_set = false;
    Quant quant;
    GlobalRef index;
    GlobalRef workspace;
    uint64_t user_info = 0, callback_data = 0;
    bool half_float = false, half_float_to_zero = false;
    int32_t batch_a = 1, batch_b = 1;

    uint64_t serial = 1;
    int32_t cursor = 0;            // the next base block
    bool started = false;
    bool posted = false;           // all blocks of an asynchronous Iterate were asked for
    int32_t taken = 0;             // of these, how many were taken
    std::shared_ptr<Job> job;
    Tile tile{};
    std::vector<std::function<void()>> waiting;  // blocks that GetTensorC sends to the cube core
    Machine machine;               // used on the cube core only
    Scratch scratch_c, scratch_a, scratch_b, scratch_bias;

private:
    void Stage(Source *source, const OperandSpec &operand, int64_t rows, int64_t columns, Scratch *scratch, At at);
};

constexpr At kNowhere{"", 0};

}  // namespace evokernel::twin::matmul
