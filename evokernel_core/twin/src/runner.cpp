#include "runner.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "blocks.h"
#include "copies/traffic.h"
#include "core.h"
#include "judge/judge.h"
#include "judge/wire.h"
#include "launch.h"
#include "result.h"
#include "sampled.h"
#include "stand_in.h"

namespace evokernel::twin {

namespace {

// `initial`: the file with what an output holds before the launch. `patched`: an input in which the launcher
// writes addresses, so that it differs from its file.
struct TensorRequest {
    bool output;
    std::string path;
    uint64_t bytes;
    std::string initial;
    bool patched;
    std::string part;  // in a sampled run: what of it has data
};

struct Request {
    std::string library, result, mode, chip, trace;
    std::string auto_sync = "on";
    std::string unknown = "zero";
    std::vector<int64_t> sizes;
    std::vector<float> scalars;
    std::vector<TensorRequest> tensors;
    int repeat = 1;
    bool races = true;
    std::string probed;                         // where the tiling data of the probes go, which then are all of the run
    std::vector<std::vector<int64_t>> probes;  // sizes
};

bool ParseLine(const std::string &line, Request *request)
{
    std::istringstream words(line);
    std::string key;
    if (!(words >> key)) {
        return true;
    }
    if (key == "sizes") {
        for (int64_t value; words >> value;) {
            request->sizes.push_back(value);
        }
    } else if (key == "probe") {
        request->probes.emplace_back();
        for (int64_t value; words >> value;) {
            request->probes.back().push_back(value);
        }
    } else if (key == "scalars") {
        for (std::string word; words >> word;) {  // through strtof, which takes inf and nan too
            request->scalars.push_back(std::strtof(word.c_str(), nullptr));
        }
    } else if (key == "tensor") {
        std::string kind;
        TensorRequest tensor{};
        words >> kind >> tensor.path >> tensor.bytes;
        if (!words || (kind != "in" && kind != "out" && kind != "list")) {
            return false;
        }
        tensor.output = kind == "out";
        tensor.patched = kind == "list";
        words >> tensor.initial;
        request->tensors.push_back(tensor);
    } else if (key == "part") {  // of the tensor before it
        if (request->tensors.empty()) {
            return false;
        }
        std::getline(words >> std::ws, request->tensors.back().part);
    } else if (key == "repeat") {
        words >> request->repeat;
    } else if (key == "races") {
        std::string value;
        words >> value;
        request->races = value != "off";
    } else {
        std::string value;
        std::getline(words >> std::ws, value);
        if (key == "library") {
            request->library = value;
        } else if (key == "result") {
            request->result = value;
        } else if (key == "mode") {
            request->mode = value;
        } else if (key == "chip") {
            request->chip = value;
        } else if (key == "trace") {
            request->trace = value;
        } else if (key == "probed") {
            request->probed = value;
        } else if (key == "auto_sync" && (value == "on" || value == "off")) {
            request->auto_sync = value;
        } else if (key == "unknown" && (value == "zero" || value == "refuse")) {
            request->unknown = value;
        } else {
            return false;
        }
    }
    return true;
}

bool ParseRequest(const char *path, Request *request, std::string *error)
{
    std::ifstream file(path);
    if (!file) {
        *error = std::string("The request ") + path + " cannot be read; give the path of an existing file.";
        return false;
    }
    for (std::string line; std::getline(file, line);) {
        if (!ParseLine(line, request)) {
            *error = "The request line \"" + line + "\" is not understood; see the runner's protocol.";
            return false;
        }
    }
    const bool known_mode = request->mode == "check" || request->mode == "time" || request->mode == "sample";
    if (request->result.empty() || request->library.empty() || !known_mode) {
        *error = "The request needs the lines library, result and mode check|time|sample.";
        return false;
    }
    return true;
}

struct Tiling {
    alignas(16) uint8_t data[65536] = {};
    uint32_t blocks = 0;
    uint64_t workspace = 0;
    bool overrun = false;  // it took more blocks than host code may
    std::string told;      // the first bytes of what another process keeps
};

// The code that is judged: in this process, or in one of its own.
class Candidate {
public:
    virtual ~Candidate() = default;
    virtual bool Load(const Request &request, std::string *error) = 0;
    // False where it declines these sizes.
    virtual bool ComputeTiling(const Request &request, Tiling *tiling) = 0;
    virtual void Launch(const std::vector<uint8_t *> &tensors, uint8_t *workspace, const Tiling &tiling) = 0;
};

using TilingFunction = int (*)(const int64_t *, const float *, uint32_t, uint64_t, void *, uint64_t, uint32_t *,
                               uint64_t *);
using LaunchFunction = void (*)(void *, uint8_t *const *, uint8_t *, const void *);

class LocalCandidate : public Candidate {
public:
    bool Load(const Request &request, std::string *error) override
    {
        void *library = ::dlopen(request.library.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            *error = std::string("The candidate's library cannot be loaded: ") + ::dlerror() + ".";
            return false;
        }
        void *tiling = ::dlsym(library, "EvokernelComputeTiling");
        void *launch = ::dlsym(library, "EvokernelLaunch");
        if (tiling == nullptr || launch == nullptr) {
            *error = "The candidate's library lacks EvokernelComputeTiling or EvokernelLaunch; link it with glue.cpp.";
            return false;
        }
        std::memcpy(&tiling_, &tiling, sizeof(tiling));
        std::memcpy(&launch_, &launch, sizeof(launch));
        return true;
    }

    bool ComputeTiling(const Request &request, Tiling *tiling) override
    {
        const Chip &chip = CurrentChip();
        bool good = false;
        std::memset(tiling->data, blocks::Undefined(), sizeof(tiling->data));
        tiling->overrun = !blocks::WithinHostTime([&] {
            good = tiling_(request.sizes.data(), request.scalars.data(), static_cast<uint32_t>(chip.aiv), chip.ub_bytes,
                           tiling->data, sizeof(tiling->data), &tiling->blocks, &tiling->workspace) != 0;
        });
        return good;
    }

    void Launch(const std::vector<uint8_t *> &tensors, uint8_t *workspace, const Tiling &tiling) override
    {
        blocks::SoilStack();
        launch_(nullptr, tensors.data(), workspace, tiling.data);
        ++blocks::counter.run;
    }

private:
    TilingFunction tiling_ = nullptr;
    LaunchFunction launch_ = nullptr;
};

// The candidate's own tiling data stay in its process.
class RemoteCandidate : public Candidate {
public:
    bool Load(const Request &request, std::string *error) override
    {
        bool values = request.mode != "time";
        for (const TensorRequest &tensor : request.tensors) {
            values = values || (!tensor.output && tensor.path != "-");
        }
        const judge::Answer answer = judge::Greet(values);
        *error = answer.words;
        return answer.good;
    }

    bool ComputeTiling(const Request &request, Tiling *tiling) override
    {
        const judge::Answer answer = judge::ComputeTiling(request.sizes, request.scalars);
        tiling->blocks = answer.blocks;
        tiling->workspace = answer.workspace;
        tiling->overrun = !answer.words.empty();
        tiling->told = answer.tiling;
        return answer.good;
    }

    void Launch(const std::vector<uint8_t *> &tensors, uint8_t *workspace, const Tiling &) override
    {
        judge::Launch(tensors, workspace);
    }
};

bool ComputeTiling(Candidate &candidate, const Request &request, Tiling *tiling, RunOutcome *outcome)
{
    const bool covered = candidate.ComputeTiling(request, tiling);
    if (tiling->overrun) {
        ReportError("host-time", At{"", 0},
                    "ComputeTiling executes more than 100,000 basic blocks, which the host would do before every launch; "
                    "use formulas instead of loops.");
        outcome->error = Wording("ComputeTiling takes too long.");
        return false;
    }
    if (!covered) {
        outcome->declined = true;
        outcome->error = Wording("ComputeTiling returned false for these sizes; cover them or narrow the contract.");
        return false;
    }
    constexpr uint32_t max_blocks = 65535;
    if (tiling->blocks == 0 || tiling->blocks > max_blocks) {
        outcome->error = Wording("ComputeTiling asks for %u blocks; it must be 1 to 65535.", tiling->blocks);
        return false;
    }
    return true;
}

bool ReadTensor(const std::string &path, uint64_t bytes, uint8_t *to, Wording *error)
{
    std::ifstream file(path, std::ios::binary);
    if (!file.read(reinterpret_cast<char *>(to), static_cast<std::streamsize>(bytes))) {
        *error = Wording("The tensor file %s has fewer than %llu bytes.", path.c_str(),
                       static_cast<unsigned long long>(bytes));
        return false;
    }
    return true;
}

class Run {
public:
    Run(const Request &request, Candidate &candidate) : request_(request), candidate_(candidate) {}

    bool Execute(RunOutcome *outcome)
    {
        const bool timing = request_.mode == "time";
        TheSession().timing = timing;
        sampled::active = request_.mode == "sample";
        sampled::ForgetScalars(0);
        race::Wanted() = request_.races;
        TheSession().trace = !request_.trace.empty();
        TheSession().auto_sync = request_.auto_sync == "on";
        TheSession().refuse_unknown = request_.unknown == "refuse";
        Tiling tiling;
        if (!ComputeTiling(candidate_, request_, &tiling, outcome)) {
            return false;
        }
        outcome->tiling.resize(tiling.told.size() / sizeof(uint32_t));
        std::memcpy(outcome->tiling.data(), tiling.told.data(), outcome->tiling.size() * sizeof(uint32_t));
        const int times = timing || sampled::active ? 1 : std::max(1, request_.repeat);
        for (int i = 0; i < times; ++i) {
            if (!Once(tiling, timing, i, outcome)) {
                return false;
            }
        }
        return true;
    }

private:
    bool Once(const Tiling &tiling, bool timing, int iteration, RunOutcome *outcome)
    {
        Gm().Clear();
        blocks_.clear();
        std::vector<uint8_t *> pointers;
        if (!AllocateTensors(timing, &pointers, &outcome->error)) {
            return false;
        }
        uint8_t *workspace = nullptr;
        if (tiling.workspace > 0) {
            Allocation *block = Gm().Allocate(Wording("the workspace"), tiling.workspace, Kind::Workspace, timing);
            if (block == nullptr) {
                outcome->error = Wording("The workspace of %llu bytes does not fit in memory.",
                                       static_cast<unsigned long long>(tiling.workspace));
                return false;
            }
            workspace = block->base;
        }
        TheSession().launches.clear();
        Gm().ForgetLines();  // each run starts with a cold L2
        L2() = L2State{};
        candidate_.Launch(pointers, workspace, tiling);
        if (TheSession().launches.empty()) {
            outcome->error = Wording("LaunchOp launched no kernel; its body must be one launch.");
            return false;
        }
        if (!timing) {
            Collect(iteration, outcome);
        }
        return true;
    }

    bool AllocateTensors(bool timing, std::vector<uint8_t *> *pointers, Wording *error)
    {
        int inputs = 0;
        int outputs = 0;
        for (const TensorRequest &tensor : request_.tensors) {
            const Wording name = tensor.output ? Wording("output %d", outputs++) : Wording("input %d", inputs++);
            const bool known = timing && !tensor.output && tensor.path != "-";
            Allocation *block =
                Gm().Allocate(name, tensor.bytes, tensor.output ? Kind::Output : Kind::Input, timing, known);
            if (block == nullptr) {
                *error = Wording("The %s of %llu bytes does not fit in memory.", name.c_str(),
                               static_cast<unsigned long long>(tensor.bytes));
                return false;
            }
            if (sampled::active) {
                if (!Sample(*block, tensor, error)) {
                    return false;
                }
            } else if ((!timing || known) && !tensor.output && !ReadTensor(tensor.path, tensor.bytes, block->base, error)) {
                return false;
            }
            if (timing && !tensor.initial.empty()) {
                Gm().KeepBooks(*block);
            }
            if (!tensor.initial.empty() && block->written != nullptr) {
                if (!ReadTensor(tensor.initial, tensor.bytes, block->base, error)) {
                    return false;
                }
                std::memset(block->written, 1, tensor.bytes);
            }
            blocks_.push_back(block);
            pointers->push_back(block->base);
        }
        return true;
    }

    // Gives a tensor of a sampled run what it has in its file.
    bool Sample(Allocation &block, const TensorRequest &tensor, Wording *error)
    {
        sampled::Part part{1, {tensor.bytes}, {{{0, tensor.bytes}}}};
        if (!tensor.part.empty() && !sampled::ParsePart(tensor.part, tensor.bytes, &(part = {}))) {
            *error = Wording("The part \"%s\" is none of a tensor of %llu bytes.", tensor.part.c_str(),
                           static_cast<unsigned long long>(tensor.bytes));
            return false;
        }
        parts_.push_back(part);
        if (tensor.output) {
            sampled::Want(block, part);
            return true;
        }
        std::string fault;
        const bool filled = sampled::Fill(block, part, tensor.path, &fault);
        *error = Wording("%s", fault.c_str());
        return filled;
    }

    void CollectParts(RunOutcome *outcome)
    {
        for (size_t i = 0; i < blocks_.size(); ++i) {
            const TensorRequest &tensor = request_.tensors[i];
            if (tensor.output && !sampled::Collect(*blocks_[i], parts_[i], tensor.path)) {
                outcome->error = Wording("The output file %s cannot be written.", tensor.path.c_str());
            }
        }
    }

    void Collect(int iteration, RunOutcome *outcome)
    {
        Gm().CheckGuards();
        if (sampled::active) {
            return CollectParts(outcome);
        }
        outcome->outputs_written.clear();
        outcome->input_changed.clear();
        size_t output = 0;
        for (size_t i = 0; i < blocks_.size(); ++i) {
            if (request_.tensors[i].output) {
                CollectOutput(*blocks_[i], request_.tensors[i], iteration, output++, outcome);
            } else if (!request_.tensors[i].patched) {
                outcome->input_changed.push_back(InputChanged(*blocks_[i], request_.tensors[i]));
            }
        }
    }

    void CollectOutput(const Allocation &block, const TensorRequest &tensor, int iteration, size_t index,
                       RunOutcome *outcome)
    {
        const auto *missing =
            block.bytes == 0 ? nullptr : static_cast<const uint8_t *>(std::memchr(block.written, 0, block.bytes));
        outcome->outputs_written.push_back(missing == nullptr);
        if (missing != nullptr) {
            ReportError("output-not-written", At{"", 0}, "The kernel leaves %s unwritten from byte %llu on.",
                        block.name.c_str(), static_cast<unsigned long long>(missing - block.written));
        }
        if (iteration == 0) {
            first_.emplace_back(block.base, block.base + block.bytes);
            std::ofstream file(tensor.path, std::ios::binary);
            file.write(reinterpret_cast<const char *>(block.base), static_cast<std::streamsize>(block.bytes));
            if (!file) {
                outcome->error = Wording("The output file %s cannot be written.", tensor.path.c_str());
            }
        } else if (std::memcmp(first_[index].data(), block.base, block.bytes) != 0) {
            ReportError("nondeterministic", At{"", 0}, "A second run on the same input gives other bytes in %s.",
                        block.name.c_str());
        }
    }

    bool InputChanged(const Allocation &block, const TensorRequest &tensor)
    {
        std::vector<uint8_t> original(tensor.bytes);
        Wording error;
        const bool changed = !ReadTensor(tensor.path, tensor.bytes, original.data(), &error) ||
                             std::memcmp(original.data(), block.base, tensor.bytes) != 0;
        if (changed && !block.write_reported) {
            ReportError("input-modified", At{"", 0}, "The kernel changes %s through a raw pointer.",
                        block.name.c_str());
        }
        return changed || block.write_reported;
    }

    const Request &request_;
    Candidate &candidate_;
    std::vector<Allocation *> blocks_;
    std::vector<std::vector<uint8_t>> first_;
    std::vector<sampled::Part> parts_;
};

// Runs ComputeTiling alone for each of the probes. A record has whether they are covered, the blocks, the bytes of the
// workspace, and the first bytes of the tiling data.
bool Probe(const Request &request, Candidate &candidate, RunOutcome *outcome)
{
    std::ofstream file(request.probed, std::ios::binary);
    Request one = request;
    for (const std::vector<int64_t> &sizes : request.probes) {
        one.sizes = sizes;
        Tiling tiling;
        const uint32_t head[] = {candidate.ComputeTiling(one, &tiling) ? 1u : 0u, tiling.blocks,
                                 static_cast<uint32_t>(tiling.workspace), static_cast<uint32_t>(tiling.workspace >> 32)};
        tiling.told.resize(wire::kToldTiling);
        file.write(reinterpret_cast<const char *>(head), sizeof(head));
        file.write(tiling.told.data(), static_cast<std::streamsize>(tiling.told.size()));
    }
    file.close();
    if (!file) {
        outcome->error = Wording("The file of probes %s cannot be written.", request.probed.c_str());
    }
    return bool(file);
}

// Where the result goes when the run is stopped in the middle.
Request *stopped = nullptr;

[[noreturn]] void GiveUp(const Wording &error)
{
    RunOutcome outcome;
    outcome.error = error;
    WriteResult(stopped->result, outcome);
    std::_Exit(0);
}

// Whether the judge already shares memory with a candidate, which goes on with the next request.
bool connected = false;

// Sets `good` to whether another request may follow.
int RunRequest(const char *path, Candidate &candidate, bool remote, bool *good)
{
    static Request request;  // `stopped` names it
    request = Request{};
    RunOutcome outcome;
    std::string error;
    ClearHazards();
    TheSession().launches.clear();
    if (!ParseRequest(path, &request, &error)) {
        std::fprintf(stderr, "%s\n", error.c_str());
        return 2;
    }
    stopped = &request;
    if (remote && !connected && !judge::Connect(GiveUp)) {
        std::fprintf(stderr, "The judge has no memory that it shares with a candidate.\n");
        return 2;
    }
    connected = remote;
    if (!LoadChip(request.chip, &CurrentChip(), &error) || !candidate.Load(request, &error)) {
        outcome.error = Wording("%s", error.c_str());
    } else if (!request.probed.empty()) {
        outcome.ok = Probe(request, candidate, &outcome);
    } else {
        Run run(request, candidate);
        outcome.ok = run.Execute(&outcome) && outcome.error.empty() && !HasErrors();
    }
    if (!request.trace.empty() && !WriteTrace(request.trace)) {
        outcome.error = Wording("The trace file %s cannot be written.", request.trace.c_str());
        outcome.ok = false;
    }
    if (!WriteResult(request.result, outcome)) {
        std::fprintf(stderr, "The result file %s cannot be written.\n", request.result.c_str());
        return 2;
    }
    *good = outcome.ok || outcome.declined;
    return 0;
}

}  // namespace

int RunRequestFile(const char *path)
{
    LocalCandidate candidate;
    bool good = true;
    return RunRequest(path, candidate, false, &good);
}

int JudgeRequestFiles(int count, char **paths)
{
    RemoteCandidate candidate;
    int status = 0;
    bool good = true;
    for (int i = 0; i < count && status == 0 && good; ++i) {
        status = RunRequest(paths[i], candidate, true, &good);
    }
    if (status == 0) {
        judge::Dismiss();
    }
    return status;
}

}  // namespace evokernel::twin
