#include "capture/bind_sizes.h"

#include <fmt/format.h>

#include "capture/torch_dtype.h"
#include "ir/text.h"
#include "signature/limits.h"

namespace modelport::capture {
namespace {

void check_dtypes(const ir::Graph& graph, const std::vector<at::Tensor>& inputs) {
  Diagnostics found;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ir::Value& input = graph.value(graph.inputs[i]);
    const Dtype dtype = from_torch(inputs[i].scalar_type());
    if (dtype == input.tensor().dtype) continue;
    found.add({.code = Code::bad_input,
               .what = fmt::format("input {} is {} with {} axes, the graph takes {}", input.name,
                                   name(dtype), inputs[i].dim(), ir::print(input.type)),
               .ways_out = {fmt::format("convert it: {0} = {0}.to(...)", input.name)}});
  }
  found.throw_if_any();
}

}  // namespace

bool fails(const shape::Guard& guard, const shape::Values& values) {
  try {
    return !evaluate(guard.condition, values);
  } catch (const ExportError&) {
    return false;
  }
}

shape::Values bind_sizes(const ir::Graph& graph, const std::vector<at::Tensor>& inputs) {
  const signature::Limits limits = signature::limits_of(graph);
  if (inputs.size() == graph.inputs.size()) check_dtypes(graph, inputs);
  std::vector<signature::Sizes> sizes;
  for (const at::Tensor& tensor : inputs)
    sizes.emplace_back(tensor.sizes().data(), tensor.sizes().size());
  return signature::bind_sizes(limits, sizes);
}

}  // namespace modelport::capture
