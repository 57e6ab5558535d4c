#include "backends/onnx/value_names.h"

#include <fmt/format.h>

namespace modelport::onnx {

ValueNames::ValueNames(const ir::Graph& graph) : names_(graph.values().size()) {
  const auto give = [&](ir::ValueId id, const std::string& name) {
    if (!taken_.insert(name).second)
      throw ExportError({.code = Code::bad_graph,
                         .what = fmt::format("two inputs, outputs or weights are called {}", name),
                         .ways_out = {"give one of them another name with names={...}"}});
    names_[id.index] = name;
  };
  for (const ir::ValueId id : graph.inputs) give(id, graph.value(id).name);
  for (const ir::Output& output : graph.outputs)
    give(*output.value.get<ir::ValueId>(), output.name);
  for (std::size_t i = 0; i < graph.assumptions.size(); ++i) {
    const ir::ValueId id = graph.assumptions[i].value;
    if (names_[id.index].empty()) rename(id, fmt::format("modelport.check.{}", i));
  }
  // A weight gives way to an input or output of the same name.
  for (const ir::ValueId id : graph.weights) rename(id, graph.value(id).name);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i].empty()) rename({static_cast<std::uint32_t>(i)}, fmt::format("v{}", i));
  }
}

void ValueNames::rename(ir::ValueId id, const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
  names_[id.index] = std::move(name);
}

}  // namespace modelport::onnx
