// The judge's side of a candidate in another process.
//
// The judge holds tensors, cores, shadow state, time and result. A core's body here is a fiber that tells the candidate
// to go on with the core and carries out the messages that come back; what the candidate asks for is never more than
// the entry points of the table do with the arguments that they check.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core.h"
#include "evokernel/twin/matmul/object.h"
#include "judge/codec.h"

namespace evokernel::twin::judge {

// Ends the run at once: writes the result with this sentence as its error.
using GiveUp = void (*)(const Wording &error);

// Connects to the memory that standard output stands for. False where it is none.
bool Connect(GiveUp give_up);

struct Answer {
    bool good = false;
    uint32_t blocks = 0;
    uint64_t workspace = 0;
    std::string words;
    std::string tiling;  // bytes that the candidate chose, to draw sizes by
};
// Each tells the candidate's host code what to do and carries out what it asks for meanwhile.
Answer Greet(bool has_values);
Answer ComputeTiling(const std::vector<int64_t> &sizes, const std::vector<float> &scalars);
Answer Launch(const std::vector<uint8_t *> &tensors, uint8_t *workspace);
void Dismiss();

// Carries out one message; its result is in `reply`.
void Dispatch(wire::Reader &reader, wire::Writer &reply);

// The body of every core of a launch of the candidate.
void RemoteBody(void *);

// Objects that the candidate holds by number.
uint32_t Keep(std::unique_ptr<matmul::Object> object);
matmul::Object &Kept(uint32_t handle);
void Drop(uint32_t handle);
void DropAll();

// After a message that says it out of turn, in the wrong place or too often.
[[noreturn]] void Refuse(const Wording &what);

}  // namespace evokernel::twin::judge
