// The name by which a number is known once something has computed it.
#pragma once

#include <string>
#include <variant>

#include "ir/graph.h"

namespace modelport::ops::emit {

/// The symbol that a number is; empty for one that is computed from others.
inline std::string symbol_of(const ir::ScalarType& number) {
  if (const auto* integer = std::get_if<shape::Int>(&number.symbol))
    return std::string(integer->as_symbol().value_or(""));
  if (const auto* real = std::get_if<shape::Real>(&number.symbol)) return real->node().name;
  return std::get<shape::Bool>(number.symbol).node().name;
}

}  // namespace modelport::ops::emit
