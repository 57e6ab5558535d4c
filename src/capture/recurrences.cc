#include "capture/recurrences.h"

#include <ATen/ops/maximum.h>
#include <ATen/ops/stack.h>

namespace modelport::capture {
namespace {

struct Operands {
  const at::Tensor& decay;
  const at::Tensor& input;
  const std::optional<at::Tensor>& state;
  std::int64_t dim;
};

template <class Step>
at::Tensor states_of(const Operands& all, Step step) {
  std::optional<at::Tensor> state = all.state;
  std::vector<at::Tensor> states;
  for (std::int64_t i = 0; i < all.input.size(all.dim); ++i) {
    const at::Tensor now = all.input.select(all.dim, i);
    state = state ? step(all.decay.select(all.dim, i), *state, now) : now;
    states.push_back(*state);
  }
  if (states.empty()) return all.input.clone();
  return at::stack(states, all.dim < 0 ? all.dim + all.input.dim() : all.dim);
}

}  // namespace

at::Tensor linear_recurrence(const at::Tensor& decay, const at::Tensor& input,
                             const std::optional<at::Tensor>& state, std::int64_t dim) {
  return states_of({decay, input, state, dim},
                   [](const at::Tensor& factor, const at::Tensor& before, const at::Tensor& now) {
                     return now.add(before.mul(factor));
                   });
}

at::Tensor maximum_recurrence(const at::Tensor& decay, const at::Tensor& input,
                              const std::optional<at::Tensor>& state, std::int64_t dim) {
  return states_of({decay, input, state, dim},
                   [](const at::Tensor& change, const at::Tensor& before, const at::Tensor& now) {
                     return at::maximum(before.add(change), now);
                   });
}

}  // namespace modelport::capture
