// Headers of checkpoints, as Python reads them.
#pragma once

#include <pybind11/pybind11.h>

namespace modelport::binding {

void bind_checkpoint(pybind11::module_& module);

}  // namespace modelport::binding
