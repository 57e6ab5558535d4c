// JSON written as text, piece by piece: a program of thousands of nodes is built in milliseconds,
// without a tree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace modelport::pt2 {

/// In quotes, escaped; bytes that are no UTF-8 become U+FFFD.
void append_string(std::string& out, std::string_view text);
void append_integer(std::string& out, std::int64_t number);
/// Infinities and NaN as the strings that torch's reader turns back into floats.
void append_float(std::string& out, double number);

/// Puts commas between items: `JsonItems items(out); append_integer(items.next(), 1);`
class JsonItems {
 public:
  explicit JsonItems(std::string& out) : out_(out) {}
  /// The text to append the next item to.
  std::string& next() {
    if (any_) out_ += ", ";
    any_ = true;
    return out_;
  }

 private:
  std::string& out_;
  bool any_ = false;
};

}  // namespace modelport::pt2
