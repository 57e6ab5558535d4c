// ExportError of C++ as modelport.ExportError of Python, with its diagnostics.
#include "binding/errors.h"

#include <pybind11/stl.h>

#include "base/error.h"

namespace modelport::binding {

namespace py = pybind11;

namespace {

py::list diagnostics_list(const ExportError& error) {
  py::list rows;
  for (const Diagnostic& d : error.diagnostics()) {
    py::dict row;
    row["code"] = code_label(d.code);
    row["what"] = d.what;
    row["file"] = d.where.file;
    row["line"] = d.where.line;
    row["function"] = d.where.function;
    row["module"] = d.module_path;
    row["notes"] = d.notes;
    row["ways_out"] = d.ways_out;
    rows.append(row);
  }
  return rows;
}

}  // namespace

void bind_errors(py::module_& module) {
  // A class of Python made by the package, so that it can carry attributes and a docstring.
  static PyObject* exception = nullptr;
  module.def("set_exception_class", [](const py::object& cls) { exception = cls.inc_ref().ptr(); });
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const ExportError& error) {
      const py::object cls =
          py::reinterpret_borrow<py::object>(exception ? exception : PyExc_RuntimeError);
      const py::object instance =
          exception ? cls(error.what(), diagnostics_list(error)) : cls(error.what());
      PyErr_SetObject(cls.ptr(), instance.ptr());
    }
  });
}

}  // namespace modelport::binding
