// The `samples` of a row as calls: operands become inputs of a graph, so that tests and tools can
// infer and run them.
#pragma once

#include <string>
#include <vector>

#include "ops/table/call.h"

namespace modelport::ops {

/// How to fill an operand: integers from 0 to below - 1, floats from [0, 1), bools either.
struct TensorDraw {
  std::int64_t below = 2;
};

struct Sample {
  std::string text;                // as written in the row
  ir::Graph graph;                 // the operands are its inputs
  std::vector<ir::NamedArg> args;  // by the names of the schema
  std::vector<TensorDraw> draws;   // one for each input of the graph
  shape::Dims dims;                // every symbol of the sample, its hint the size given

  Results infer(const OpDef& op);
};

/// The calls of a row with these sizes as hints. Throws InternalError on text that does not parse,
/// or on a symbol without a size.
std::vector<Sample> samples_of(const OpDef& op, const shape::Bindings& sizes);
/// The symbols that the samples of a row mention.
std::vector<std::string> sample_symbols(const OpDef& op);
/// Several sizes for each symbol of the row, different ones for different symbols.
std::vector<shape::Bindings> sample_sizes(const OpDef& op);

}  // namespace modelport::ops
