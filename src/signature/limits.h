// What a program is valid for, as one record: made from its graph, written into every artifact,
// read back by every way to run it, and held against the inputs before a run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "signature/signature.h"

namespace modelport::signature {

struct LimitedInput {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<shape::Int> shape;
};

/// An argument of the model's call that is no tensor. It became part of the program.
struct FrozenArgument {
  std::string name;
  Constant value;
};

/// A condition on data. The program computes it besides the model's own outputs.
struct DataCheck {
  std::string output;  // true where the program is right
  std::string what;
  SourceLine where;
  std::string module_path;
};

/// A buffer that a run changes: it comes in under one name and goes out under the other.
struct StateSlot {
  std::string input;
  std::string output;
};

struct Limits {
  std::vector<LimitedInput> inputs;
  std::vector<shape::Dim> dims;          // of inputs
  std::vector<shape::Guard> conditions;  // between the sizes of inputs
  std::vector<FrozenArgument> frozen;
  std::vector<DataCheck> checks;
  std::vector<StateSlot> state;
};

/// Inputs, dimensions and conditions of a graph; what the data decides is not among them.
Limits limits_of(const ir::Graph& graph);
/// The range as a condition; always true where it has no ends.
shape::Bool range_condition(const shape::Dim& dim);

using Sizes = std::span<const std::int64_t>;
/// Holds the sizes of the inputs, one entry for each, against the limits. Returns the values of the
/// symbols; throws ExportError (guard_failed) with every limit that is broken, and the model's
/// line.
shape::Values bind_sizes(const Limits& limits, const std::vector<Sizes>& inputs);
/// That a condition does not hold, as users see it.
Diagnostic broken_condition(const shape::Guard& condition, const shape::Values& values);

/// One line for each limit that a user of the program could meet.
std::vector<std::string> in_words(const Limits& limits);

std::string to_json(const Limits& limits);
/// Throws ExportError (bad_file).
Limits parse_limits(std::string_view text);

}  // namespace modelport::signature
