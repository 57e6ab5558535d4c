// Key heads that are copied for each of the query heads they serve.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ops/fusions/pattern.h"

namespace modelport::ops::fusions {

/// The pattern of `what` with its heads repeated:
/// reshape(expand(unsqueeze(what, 2), [b, h, times, s, d]), [b, h * times, s, d])
std::string repeated_heads(std::string_view what);
/// The pattern of `what`, as it is or repeated.
std::string maybe_repeated(std::string_view what);
/// How often each head is repeated; nothing where the pattern was something else.
std::optional<shape::Int> times_repeated(const Found& found, const std::string& what);

}  // namespace modelport::ops::fusions
