// Arguments of operators as JSON, by the type that the operator's schema gives them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "backends/pt2/sym_nodes.h"
#include "ir/graph.h"

namespace modelport::pt2 {

/// {"type": "cuda", "index": 0} for "cuda:0".
void append_device(std::string& out, std::string_view device);

class Arguments {
 public:
  /// `name_of` gives the name of a value; numbers that have to be computed become nodes of
  /// `numbers`.
  Arguments(const ir::Graph& graph, const std::vector<std::string>& names, SymNodes& numbers,
            const SymKinds& kinds)
      : graph_(graph), names_(names), numbers_(numbers), kinds_(kinds) {}

  /// `type` as in the schema, "Tensor?[]"; empty where there is none, then the value decides.
  void append(std::string& out, const ir::Arg& arg, std::string_view type);
  bool is_tensor(const ir::Arg& arg) const;
  /// A number of any kind; nothing for what is none.
  std::optional<SymOperand> number(const ir::Arg& arg);

 private:
  void append_list(std::string& out, const ir::ArgList& list, std::string_view type);
  void append_tensors(std::string& out, const ir::ArgList& list);
  void append_numbers(std::string& out, const ir::ArgList& list, bool floats);
  void append_word(std::string& out, const std::string& word, std::string_view type);

  const ir::Graph& graph_;
  const std::vector<std::string>& names_;  // by value
  SymNodes& numbers_;
  const SymKinds& kinds_;
};

}  // namespace modelport::pt2
