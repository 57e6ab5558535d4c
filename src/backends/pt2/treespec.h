// The structure of a call or a result, from the text that torch's pytree wrote down.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace modelport::pt2 {

/// One level of nested arguments or results.
struct Structure {
  std::string type;  // as the file has it, "builtins.dict"; empty: a leaf
  /// What the type needs beside its children, such as the keys of a dictionary: JSON that was
  /// parsed once, in the order of the file, which matters to caches.
  std::string context;
  std::vector<Structure> children;
  std::vector<std::string> names;  // of the children: keys or fields if the context has them
  bool is_leaf() const { return type.empty(); }
};

/// Throws ExportError (Code::bad_file) for text that is no structure. How deep one may be is
/// limited, so that walking it needs little of the stack. Nothing is made of it here: which types
/// there are is for the caller to know.
Structure parse_structure(std::string_view treespec);

/// Dotted paths in the order of the leaves: "past_key_values.0.key".
std::vector<std::string> output_names(const Structure& result);
struct CallNames {
  std::vector<std::string> leaves;
  std::vector<std::string> arguments;  // top level
};
/// `positional` names the positional arguments, as far as it goes.
CallNames input_names(const Structure& call, const std::vector<std::string>& positional);

}  // namespace modelport::pt2
