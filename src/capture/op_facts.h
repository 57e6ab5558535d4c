// What the recorder needs to know of an operator, read from its schema once: the functional
// operator it stands for, what it writes to, how its arguments are typed.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <vector>

#include "ops/table/op.h"

namespace modelport::capture {

enum class ArgKind : std::uint8_t {
  plain,
  dtype,
  layout,
  memory_format,
  device,
  generator,
  pin_memory
};

struct ArgFacts {
  std::string name;
  ArgKind kind = ArgKind::plain;
  bool is_tensor = false;  // Tensor or Tensor?
  bool written = false;    // Tensor(a!)
  bool out_only = false;   // an out= argument, which the functional operator does not have
};

using ops::Handling;

struct OpFacts {
  std::string name;  // of the functional operator: "aten.add.Tensor" for add_.Tensor and add.out
  const ops::OpDef* row = nullptr;
  Handling handling = Handling::record;
  bool writes = false;
  bool random = false;
  std::vector<ArgFacts> args;
  std::vector<std::size_t> written;  // indices of written arguments
  ops::Recording recording() const {
    return row == nullptr ? ops::Recording::plain : row->recording;
  }
};

/// Looked up by handle and kept for the process.
const OpFacts& facts_of(const c10::OperatorHandle& op);
/// "aten::add.Tensor" -> "aten.add.Tensor"
std::string dotted_name(const c10::OperatorName& name);
/// The handle of a row's name; throws ExportError (Code::unknown_op) where torch does not know it.
c10::OperatorHandle find_operator(std::string_view dotted);

}  // namespace modelport::capture
