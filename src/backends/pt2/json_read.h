// Numbers out of JSON that may be hostile.
#pragma once

#include <cstdint>

#include "base/json.h"

namespace modelport::pt2 {

/// Throws ExportError (Code::bad_file) for what is no 64-bit integer.
std::int64_t read_integer(const Json& json);
/// A float; infinities and NaN are texts in torch's JSON.
double read_float(const Json& json);

/// A program that does not say what it should.
[[noreturn]] void damaged(std::string what);

}  // namespace modelport::pt2
