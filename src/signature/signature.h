// How the flat inputs and outputs of a graph sit in the model's own call: leaves in pytree order,
// their dotted names, and the structure as torch's pytree writes it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace modelport::signature {

/// A leaf that is not a tensor keeps its value; tensors (and numbers that depend on sizes) are
/// found by name in the graph.
struct Constant {
  std::variant<std::monostate, bool, std::int64_t, double, std::string> value;  // monostate: None
  bool operator==(const Constant&) const = default;
};

struct Leaf {
  std::string name;  // dotted path: "past_key_values.0.key"
  bool in_graph = true;
  Constant constant;  // where not in the graph
  bool operator==(const Leaf&) const = default;
};

struct Signature {
  std::vector<Leaf> inputs;                 // in the order of the flattened call
  std::vector<Leaf> outputs;                // in the order of the flattened result
  std::vector<std::string> argument_names;  // top-level keyword arguments of the call, in order
  std::string input_structure;  // torch.utils._pytree.treespec_dumps of (args, kwargs); empty: flat
                                // keyword arguments
  std::string output_structure;  // of the result; empty: a flat tuple
  /// Outputs that are inputs, by name: where their values differ, the model has written there.
  std::vector<std::pair<std::string, std::string>> given;
  bool operator==(const Signature&) const = default;
};

}  // namespace modelport::signature
