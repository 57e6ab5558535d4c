// What XNNPACK is given of a graph: nodes, values and constants, as bytes after the schema of the
// executorch package.
//
// Nodes have the names of the schema without XNN (`xnn.FullyConnected`), its fields without `_id`
// (`input`, `input1`, `filter`, `bias`), and lists where it has fields for rows and columns
// (`padding=[1, 1]`). What differs:
//   xnn.Concatenate(inputs=[%a, %b], axis=1)       two to five
//   xnn.RowSum(input=%x, factor=0.5)               the last axis summed up, times the factor
//   xnn.Convert(input=%x) : i8[...]                rounded to 8 bits, with a scale for each row
//   xnn.FullyConnected(input=%x, filter=%codes, scales=%scales)   results of one et.quantize
//   xnn.Clamp(input=%x, min=0.0, max=inf)
// Filters of convolutions are as torch has them; their axes are moved when they are written.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/executorch/bounds.h"
#include "backends/executorch/data.h"
#include "ir/graph.h"

namespace modelport::executorch::xnnpack {

/// Nodes of XNNPACK that stand in a row.
struct Run {
  const ir::Graph& graph;
  std::size_t begin = 0;
  std::size_t end = 0;
  std::function<bool(ir::ValueId)> is_needed_later;        // behind the run
  std::function<bool(ir::ValueId)> is_constant;            // of weights: nobody writes to it
  std::function<ProgramData::Source(ir::ValueId)> source;  // of a weight
};

struct Payload {
  std::string bytes;
  std::vector<ir::ValueId> inputs;  // as the call has them
  std::vector<ir::ValueId> outputs;
};

/// Weights go to the program's named data.
Payload payload_of(const Run& run, Bounds& bounds, ProgramData& data);

}  // namespace modelport::executorch::xnnpack
