// The headers of a checkpoint, for Python to bind weights by name: where each tensor lies, without
// reading it.
#include "weights/checkpoint.h"

#include <pybind11/stl.h>

#include "binding/artifact/checkpoint.h"

namespace modelport::binding {

namespace py = pybind11;

namespace {

py::list stored_tensors(const std::string& path) {
  const weights::Checkpoint checkpoint = weights::Checkpoint::open(path);
  py::list rows;
  for (const weights::CheckpointTensor& tensor : checkpoint.tensors()) {
    const weights::TensorEntry& entry = tensor.entry;
    rows.append(py::make_tuple(entry.name, tensor.file->path().string(), entry.offset, entry.bytes,
                               std::string(name(entry.dtype)), entry.shape));
  }
  return rows;
}

}  // namespace

void bind_checkpoint(py::module_& module) { module.def("stored_tensors", &stored_tensors); }

}  // namespace modelport::binding
