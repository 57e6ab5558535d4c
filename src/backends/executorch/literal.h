// What the nodes say whose results are written out: `et.constant` and `et.quantize`.
#pragma once

#include <string>

#include "ir/graph.h"
#include "weights/quantize/scheme.h"

namespace modelport::executorch {

/// The bytes of the tensor that an `et.constant` is.
std::string literal_bytes(const ir::Graph& graph, const ir::Node& node);
weights::Scheme scheme_of(const ir::Node& quantize);

}  // namespace modelport::executorch
