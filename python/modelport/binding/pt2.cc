#include "binding/program.h"

namespace modelport::binding {

void bind_pt2(py::module_&) {}

}  // namespace modelport::binding
