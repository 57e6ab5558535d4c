#include "passes/contract.h"

#include <fmt/format.h>

#include <algorithm>

namespace modelport::passes {
namespace {

bool is_of(std::string_view op, std::span<const std::string_view> dialects) {
  return std::ranges::any_of(dialects,
                             [&](std::string_view dialect) { return op.starts_with(dialect); });
}

bool is_symbolic(const ir::Arg& arg) {
  if (const auto* size = arg.get<shape::Int>()) return !size->is_constant();
  if (const auto* list = arg.get<ir::ArgList>()) return std::ranges::any_of(*list, is_symbolic);
  return arg.get<shape::Real>() != nullptr || arg.get<shape::Bool>() != nullptr;
}

class Check {
 public:
  Check(const ir::Graph& graph, const Contract& contract) : graph_(graph), contract_(contract) {}

  Diagnostics run() && {
    for (const ir::ValueId id : graph_.inputs) look_at(id, "input", {});
    for (const ir::Node& node : graph_.nodes()) look_at(node);
    return std::move(found_);
  }

 private:
  void look_at(const ir::Node& node) {
    const bool is_own = contract_.dialects.empty() || is_of(node.op, contract_.dialects);
    if (!is_own || is_of(node.op, contract_.foreign)) add(node.op, node.place, "is no operator");
    for (const ir::NamedArg& named : node.args) {
      if (!contract_.symbolic_arguments && is_symbolic(named.arg))
        add(node.op, node.place, fmt::format("has a symbolic {}, which is none", named.name));
    }
    for (const ir::ValueId result : node.results) look_at(result, node.op, node.place);
  }

  void look_at(ir::ValueId id, std::string_view of, ir::PlaceId place) {
    const auto* tensor = std::get_if<ir::TensorType>(&graph_.value(id).type);
    if (tensor == nullptr && !contract_.plain_numbers)
      add(of, place, "gives a number, which is no value");
    if (tensor != nullptr && !contract_.complex_numbers && is_complex(tensor->dtype))
      add(of, place, "gives complex numbers, which are no values");
  }

  void add(std::string_view op, ir::PlaceId place, std::string_view why) {
    const ir::Place& at = graph_.place(place);
    found_.add({.code = Code::bad_graph,
                .what = fmt::format("{} {} of a graph for {}", op, why, contract_.target),
                .where = at.where,
                .module_path = at.module_path});
  }

  const ir::Graph& graph_;
  const Contract& contract_;
  Diagnostics found_;
};

}  // namespace

Diagnostics violations(const ir::Graph& graph, const Contract& contract) {
  return Check(graph, contract).run();
}

void hold(const ir::Graph& graph, const Contract& contract) {
  const Diagnostics found = violations(graph, contract);
  if (!found.empty()) throw InternalError(found.all().front().what);
}

}  // namespace modelport::passes
