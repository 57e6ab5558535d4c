// The operands of one operator call, seen twice: as the real tensors and numbers that torch
// computes with, and as the arguments of a graph node.
#pragma once

#include <ATen/core/stack.h>

#include <vector>

#include "capture/op_facts.h"
#include "capture/session.h"

namespace modelport::capture {

/// Whether any operand is traced, symbolic, a weight, or memory that holds traced values.
bool concerns_graph(Session& session, c10::ArrayRef<c10::IValue> operands);
/// Whether a functorch wrapper (vmap, grad) is among the operands.
bool has_functorch_wrapper(c10::ArrayRef<c10::IValue> operands);

/// Real operands: traced tensors unwrapped, symbols replaced by their values in this run. If
/// anything is on meta, everything is moved there.
std::vector<c10::IValue> real_operands(Session& session, const OpFacts& facts,
                                       c10::ArrayRef<c10::IValue> operands);

/// Node arguments by name, without those that have their default value and those that mean nothing
/// to a graph (layout, generator, pinning).
std::vector<ir::NamedArg> node_arguments(Session& session, const OpFacts& facts,
                                         const c10::FunctionSchema& schema,
                                         c10::ArrayRef<c10::IValue> operands);

}  // namespace modelport::capture
