// Programs in the operators of ExecuTorch. Writing them needs its schemas: executorch.cc.
#include "binding/program.h"
#include "ops/executorch/kernels.h"
#include "passes/lower.h"

namespace modelport::binding {

namespace {

/// The program with its nodes lowered; it has the weights of the one it was made from.
std::shared_ptr<Program> lower(const Program& program) {
  const py::gil_scoped_release no_gil;
  auto lowered = std::make_shared<Program>();
  lowered->graph = passes::lower_to(passes::ExecutorchTarget{}, program.graph);
  lowered->weights = program.weights;
  return lowered;
}

/// Whether the row has a word on ExecuTorch, and why it refuses.
py::tuple cell_of(const std::string& name) {
  const ops::OpDef* op = ops::find_op(name);
  if (op == nullptr) return py::make_tuple(false, std::string());
  const auto* refused = std::get_if<ops::Refuse>(&op->executorch);
  const bool filled = ops::is_filled(op->executorch) || !ops::executorch::kernel_of(*op).empty();
  return py::make_tuple(filled, refused == nullptr ? std::string() : std::string(refused->reason));
}

}  // namespace

void bind_lower_executorch(py::module_& module) {
  module.def("lower_executorch", &lower, py::arg("program"));
  module.def("executorch_cell", &cell_of, py::arg("name"));
}

}  // namespace modelport::binding
