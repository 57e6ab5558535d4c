// Methods of symbolic numbers that Python's torch.SymInt and torch.SymFloat call and
// torch._C._SymNode does not have.
#include <torch/csrc/utils/python_symnode.h>

#include "binding/program.h"
#include "capture/session.h"
#include "capture/sym_number.h"

namespace modelport::binding {

namespace {

capture::SymNumber& ours(const c10::SymNode& node) {
  auto* number = dynamic_cast<capture::SymNumber*>(node.get());
  if (number == nullptr) throw py::type_error("not a symbolic number of a capture");
  return *number;
}

c10::SymNode inside_python_node(const c10::SymNode& node) {
  auto* wrapper = dynamic_cast<torch::impl::PythonSymNodeImpl*>(node.get());
  if (wrapper == nullptr) return {};
  const py::gil_scoped_acquire gil;
  const py::object inside = py::reinterpret_borrow<py::object>(wrapper->getPyObj());
  return py::isinstance<c10::SymNodeImpl>(inside) ? py::cast<c10::SymNode>(inside) : c10::SymNode();
}

}  // namespace

void bind_symbols(py::module_& module) {
  using Op = shape::Real::Op;
  capture::set_wrapper_reader(&inside_python_node);
  module.def("sym_constant", [](const c10::SymNode& node) -> py::object {
    return std::visit(
        [](const auto& x) -> py::object {
          const auto value = x.constant();
          return value ? py::cast(*value) : py::none();
        },
        ours(node).number());
  });
  module.def("sym_hint", [](const c10::SymNode& node) {
    const capture::SymNumber& number = ours(node);
    return std::visit(
        [&](const auto& x) -> py::object { return py::cast(number.session()->dims().hint(x)); },
        number.number());
  });
  module.def("sym_reads_data", [](const c10::SymNode& node) {
    const capture::SymNumber& number = ours(node);
    const shape::Dims& dims = number.session()->dims();
    const auto reads = [&](const auto& x) {
      using Kind = std::decay_t<decltype(x)>;
      if constexpr (std::is_same_v<Kind, shape::Bool>) {
        return dims.depends_on_data(x);
      } else {
        return dims.depends_on_data(shape::Bool::compare(shape::Compare::eq, x, dims.hint(x)));
      }
    };
    return std::visit(reads, number.number());
  });
  module.def("sym_trunc", [](const c10::SymNode& node) { return ours(node).trunc(); });
  module.def("sym_round", [](const c10::SymNode& node) { return ours(node).round(); });
  module.def("sym_is_ours", [](const c10::SymNode& node) {
    return dynamic_cast<capture::SymNumber*>(node.get()) != nullptr;
  });
  module.def("sym_apply", [](const c10::SymNode& node, const std::string& function) {
    static const std::map<std::string, Op> kFunctions{
        {"sqrt", Op::sqrt}, {"exp", Op::exp},   {"log", Op::log},
        {"log2", Op::log2}, {"sin", Op::sin},   {"cos", Op::cos},
        {"tan", Op::tan},   {"tanh", Op::tanh}, {"abs", Op::abs}};
    return ours(node).apply(kFunctions.at(function));
  });
}

}  // namespace modelport::binding
