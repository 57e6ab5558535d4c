#include "binding/surroundings.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/python_symnode.h>

namespace modelport::binding {

namespace {

std::string text_of(PyObject* owned) {
  const py::object object = py::reinterpret_steal<py::object>(owned);
  return object ? py::cast<std::string>(object) : std::string();
}

/// "modeling_qwen3.py" for installed packages, the path as it is for the user's own files.
std::string short_file(const std::string& file) {
  const auto packages = file.find("site-packages/");
  return packages == std::string::npos ? file : file.substr(file.rfind('/') + 1);
}

bool belongs_to_model(const std::string& file) {
  for (const char* ours :
       {"/torch/", "/modelport/", "<frozen", "<string>", "/contextlib.py", "/functools.py"}) {
    if (file.find(ours) != std::string::npos) return false;
  }
  return true;
}

}  // namespace

PythonSurroundings::~PythonSurroundings() {
  const py::gil_scoped_acquire gil;
  for (auto& [code, facts] : codes_) Py_DECREF(code);
}

const PythonSurroundings::Code& PythonSurroundings::code_of(PyCodeObject* code) {
  const auto [found, is_new] = codes_.try_emplace(code);
  if (is_new) {
    Py_INCREF(code);
    auto* object = reinterpret_cast<PyObject*>(code);
    const std::string file = text_of(PyObject_GetAttrString(object, "co_filename"));
    found->second.of_model = belongs_to_model(file);
    found->second.file = short_file(file);
    found->second.function = text_of(PyObject_GetAttrString(object, "co_qualname"));
  }
  return found->second;
}

ir::Place PythonSurroundings::place() {
  if (!places_) return {};
  const py::gil_scoped_acquire gil;
  ir::Place here;
  if (!stack_.empty()) here.module_path = *stack_.back();
  auto frame = py::reinterpret_steal<py::object>(
      reinterpret_cast<PyObject*>(PyThreadState_GetFrame(PyThreadState_Get())));
  while (frame) {
    auto* raw = reinterpret_cast<PyFrameObject*>(frame.ptr());
    const auto code =
        py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(raw)));
    const Code& facts = code_of(reinterpret_cast<PyCodeObject*>(code.ptr()));
    if (facts.of_model) {
      here.where = {facts.file, PyFrame_GetLineNumber(raw), facts.function};
      return here;
    }
    frame = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(raw)));
  }
  return here;
}

std::optional<capture::Number> PythonSurroundings::symbolic_number(const at::Tensor& tensor) {
  const py::gil_scoped_acquire gil;
  const auto object = py::reinterpret_steal<py::object>(THPVariable_Wrap(tensor));
  if (!py::hasattr(object, "_wrapped_number")) return std::nullopt;
  const py::object number = object.attr("_wrapped_number");
  if (torch::is_symint(number)) return capture::number_of(py::cast<c10::SymInt>(number));
  if (torch::is_symfloat(number)) return capture::number_of(py::cast<c10::SymFloat>(number));
  if (torch::is_symbool(number)) return capture::number_of(py::cast<c10::SymBool>(number));
  return std::nullopt;
}

bool PythonSurroundings::enter_module(py::handle module) {
  const auto found = paths_.find(module.ptr());
  if (found == paths_.end()) return false;
  stack_.push_back(&found->second);
  return true;
}

}  // namespace modelport::binding
