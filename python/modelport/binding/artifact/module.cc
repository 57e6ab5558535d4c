// The extension module modelport._artifact: looks into artifacts, and gives them their places,
// without loading torch.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "backends/onnx/reader.h"
#include "base/mapped_file.h"
#include "binding/artifact/checkpoint.h"
#include "binding/artifact/executorch.h"
#include "binding/artifact/folders.h"
#include "binding/artifact/limits.h"
#include "binding/artifact/search_ahead.h"
#include "binding/errors.h"

namespace modelport::binding {

namespace py = pybind11;

namespace {

/// Names in a file need not be UTF-8; what is not is shown as such.
py::str text(const std::string& bytes) {
  const auto size = static_cast<Py_ssize_t>(bytes.size());
  return py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(bytes.data(), size, "replace"));
}

py::list texts(const std::vector<std::string>& all) {
  py::list rows;
  for (const std::string& one : all) rows.append(text(one));
  return rows;
}

py::list values(const std::vector<onnx::ValueSummary>& all) {
  py::list rows;
  for (const onnx::ValueSummary& value : all) {
    py::dict row;
    row["name"] = text(value.name);
    row["dtype"] = value.dtype;
    row["shape"] = value.has_shape ? py::object(texts(value.shape)) : py::none();
    rows.append(row);
  }
  return rows;
}

py::list weights(const std::vector<onnx::WeightSummary>& all) {
  py::list rows;
  for (const onnx::WeightSummary& weight : all) {
    py::dict row;
    row["name"] = text(weight.name);
    row["dtype"] = weight.dtype;
    row["shape"] = weight.shape;
    row["bytes"] = weight.bytes;
    row["file"] = text(weight.file);
    row["offset"] = weight.offset;
    rows.append(row);
  }
  return rows;
}

py::list nodes(const std::vector<onnx::NodeSummary>& all) {
  py::list rows;
  for (const onnx::NodeSummary& node : all)
    rows.append(py::make_tuple(text(node.op), text(node.name), text(node.source),
                               texts(node.inputs), texts(node.outputs), text(node.attributes)));
  return rows;
}

py::dict summary_dict(const onnx::ModelSummary& summary, bool with_nodes) {
  py::dict row;
  row["ir_version"] = summary.ir_version;
  row["producer"] = text(summary.producer_name);
  row["producer_version"] = text(summary.producer_version);
  row["graph"] = text(summary.graph_name);
  py::dict opsets;
  for (const auto& [domain, version] : summary.opsets) opsets[text(domain)] = version;
  row["opsets"] = opsets;
  py::dict metadata;
  for (const auto& [key, value] : summary.metadata) metadata[text(key)] = text(value);
  row["metadata"] = metadata;
  row["inputs"] = values(summary.inputs);
  row["outputs"] = values(summary.outputs);
  row["weights"] = weights(summary.weights);
  py::dict operators;
  for (const auto& [op, count] : summary.operators) operators[text(op)] = count;
  row["operators"] = operators;
  if (with_nodes) row["nodes"] = nodes(summary.nodes);
  return row;
}

py::dict read_onnx(const std::string& path, bool with_nodes) {
  const MappedFile file = MappedFile::open(path);
  return summary_dict(onnx::summarize(file.bytes(), path), with_nodes);
}

/// As bytes: these are the names that onnxruntime opens, whatever they look like as text.
py::list data_files(const std::string& path) {
  const MappedFile file = MappedFile::open(path);
  py::list names;
  for (const std::string& name : onnx::summarize(file.bytes(), path).data_files)
    names.append(py::bytes(name));
  return names;
}

}  // namespace
}  // namespace modelport::binding

PYBIND11_MODULE(_artifact, module) {
  using namespace modelport;
  binding::bind_errors(module);
  binding::bind_checkpoint(module);
  binding::bind_folders(module);
  binding::bind_limits(module);
  binding::bind_search_ahead(module);
#ifdef MODELPORT_WITH_EXECUTORCH
  binding::bind_executorch_reader(module);
#endif
  module.def("read_onnx", &binding::read_onnx, pybind11::arg("path"),
             pybind11::arg("nodes") = false);
  module.def("data_files", &binding::data_files, pybind11::arg("path"));
  // Of the other extension, which cannot say so where its symbols are missing.
  module.attr("torch_version") = MODELPORT_TORCH_VERSION;
  module.def("further_outputs", [](const std::vector<std::string>& names) {
    return pybind11::bytes(onnx::further_outputs(names));
  });
  module.def("settable_flag",
             [](const std::string& name) { return pybind11::bytes(onnx::settable_flag(name)); });
}
