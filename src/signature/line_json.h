// Lines of the model's code in JSON.
#pragma once

#include "base/error.h"
#include "base/json.h"

namespace modelport::signature {

Json line_json(const SourceLine& where);
/// Throws Json::exception where something else stands there.
SourceLine parse_line(const Json& json);
/// An integer of 64 bits; throws Json::exception for anything else.
std::int64_t parse_integer(const Json& json);

}  // namespace modelport::signature
