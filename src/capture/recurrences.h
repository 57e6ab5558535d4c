// Recurrences over an axis, which torch has no operator for: from place to place, with a state.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace modelport::capture {

/// state = decay * state + input at each place; all states. Without a state, the first is the
/// input.
at::Tensor linear_recurrence(const at::Tensor& decay, const at::Tensor& input,
                             const std::optional<at::Tensor>& state, std::int64_t dim);
/// state = max(decay + state, input)
at::Tensor maximum_recurrence(const at::Tensor& decay, const at::Tensor& input,
                              const std::optional<at::Tensor>& state, std::int64_t dim);

}  // namespace modelport::capture
