// ExecuTorch programs: graphs in its dialect, with their limits, written.
#include <pybind11/stl.h>

#include "backends/executorch/writer.h"
#include "binding/program.h"
#include "capture/torch_dtype.h"

namespace modelport::binding {

namespace {

/// A method as Python gives it, with the store that its weights are streamed from.
struct GivenMethod {
  std::string name;
  std::shared_ptr<Program> program;
  weights::WeightStore store;
  executorch::GivenBounds bounds;
  std::vector<signature::FrozenArgument> frozen;
};

/// The program with other names for some axes; those with one name are one.
std::shared_ptr<Program> rename_axes(const Program& program, const Names& axes) {
  shape::Substitution renamed;
  for (const auto& [name, other] : axes) renamed.emplace(name, shape::Int::symbol(other));
  auto other = std::make_shared<Program>();
  other->graph = program.graph;
  other->graph.substitute(renamed);
  other->weights = program.weights;
  return other;
}

std::vector<signature::FrozenArgument> frozen_of(const py::dict& given) {
  std::vector<signature::FrozenArgument> frozen;
  for (const auto& [name, value] : given)
    frozen.push_back({py::cast<std::string>(name), constant_of(value)});
  return frozen;
}

GivenMethod method_of(const py::dict& row) {
  auto program = py::cast<std::shared_ptr<Program>>(row["program"]);
  return {.name = py::cast<std::string>(row["name"]),
          .program = program,
          .store = store_of(*program, sources_of(row["places"], row["made"])),
          .bounds = py::cast<executorch::GivenBounds>(row["bounds"]),
          .frozen = frozen_of(py::cast<py::dict>(row["frozen"]))};
}

executorch::MethodSource source_of(const GivenMethod& method) {
  return {.name = method.name,
          .graph = method.program->graph,
          .weights = method.store,
          .bounds = method.bounds,
          .frozen = method.frozen};
}

executorch::ConstantMethod::Item item_of(const py::handle& value) {
  if (py::isinstance<py::bool_>(value)) return py::cast<bool>(value);
  if (py::isinstance<py::int_>(value)) return py::cast<std::int64_t>(value);
  if (py::isinstance<py::float_>(value)) return py::cast<double>(value);
  if (py::isinstance<py::str>(value)) return py::cast<std::string>(value);
  const at::Tensor tensor = py::cast<at::Tensor>(value).detach().cpu().contiguous();
  return executorch::TensorLiteral{
      .dtype = capture::from_torch(tensor.scalar_type()),
      .shape = tensor.sizes().vec(),
      .bytes = {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

executorch::ConstantMethod constant_method(const py::handle& name, const py::handle& value) {
  executorch::ConstantMethod method{.name = py::cast<std::string>(name), .items = {}};
  if (!py::isinstance<py::list>(value) && !py::isinstance<py::tuple>(value)) {
    method.items.push_back(item_of(value));
    return method;
  }
  for (const py::handle item : value) method.items.push_back(item_of(item));
  return method;
}

executorch::Delegate delegate_of(const py::dict& row) {
  executorch::Delegate delegate{
      .backend = py::cast<std::string>(row["backend"]),
      .payload = executorch::blob_of(py::cast<py::bytes>(row["payload"]))};
  for (const auto& [key, value] : py::cast<py::dict>(row["compile_specs"]))
    delegate.compile_specs.emplace_back(py::cast<std::string>(key), py::cast<py::bytes>(value));
  return delegate;
}

py::dict written_row(const executorch::MethodWritten& method) {
  py::dict row;
  row["arena_bytes"] = method.arena_bytes;
  row["least_arena_bytes"] = method.least_arena_bytes;
  row["state_bytes"] = method.state_bytes;
  row["instructions"] = method.instructions;
  row["assumed_bounds"] = method.assumed_bounds;
  return row;
}

py::dict report_of(const executorch::ExecutorchWritten& written) {
  py::list files;
  for (const auto& file : written.files) files.append(file.string());
  py::dict methods;
  for (const executorch::MethodWritten& method : written.methods)
    methods[py::str(method.name)] = written_row(method);
  py::list losses;
  for (const weights::ConversionLoss& loss : written.losses)
    losses.append(py::make_tuple(loss.name, std::string(name(loss.from)),
                                 std::string(name(loss.to)), loss.counts.overflows,
                                 loss.counts.underflows));
  py::dict report;
  report["files"] = files;
  report["methods"] = methods;
  report["losses"] = losses;
  return report;
}

py::dict write_program(const std::string& path, const py::dict& given) {
  std::vector<GivenMethod> methods;
  for (const py::handle row : py::cast<py::list>(given["methods"]))
    methods.push_back(method_of(py::cast<py::dict>(row)));
  executorch::ExecutorchRequest request;
  for (const GivenMethod& method : methods) request.methods.push_back(source_of(method));
  for (const auto& [name, value] : py::cast<py::dict>(given["constant_methods"]))
    request.constant_methods.push_back(constant_method(name, value));
  for (const py::handle row : py::cast<py::list>(given["delegates"]))
    request.delegates.push_back(delegate_of(py::cast<py::dict>(row)));
  for (const auto& [key, bytes] : py::cast<py::dict>(given["named_data"]))
    request.named_data.push_back(
        {py::cast<std::string>(key), executorch::blob_of(py::cast<py::bytes>(bytes))});
  request.options = {.weights_beside = py::cast<bool>(given["weights_beside"]),
                     .checks_as_outputs = py::cast<bool>(given["checks_as_outputs"]),
                     .with_limits = py::cast<bool>(given["with_limits"])};
  executorch::ExecutorchWritten written;
  {
    const py::gil_scoped_release no_gil;
    written = executorch::write_executorch(request, path);
  }
  return report_of(written);
}

py::dict measure(const py::dict& given) {
  const GivenMethod method = method_of(given);
  return written_row(executorch::measure(source_of(method)));
}

/// What a lowered program is valid for, as JSON.
std::string limits_of_program(const std::shared_ptr<Program>& program,
                              const executorch::GivenBounds& bounds, const py::dict& frozen,
                              bool with_checks) {
  const weights::WeightStore store;  // of no concern here
  const executorch::MethodSource source{
      .graph = program->graph, .weights = store, .bounds = bounds, .frozen = frozen_of(frozen)};
  return signature::to_json(executorch::limits_of(source, with_checks));
}

}  // namespace

void bind_executorch(py::module_& module) {
  module.def("rename_axes", &rename_axes, py::arg("program"), py::arg("axes"));
  module.def("executorch_limits", &limits_of_program, py::arg("program"), py::arg("bounds"),
             py::arg("frozen"), py::arg("with_checks"));
  module.def("measure_executorch", &measure);
  module.def("write_executorch", &write_program);
}

}  // namespace modelport::binding
