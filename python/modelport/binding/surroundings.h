// Where the model's Python code stands while an operator is recorded: the line, and the module that
// is running.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <unordered_map>
#include <vector>

#include "capture/session.h"

namespace modelport::binding {

namespace py = pybind11;

class PythonSurroundings final : public capture::Surroundings {
 public:
  ~PythonSurroundings() override;
  ir::Place place() override;
  std::optional<capture::Number> symbolic_number(const at::Tensor& tensor) override;

  /// The dotted paths of the model's modules, by identity.
  void name_module(py::handle module, std::string path) { paths_[module.ptr()] = std::move(path); }
  bool enter_module(py::handle module);
  void leave_module() { stack_.pop_back(); }
  /// For a graph that is only compared: finding the line takes a tenth of a capture.
  void leave_out_places() { places_ = false; }

 private:
  struct Code {
    bool of_model = false;  // not torch's and not ours
    std::string file;
    std::string function;
  };
  const Code& code_of(PyCodeObject* code);
  std::unordered_map<PyCodeObject*, Code> codes_;  // each holds a reference
  std::unordered_map<const PyObject*, std::string> paths_;
  std::vector<const std::string*> stack_;
  bool places_ = true;
};

}  // namespace modelport::binding
