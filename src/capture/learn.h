// Shapes of operators without a row: learned by running them on meta tensors at further sizes.
#pragma once

#include "capture/operands.h"

namespace modelport::capture {

/// The types of the results as functions of the operands' symbols: each size is taken to be a sum
/// of products of them, fitted at the corners of a box of sizes and tested at a point outside it.
/// Throws ExportError (Code::unknown_op) with the model's line where the operator has no meta
/// kernel or its shape is no such function.
std::vector<ir::Type> learn_types(Session& session, const c10::OperatorHandle& op,
                                  const OpFacts& facts, const std::vector<c10::IValue>& operands,
                                  const std::vector<at::Tensor>& results);

}  // namespace modelport::capture
