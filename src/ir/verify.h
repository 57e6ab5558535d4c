// The rules every graph obeys. All violations are reported at once.
#pragma once

#include "base/error.h"
#include "ir/graph.h"

namespace modelport::ir {

/// Ids in range, definitions before uses, unique names, symbols declared, no duplicate argument
/// names, outputs named once, mutations of buffers only with the buffer's own type, ...
Diagnostics violations(const Graph& graph);
void verify(const Graph& graph);  // throws ExportError with all of them

}  // namespace modelport::ir
