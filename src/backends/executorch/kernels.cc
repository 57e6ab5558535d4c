#include "backends/executorch/kernels.h"

#include <algorithm>
#include <array>

namespace modelport::executorch {
namespace {

using namespace std::string_view_literals;

// Sorted, to be searched in halves. Left out are those that some build of the kernels computes in
// more than one sweep over the result (softmax, gelu with half types, cumsum).
constexpr std::array kElementwise{
    "aten::abs.out"sv,
    "aten::add.Scalar_out"sv,
    "aten::add.out"sv,
    "aten::bitwise_and.Tensor_out"sv,
    "aten::bitwise_not.out"sv,
    "aten::bitwise_or.Tensor_out"sv,
    "aten::ceil.out"sv,
    "aten::clamp.out"sv,
    "aten::cos.out"sv,
    "aten::div.Scalar_out"sv,
    "aten::div.out"sv,
    "aten::erf.out"sv,
    "aten::exp.out"sv,
    "aten::floor.out"sv,
    "aten::log.out"sv,
    "aten::logical_and.out"sv,
    "aten::logical_not.out"sv,
    "aten::logical_or.out"sv,
    "aten::masked_fill.Scalar_out"sv,
    "aten::maximum.out"sv,
    "aten::minimum.out"sv,
    "aten::mul.Scalar_out"sv,
    "aten::mul.out"sv,
    "aten::neg.out"sv,
    "aten::pow.Tensor_Scalar_out"sv,
    "aten::reciprocal.out"sv,
    "aten::relu.out"sv,
    "aten::round.out"sv,
    "aten::rsqrt.out"sv,
    "aten::rsub.Scalar_out"sv,
    "aten::sigmoid.out"sv,
    "aten::sin.out"sv,
    "aten::sqrt.out"sv,
    "aten::sub.Scalar_out"sv,
    "aten::sub.out"sv,
    "aten::tanh.out"sv,
    "aten::trunc.out"sv,
    "aten::where.self_out"sv,
};
static_assert(std::ranges::is_sorted(kElementwise));

constexpr std::array kGiveLists{"aten::split_copy.Tensor_out"sv,
                                "aten::split_with_sizes_copy.out"sv, "aten::unbind_copy.int_out"sv};
constexpr std::array kCacheUpdates{"llama::update_cache.out"sv,
                                   "llama::update_cache_with_indices.out"sv};
constexpr std::array kSelecting{"aten::masked_select.out"sv, "aten::nonzero.out"sv};

template <std::size_t n>
bool is_among(const std::array<std::string_view, n>& rows, std::string_view kernel) {
  return std::ranges::binary_search(rows, kernel);
}

}  // namespace

std::optional<std::string> kernel_name(std::string_view op) {
  if (!op.starts_with("et.")) return std::nullopt;
  op.remove_prefix(3);
  const std::size_t dot = op.find('.');
  if (dot == 0 || dot == std::string_view::npos || dot + 1 == op.size()) return std::nullopt;
  return std::string(op.substr(0, dot)) + "::" + std::string(op.substr(dot + 1));
}

bool is_elementwise(std::string_view kernel) { return is_among(kElementwise, kernel); }

bool gives_list(std::string_view kernel) { return is_among(kGiveLists, kernel); }

std::optional<std::size_t> written_operand(std::string_view kernel) {
  if (is_among(kCacheUpdates, kernel)) return 1;
  if (kernel.ends_with('_')) return 0;
  return std::nullopt;
}

bool has_idle_out(std::string_view kernel) { return is_among(kCacheUpdates, kernel); }

bool selects_elements(std::string_view kernel) { return is_among(kSelecting, kernel); }

}  // namespace modelport::executorch
