// The numbers of a float type that are no numbers, as operators compute with them.
#pragma once

#include <limits>

namespace modelport {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace modelport
