// What a kernel did that the hardware forbids or punishes.
#pragma once
#include <cstdarg>
#include <memory>
#include <string>
#include <vector>

#include "evokernel/twin/at.h"

namespace evokernel::twin {

// In a sampled run most bytes hold no value, which is no fault: `uninitialised-` codes are not reported.
namespace sampled {
extern bool active;
}

// A text with the `format` of printf that it was made of and what filled it, so that it can be said in another
// language; names and numbers have no format.
struct Phrase {
    std::string text;
    std::string format;
    std::vector<Phrase> values;
};

// Words that are part of a hazard's sentence: given as %s with c_str(), they are known as what they are made of.
// `format` as in printf.
class Wording {
public:
    Wording() : Wording(Phrase{}) {}
    explicit Wording(const char *format, ...) __attribute__((format(printf, 2, 3)));
    static Wording Of(const char *format, va_list arguments);
    const char *c_str() const { return phrase_->text.c_str(); }
    bool empty() const { return phrase_->text.empty(); }
    const Phrase &phrase() const { return *phrase_; }
    bool operator==(const Wording &other) const { return phrase_->text == other.phrase_->text; }

private:
    explicit Wording(Phrase phrase);
    std::shared_ptr<const Phrase> phrase_;
};

// The same for a constant, which is given as it is and known for good.
const char *Word(const char *constant);

struct Hazard {
    std::string code;
    std::string severity;  // "error" or "warning"
    Phrase message;
    std::string file;
    int line;
};

// Records a hazard once for each (code, place); `format` as in printf, without widths that are arguments. The
// catalogues of translations are made of these literals (release/words.py).
void ReportError(const char *code, At at, const char *format, ...) __attribute__((format(printf, 3, 4)));
void ReportWarning(const char *code, At at, const char *format, ...) __attribute__((format(printf, 3, 4)));

const std::vector<Hazard> &Hazards();
void ClearHazards();
bool HasErrors();

}  // namespace evokernel::twin
