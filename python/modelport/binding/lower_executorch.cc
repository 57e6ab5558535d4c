// Programs in the operators of ExecuTorch. Writing them needs its schemas: executorch.cc.
#include <pybind11/stl.h>

#include "binding/program.h"
#include "ops/executorch/kernels.h"
#include "passes/lower.h"
#include "passes/xnnpack.h"

namespace modelport::binding {

namespace {

/// (form, group) or None, for products and for embeddings.
using Form = std::optional<std::pair<std::string, std::optional<std::int64_t>>>;

ops::executorch::Storing storing_of(const Form& linear, const Form& embedding) {
  ops::executorch::Storing storing;
  if (linear) ops::executorch::store_linear(storing, linear->first, linear->second);
  if (embedding)
    storing.embedding = ops::executorch::embedding_stored(embedding->first, embedding->second);
  return storing;
}

/// The program with its nodes lowered; it has the weights of the one it was made from.
std::shared_ptr<Program> lower_to_executorch(const Program& program, const Form& embedding) {
  const py::gil_scoped_release no_gil;
  auto lowered = std::make_shared<Program>();
  lowered->graph = passes::lower_to(
      passes::ExecutorchTarget{.storing = storing_of(std::nullopt, embedding)}, program.graph);
  lowered->weights = program.weights;
  return lowered;
}

/// The same with XNNPACK; and (row, why, how many calls) of what stays with kernels.
py::tuple lower_xnnpack(const Program& program, const Form& linear, const Form& embedding,
                        std::size_t least_nodes) {
  auto lowered = std::make_shared<Program>();
  passes::XnnpackLowered made;
  {
    const py::gil_scoped_release no_gil;
    made = passes::lower_to_xnnpack(
        program.graph, {.storing = storing_of(linear, embedding), .least_nodes = least_nodes});
  }
  lowered->graph = std::move(made.graph);
  lowered->weights = program.weights;
  py::list left;
  for (const auto& [row, count] : made.left)
    left.append(py::make_tuple(std::string(row.op), row.why, count));
  return py::make_tuple(lowered, made.delegates, left);
}

/// Whether the row has a word on ExecuTorch, and why it refuses.
py::tuple cell_of(const std::string& name) {
  const ops::OpDef* op = ops::find_op(name);
  if (op == nullptr) return py::make_tuple(false, std::string());
  const auto* refused = std::get_if<ops::Refuse>(&op->executorch);
  const bool filled = ops::is_filled(op->executorch) || !ops::executorch::kernel_of(*op).empty();
  return py::make_tuple(filled, refused == nullptr ? std::string() : std::string(refused->reason));
}

bool has_xnnpack_cell(const std::string& name) {
  const ops::OpDef* op = ops::find_op(name);
  return op != nullptr && ops::is_filled(op->xnnpack);
}

}  // namespace

void bind_lower_executorch(py::module_& module) {
  module.def("lower_executorch", &lower_to_executorch, py::arg("program"),
             py::arg("embedding") = py::none());
  module.def("lower_xnnpack", &lower_xnnpack, py::arg("program"), py::arg("linear"),
             py::arg("embedding"), py::arg("least_nodes"));
  module.def("executorch_cell", &cell_of, py::arg("name"));
  module.def("has_xnnpack_cell", &has_xnnpack_cell, py::arg("name"));
}

}  // namespace modelport::binding
