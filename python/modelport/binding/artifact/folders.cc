// Folders that artifacts are written into, and the fingerprints of files that they point into.
#include "binding/artifact/folders.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "driver/artifact_folder.h"
#include "weights/fingerprint.h"

namespace modelport::binding {

namespace py = pybind11;

namespace {

using driver::ArtifactFolder;

std::unique_ptr<ArtifactFolder> open(const std::string& out, bool is_file,
                                     std::vector<std::string> parts) {
  const py::gil_scoped_release no_gil;  // it may have to wait for another export
  return std::make_unique<ArtifactFolder>(
      driver::Destination{.out = out, .is_file = is_file, .parts = std::move(parts)});
}

std::vector<std::string> commit(ArtifactFolder& folder) {
  const py::gil_scoped_release no_gil;
  std::vector<std::string> files;
  for (const driver::Path& file : folder.commit()) files.push_back(file.string());
  return files;
}

/// For tests: `call` is called before each change that a commit makes to the disk.
void set_before_step(const py::object& call) {
  if (call.is_none()) {
    driver::before_step() = nullptr;
    return;
  }
  // Never destroyed: the process may end without Python.
  const auto* const kept = new py::object(call);
  driver::before_step() = [kept] {
    const py::gil_scoped_acquire gil;
    (*kept)();
  };
}

}  // namespace

void bind_folders(py::module_& module) {
  py::class_<ArtifactFolder>(module, "ArtifactFolder")
      .def(py::init(&open), py::arg("out"), py::arg("is_file"), py::arg("parts"))
      .def_property_readonly("folder", [](const ArtifactFolder& f) { return f.folder().string(); })
      .def_property_readonly("target", [](const ArtifactFolder& f) { return f.target().string(); })
      .def("commit", &commit)
      .def("discard", &ArtifactFolder::discard, py::call_guard<py::gil_scoped_release>());
  module.def("before_step", &set_before_step);
  module.def(
      "is_half_replaced",
      [](const std::string& place) { return driver::is_half_replaced_at(place); },
      py::call_guard<py::gil_scoped_release>());
  module.def(
      "fingerprint", [](const std::string& file) { return weights::fingerprint(file).text(); },
      py::call_guard<py::gil_scoped_release>());
  module.def(
      "is_unchanged",
      [](const std::string& file, const std::string& before) {
        return weights::is_unchanged(file, weights::Fingerprint::parse(before, file));
      },
      py::call_guard<py::gil_scoped_release>());
}

}  // namespace modelport::binding
