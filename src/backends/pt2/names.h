// Names of values in a program: Python identifiers, each given once, as torch.fx would choose them.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace modelport::pt2 {

/// Letters, digits and underscores, not starting with a digit: "past_key_values.0.key" is
/// "past_key_values_0_key".
std::string identifier(std::string_view text);

class NameScope {
 public:
  /// For inputs: the identifier itself if it is free.
  std::string claim(std::string_view wanted);
  /// For results: also avoids what Python calls something of its own ("sum" is "sum_1").
  std::string fresh(std::string_view wanted);

 private:
  std::string next(std::string base);

  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> counts_;
};

}  // namespace modelport::pt2
