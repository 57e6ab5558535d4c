// A size that is linear in a symbol, so that the symbol can be had from the size.
#pragma once

#include <optional>
#include <string>

#include "shape/int.h"

namespace modelport::shape {

/// size == factor * symbol + rest with a positive factor.
struct Linear {
  std::int64_t factor = 1;
  Int rest;
};
std::optional<Linear> linear_in(const Int& size, const std::string& symbol);

}  // namespace modelport::shape
