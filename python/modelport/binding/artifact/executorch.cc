#include "binding/artifact/executorch.h"

#include <pybind11/stl.h>

#include "backends/executorch/reader.h"
#include "base/mapped_file.h"

namespace modelport::binding {

namespace py = pybind11;

namespace {

/// Names in a file need not be UTF-8; what is not is shown as such.
py::str readable(const std::string& bytes) {
  const auto size = static_cast<Py_ssize_t>(bytes.size());
  return py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(bytes.data(), size, "replace"));
}

py::object item_object(const executorch::ItemSummary& item) {
  if (const auto* tensor = std::get_if<executorch::TensorSummary>(&item)) {
    py::dict row;
    row["dtype"] = tensor->dtype;
    row["sizes"] = tensor->sizes;
    row["dynamic"] = tensor->is_dynamic;
    return row;
  }
  if (const auto* text = std::get_if<std::string>(&item)) return readable(*text);
  if (const auto* number = std::get_if<std::int64_t>(&item)) return py::int_(*number);
  if (const auto* truth = std::get_if<bool>(&item)) return py::bool_(*truth);
  if (const auto* real = std::get_if<double>(&item)) return py::float_(*real);
  return py::none();
}

py::list item_objects(const std::vector<executorch::ItemSummary>& items) {
  py::list rows;
  for (const executorch::ItemSummary& item : items) rows.append(item_object(item));
  return rows;
}

py::dict method_dict(const executorch::ProgramMethod& method) {
  py::dict row;
  row["inputs"] = item_objects(method.inputs);
  row["outputs"] = item_objects(method.outputs);
  py::dict operators;
  for (const auto& [name, count] : method.operators) operators[readable(name)] = count;
  row["operators"] = operators;
  py::list delegates;
  for (const executorch::DelegateSummary& delegate : method.delegates)
    delegates.append(py::make_tuple(readable(delegate.backend), delegate.bytes, delegate.nodes));
  row["delegates"] = delegates;
  row["instructions"] = method.instructions;
  row["arenas"] = method.arenas;
  return row;
}

py::dict read(const std::string& path) {
  const MappedFile file = MappedFile::open(path);
  const executorch::ProgramSummary summary = executorch::summarize_program(file.bytes(), path);
  py::dict methods;
  py::dict constant_methods;
  for (const executorch::ProgramMethod& method : summary.methods) {
    if (method.is_constant()) {
      constant_methods[readable(method.name)] = item_objects(method.outputs);
    } else {
      methods[readable(method.name)] = method_dict(method);
    }
  }
  py::dict named;
  for (const executorch::NamedSummary& one : summary.named_data)
    named[readable(one.key)] = one.bytes;
  py::list external;
  for (const std::string& key : summary.external) external.append(readable(key));
  py::dict row;
  row["version"] = summary.version;
  row["methods"] = methods;
  row["constant_methods"] = constant_methods;
  row["constants"] = summary.constants;
  row["constant_bytes"] = summary.constant_bytes;
  row["initial_bytes"] = summary.initial_bytes;
  row["delegate_bytes"] = summary.delegate_bytes;
  row["named_data"] = named;
  row["external"] = external;
  return row;
}

}  // namespace

void bind_executorch_reader(py::module_& module) {
  module.def("read_executorch", &read, py::arg("path"));
}

}  // namespace modelport::binding
