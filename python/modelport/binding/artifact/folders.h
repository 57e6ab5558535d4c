#pragma once

#include <pybind11/pybind11.h>

namespace modelport::binding {

void bind_folders(pybind11::module_& module);

}  // namespace modelport::binding
