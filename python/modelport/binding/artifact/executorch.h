// What a .pte file says of itself, for Python.
#pragma once

#include <pybind11/pybind11.h>

namespace modelport::binding {

void bind_executorch_reader(pybind11::module_& module);

}  // namespace modelport::binding
