// JSON that comes from files: parsed with a limit on nesting, without duplicate keys, and with
// errors as ExportError (Code::bad_file).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace modelport {

using Json = nlohmann::json;

struct JsonSource {
  std::string name;  // what the messages call the text: a file, or a part of one
  std::vector<std::string> ways_out = {"download the file again"};
  std::size_t max_depth = 128;
};

/// Reports the first syntax error, or all duplicate keys. Hostile text costs an error, not the
/// stack.
Json parse_json(std::string_view text, const JsonSource& source);

/// An integer of 64 bits; nothing for another value, and for a larger one, which nlohmann would
/// wrap.
std::optional<std::int64_t> integer_in(const Json& json);

/// Text from a file as part of a message: in double quotes, escaped, valid UTF-8, cut when long.
std::string quote_text(std::string_view text);

}  // namespace modelport
