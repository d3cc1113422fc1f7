#include "result.h"

#include <algorithm>
#include <cstdio>

#include "core.h"
#include "launch.h"

namespace evokernel::twin {

namespace {

std::string Number(double value)
{
    char text[40];
    std::snprintf(text, sizeof(text), "%.6g", value);
    return text;
}

std::string Flags(const std::vector<bool> &values)
{
    std::string out = "[";
    for (size_t i = 0; i < values.size(); ++i) {
        out += i == 0 ? "" : ",";
        out += values[i] ? "true" : "false";
    }
    return out + "]";
}

std::string Words(const std::vector<uint32_t> &values)
{
    std::string out;
    for (const uint32_t value : values) {
        out += (out.empty() ? "" : ",") + std::to_string(value);
    }
    return "[" + out + "]";
}

// A text alone, or a format with its values.
std::string PhraseText(const Phrase &phrase)
{
    if (phrase.format.empty()) {
        return Quoted(phrase.text);
    }
    std::string values;
    for (const Phrase &value : phrase.values) {
        values += (values.empty() ? "" : ",") + PhraseText(value);
    }
    return "{\"format\":" + Quoted(phrase.format) + ",\"values\":[" + values + "]}";
}

std::string HazardList()
{
    std::string out = "[";
    for (const Hazard &hazard : Hazards()) {
        out += out.size() > 1 ? "," : "";
        out += "{\"code\":" + Quoted(hazard.code) + ",\"severity\":" + Quoted(hazard.severity) +
               ",\"message\":" + PhraseText(hazard.message) + ",\"file\":" + Quoted(hazard.file) +
               ",\"line\":" + std::to_string(hazard.line) + "}";
    }
    return out + "]";
}

std::string WorkText(const LaunchReport &launch)
{
    std::string pipes;
    for (int p = 0; p < kPipes; ++p) {
        const PipeWork &work = launch.work[p];
        if (work.instructions > 0) {
            pipes += (pipes.empty() ? "" : ",") + Quoted(PipeName(static_cast<Pipe>(p))) + ":[" +
                     std::to_string(work.instructions) + "," + std::to_string(work.bytes) + "," +
                     Number(work.busy_us) + "]";
        }
    }
    return "{" + pipes + "}";
}

constexpr size_t kMostLines = 4;  // of a pipe, the longest first

std::string LinesOf(std::vector<LineUse> lines)
{
    std::sort(lines.begin(), lines.end(), [](const LineUse &a, const LineUse &b) {
        return a.cycles != b.cycles ? a.cycles > b.cycles : a.line < b.line;
    });
    std::string out;
    for (size_t i = 0; i < std::min(lines.size(), kMostLines); ++i) {
        const LineUse &use = lines[i];
        out += std::string(i == 0 ? "" : ",") + "[" + Quoted(use.file == nullptr ? "" : use.file) + "," +
               std::to_string(use.line) + "," + std::to_string(use.instructions) + "," +
               Number(use.cycles / CurrentChip().mhz) + "]";
    }
    return "[" + out + "]";
}

std::string LinesText(const LaunchReport &launch)
{
    std::string pipes;
    for (int p = 0; p < kPipes; ++p) {
        if (!launch.lines[p].empty()) {
            pipes += (pipes.empty() ? "" : ",") + Quoted(PipeName(static_cast<Pipe>(p))) + ":" +
                     LinesOf(launch.lines[p]);
        }
    }
    return "{" + pipes + "}";
}

std::string LaunchText(const LaunchReport &launch)
{
    std::string pipes;
    for (int p = 0; p < kPipes; ++p) {
        if (launch.busy_us[p] > 0) {
            pipes += (pipes.empty() ? "" : ",") + Quoted(PipeName(static_cast<Pipe>(p))) + ":" +
                     Number(launch.busy_us[p]);
        }
    }
    return "{\"kernel\":" + Quoted(launch.kernel) + ",\"block_dim\":" + std::to_string(launch.blocks) +
           ",\"cores\":" + std::to_string(launch.cores_started) +
           ",\"latency_us\":" + Number(launch.latency_us) + ",\"pipes\":{" + pipes +
           "},\"work\":" + WorkText(launch) + ",\"lines\":" + LinesText(launch) +
           ",\"balance\":" + Number(launch.balance) + ",\"bottleneck\":" +
           (launch.bottleneck.empty() ? "{}" : launch.bottleneck) +
           ",\"blocks\":{\"slowest\":" + std::to_string(launch.slowest) + "}}";
}

bool WriteFile(const std::string &path, const std::string &text)
{
    const std::string temporary = path + ".part";
    std::FILE *file = std::fopen(temporary.c_str(), "wb");
    if (file == nullptr) {
        return false;
    }
    const bool complete = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    return std::fclose(file) == 0 && complete && std::rename(temporary.c_str(), path.c_str()) == 0;
}

}  // namespace

std::string Quoted(const std::string &text)
{
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char code[8];
            std::snprintf(code, sizeof(code), "\\u%04x", static_cast<unsigned>(c));
            out += code;
        } else {
            out += c;
        }
    }
    return out + "\"";
}

bool WriteResult(const std::string &path, const RunOutcome &outcome)
{
    std::string launches;
    double total = 0;
    for (const LaunchReport &launch : TheSession().launches) {
        launches += (launches.empty() ? "" : ",") + LaunchText(launch);
        total += launch.latency_us;
    }
    return WriteFile(path, std::string("{\"ok\":") + (outcome.ok ? "true" : "false") +
                               ",\"declined\":" + (outcome.declined ? "true" : "false") +
                               ",\"error\":" + PhraseText(outcome.error.phrase()) + ",\"hazards\":" + HazardList() +
                               ",\"launches\":[" + launches + "],\"latency_us\":" + Number(total) +
                               ",\"instructions\":" + std::to_string(InstructionCount()) +
                               ",\"outputs_written\":" + Flags(outcome.outputs_written) +
                               ",\"input_changed\":" + Flags(outcome.input_changed) +
                               ",\"tiling\":" + Words(outcome.tiling) + "}\n");
}

}  // namespace evokernel::twin
