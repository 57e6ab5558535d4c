// Our errors for Python; without libtorch, so that the module of artifacts has them too.
#pragma once

#include <pybind11/pybind11.h>

namespace modelport::binding {

void bind_errors(pybind11::module_& module);

}  // namespace modelport::binding
