// Limits of artifacts, as Python holds them.
#pragma once

#include <pybind11/pybind11.h>

namespace modelport::binding {

void bind_limits(pybind11::module_& module);

}  // namespace modelport::binding
