#include "shape/linear.h"

#include "base/error.h"

namespace modelport::shape {

std::optional<Linear> linear_in(const Int& size, const std::string& symbol) {
  try {
    const Int one = substitute(size, {{symbol, 1}});
    const auto factor = (substitute(size, {{symbol, 2}}) - one).constant();
    if (factor.value_or(0) <= 0) return std::nullopt;
    const Int rest = one - *factor;
    if (!(size == *factor * Int::symbol(symbol) + rest)) return std::nullopt;
    return Linear{*factor, rest};
  } catch (const ExportError&) {  // the symbol is part of a divisor that is 0 there
    return std::nullopt;
  }
}

}  // namespace modelport::shape
