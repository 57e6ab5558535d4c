// The JSON of a graph while it is being written: nodes and the types of the values they give, each
// in its own text, put together at the end.
#pragma once

#include <string>
#include <string_view>

#include "backends/pt2/json_text.h"
#include "backends/pt2/names.h"
#include "backends/pt2/sym_expr.h"

namespace modelport::pt2 {

/// How an argument is passed, by torch's number for it.
enum class Passing : std::uint8_t { positional = 1, keyword = 2 };

/// One node; the parts are JSON, without the brackets around the lists.
struct NodeText {
  std::string_view target;
  std::string inputs;
  std::string outputs;
  std::string_view metadata = "{}";
  std::string name;
};

void append_tensor_argument(std::string& out, std::string_view name);
/// `{"name": "self", "arg": <arg>, "kind": 1}`, after a comma if need be.
void append_input(std::string& inputs, std::string_view name, std::string_view arg,
                  Passing passing = Passing::positional);

class GraphText {
 public:
  /// `device` is where its tensors lie: "cuda:0".
  explicit GraphText(std::string_view device) : device_(device) {}
  const std::string& device() const { return device_; }
  NameScope& names() { return names_; }
  void add(const NodeText& node);
  void add_tensor(std::string_view name, std::string_view type_json);
  void add_number(SymKind kind, std::string_view name, std::string_view value_json);

  /// {"inputs": [...], "outputs": [...], "nodes": [...], ...}
  std::string finish(std::string_view inputs, std::string_view outputs) const;

 private:
  std::string device_;
  NameScope names_;
  std::string nodes_;
  std::string tensors_;
  std::string ints_;
  std::string reals_;
  std::string bools_;
};

}  // namespace modelport::pt2
