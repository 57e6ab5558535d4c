#include "capture/session.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/python_symnode.h>

#include "binding/program.h"
#include "binding/surroundings.h"
#include "capture/torch_dtype.h"

namespace modelport::binding {

namespace {

/// One capture, driven from Python: inputs and weights are named, the model is called between start
/// and stop.
class PySession {
 public:
  explicit PySession(bool with_data) {
    using Data = capture::Session::Data;
    auto surroundings = std::make_unique<PythonSurroundings>();
    surroundings_ = surroundings.get();
    session_ = std::make_shared<capture::Session>(std::move(surroundings),
                                                  with_data ? Data::everything : Data::inputs_only);
  }

  void declare(const std::string& name, std::int64_t hint, std::int64_t lo,
               std::optional<std::int64_t> hi) {
    session_->dims().declare(name, hint, {lo, hi.value_or(shape::Range::kUnbounded)});
  }

  at::Tensor add_input(const std::string& name, const at::Tensor& tensor,
                       const std::vector<std::variant<std::int64_t, std::string>>& shape) {
    std::vector<shape::Int> sizes;
    for (const auto& size : shape) {
      const auto* number = std::get_if<std::int64_t>(&size);
      sizes.push_back(number ? shape::Int(*number)
                             : shape::Int::symbol(std::get<std::string>(size)));
    }
    return session_->add_input(name, tensor, std::move(sizes));
  }

  void add_weight(const std::string& name, const at::Tensor& tensor, const std::string& kind) {
    session_->add_weight(name, tensor,
                         kind == "parameter" ? ir::WeightKind::parameter
                         : kind == "buffer"  ? ir::WeightKind::buffer
                                             : ir::WeightKind::buffer_not_saved);
  }

  void start() { recording_ = std::make_unique<capture::Recording>(session_); }
  void stop() { recording_.reset(); }

  void add_output(const std::string& name, const py::object& value) {
    if (THPVariable_Check(value.ptr()))
      return session_->add_output(name, THPVariable_Unpack(value.ptr()));
    if (torch::is_symint(value))
      return session_->add_output(name, capture::number_of(py::cast<c10::SymInt>(value)));
    if (torch::is_symfloat(value))
      return session_->add_output(name, capture::number_of(py::cast<c10::SymFloat>(value)));
    session_->add_output(name, capture::number_of(py::cast<c10::SymBool>(value)));
  }

  std::shared_ptr<Program> finish(const std::string& name) {
    auto program = std::make_shared<Program>();
    session_->graph().name = name;
    program->guards = session_->dims().guards();
    program->replacements = session_->dims().replacements();
    program->dims = session_->dims();
    program->tied_names = session_->tied_names();
    for (const auto& [value, tensor] : session_->weight_tensors()) {
      program->weights.emplace(session_->graph().value(value).name, tensor.detach());
    }
    program->graph = session_->finish();
    // The model goes on writing to its buffer: the program begins with what was there at the
    // capture.
    for (const ir::Mutation& mutation : program->graph.mutations) {
      at::Tensor& buffer = program->weights.at(program->graph.value(mutation.buffer).name);
      buffer = buffer.clone();
    }
    return program;
  }

  capture::Session& session() { return *session_; }
  PythonSurroundings& surroundings() { return *surroundings_; }

 private:
  std::shared_ptr<capture::Session> session_;
  PythonSurroundings* surroundings_;
  std::unique_ptr<capture::Recording> recording_;
};

PythonSurroundings* running_surroundings() {
  capture::Session* session = capture::Recording::current();
  return session ? dynamic_cast<PythonSurroundings*>(&session->surroundings()) : nullptr;
}

at::Tensor real_tensor(const at::Tensor& tensor) {
  capture::TracedTensor* traced = capture::as_traced(tensor);
  return traced ? traced->session()->real_of(tensor) : tensor;
}

/// `tensor.item()`: torch's own conversion to Python knows symbolic integers only.
py::object read_number(const at::Tensor& tensor) {
  const at::Scalar number = tensor.item();
  const auto symbol = [](const char* type, const c10::SymNode& node) {
    return py::module_::import("torch").attr(type)(py::cast(node));
  };
  if (number.isSymbolic() && number.isBoolean())
    return symbol("SymBool", number.toSymBool().toSymNodeImpl());
  if (number.isSymbolic() && number.isFloatingPoint())
    return symbol("SymFloat", number.toSymFloat().toSymNodeImpl());
  return py::cast(number);
}

}  // namespace

void bind_session(py::module_& module) {
  py::class_<PySession>(module, "Session")
      .def(py::init<bool>())
      .def("set_trial",
           [](PySession& self, bool only_compared) {
             self.session().dims().set_trial(true);
             if (only_compared) self.surroundings().leave_out_places();
           })
      .def("declare", &PySession::declare)
      .def("add_input", &PySession::add_input)
      .def("add_weight", &PySession::add_weight)
      .def("replace_buffer",
           [](PySession& self, const std::string& name, const at::Tensor& tensor) {
             self.session().replace_buffer(name, tensor);
           })
      .def("protect",
           [](PySession& self, const at::Tensor& tensor) { self.session().protect(tensor); })
      .def("name_module",
           [](PySession& self, py::handle module, std::string path) {
             self.surroundings().name_module(module, std::move(path));
           })
      .def("start", &PySession::start)
      .def("stop", &PySession::stop)
      .def("add_output", &PySession::add_output)
      .def("finish", &PySession::finish)
      .def("restore", [](PySession& self) { self.session().restore(); })
      .def("take_error", [](PySession& self) {
        if (const auto error = self.session().take_error()) throw *error;
      });
  module.def("enter_module", [](py::handle module) {
    PythonSurroundings* here = running_surroundings();
    return here != nullptr && here->enter_module(module);
  });
  module.def("leave_module", [] {
    if (PythonSurroundings* here = running_surroundings()) here->leave_module();
  });
  module.def("is_recording", [] { return capture::Recording::current() != nullptr; });
  module.def("is_traced",
             [](const at::Tensor& tensor) { return capture::as_traced(tensor) != nullptr; });
  module.def("concerns_graph", [](const at::Tensor& tensor) {
    capture::Session* session = capture::Recording::current();
    return capture::as_traced(tensor) != nullptr || (session != nullptr && session->knows(tensor));
  });
  module.def("real_tensor", &real_tensor);
  module.def("read_number", &read_number);
  py::class_<capture::Paused>(module, "Paused").def(py::init<>());
}

}  // namespace modelport::binding
