// Scales that are searched while Python imports and captures.
#pragma once

#include <pybind11/pybind11.h>

namespace modelport::binding {

void bind_search_ahead(pybind11::module_& module);

}  // namespace modelport::binding
