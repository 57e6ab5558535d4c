// A short causal convolution of each channel by itself, over the columns that a state carries from
// call to call and those of the new tokens behind them.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "ir/graph.h"

namespace modelport::ops::fusions {

/// The columns of the new tokens, after operators that take each number by itself.
struct NewColumns {
  ir::ValueId value;
  std::vector<ir::NodeId> activations;  // in order
};

struct CarriedConvolution {
  ir::NodeId node = {};
  ir::ValueId state = {}, fresh = {};    // [batch, channels, columns], [batch, channels, tokens]
  ir::ValueId weight = {}, bias = {};    // [channels, 1, width], [channels] or nothing
  std::vector<ir::ValueId> states = {};  // the last columns of both, as many as the state has
  std::vector<NewColumns> results = {};
};

struct OtherConvolution {
  ir::NodeId node = {};
  std::string why = {};  // the kernel cannot do it
};

/// Every convolution of the graph over an input and what is appended to it.
std::vector<std::variant<CarriedConvolution, OtherConvolution>> find_carried_convolutions(
    const ir::Graph& graph);

}  // namespace modelport::ops::fusions
