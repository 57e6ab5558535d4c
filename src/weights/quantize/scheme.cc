#include "weights/quantize/scheme.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "weights/convert.h"

namespace modelport::weights {
namespace {

std::string described(const Weight& weight) {
  return fmt::format("{} [{}]", weight.name, fmt::join(weight.shape, ", "));
}

bool fits(Groups groups, std::int64_t group, std::int64_t columns) {
  switch (groups) {
    case Groups::row:
      return group == columns;
    case Groups::any:
      return columns % group == 0;
    case Groups::of_32:
      return columns % group == 0 && group % 32 == 0;
    case Groups::power_of_two:
      return group >= 16 && std::has_single_bit(static_cast<std::uint64_t>(group));
  }
  __builtin_unreachable();
}

std::string_view rule(Groups groups) {
  switch (groups) {
    case Groups::row:
      return "takes one scale a row";
    case Groups::any:
      return "takes groups that divide a row";
    case Groups::of_32:
      return "takes groups of a multiple of 32 that divide a row";
    case Groups::power_of_two:
      return "takes groups of a power of two, 16 or more";
  }
  __builtin_unreachable();
}

/// A few groups that the layout takes, those nearest to the one that was asked for.
std::vector<std::int64_t> groups_that_fit(Groups groups, std::int64_t group, std::int64_t columns) {
  constexpr std::size_t kEnough = 4;
  std::vector<std::int64_t> found;
  for (std::int64_t other = 8; other <= std::max<std::int64_t>(columns, 64); ++other) {
    if (other != columns && fits(groups, other, columns)) found.push_back(other);
  }
  std::ranges::stable_sort(found, {}, [group](std::int64_t other) {
    return other > group ? other - group : group - other;
  });
  if (found.size() > kEnough) found.resize(kEnough);
  std::ranges::sort(found);
  return found;
}

Diagnostic problem(std::string what, std::vector<std::string> ways_out) {
  Diagnostic d;
  d.code = Code::bad_input;
  d.what = std::move(what);
  d.ways_out = std::move(ways_out);
  return d;
}

Diagnostic bad_group(const Weight& weight, const Scheme& scheme, std::int64_t columns) {
  const LayoutFacts& row = facts(scheme.layout);
  std::vector<std::string> ways_out;
  const std::vector<std::int64_t> others = groups_that_fit(row.groups, scheme.group, columns);
  if (!others.empty()) ways_out.push_back(fmt::format("group size {}", fmt::join(others, ", ")));
  if (fits(row.groups, columns, columns)) ways_out.emplace_back("group size 0: the whole row");
  if (ways_out.empty()) ways_out.emplace_back("8 bits (8da8w), for any number of columns");
  const std::string asked =
      scheme.group == 0 ? "the whole row as one group" : fmt::format("groups of {}", scheme.group);
  return problem(fmt::format("{} cannot be quantized with {}: {} {}, and a row has {} columns",
                             described(weight), asked, row.name, rule(row.groups), columns),
                 std::move(ways_out));
}

void check_layout(const Weight& weight, const Scheme& scheme, Diagnostics& found) {
  const LayoutFacts& row = facts(scheme.layout);
  const auto refuse = [&](const std::string& what, std::string way_out) {
    found.add(problem(
        fmt::format("{} cannot be quantized: {} has no {}", described(weight), row.name, what),
        {std::move(way_out)}));
  };
  if (!packing(scheme)) {
    const bool both = row.four_bits && row.eight_bits;
    refuse(fmt::format("codes of {} bits", scheme.bits),
           both ? "4 or 8 bits" : (row.four_bits ? "4 bits" : "8 bits"));
  }
  if (scheme.zero_points && !row.zero_points) refuse("zero points", "leave zero points out");
  const Dtype scales = scheme.scales.value_or(row.scales);
  const bool known = scales == Dtype::f32 || scales == Dtype::f16 || scales == Dtype::bf16;
  if (scales != row.scales && (!row.other_scales || !known)) {
    refuse(fmt::format("scales of {}", name(scales)),
           row.other_scales ? "scales of f32, f16 or bf16"
                            : fmt::format("scales of {}", name(row.scales)));
  }
}

void check_weight(const Weight& weight, const Scheme& scheme, Diagnostics& found) {
  const std::string leave = fmt::format("leave {} as it is", weight.name);
  if (!can_convert(weight.dtype)) {
    found.add(problem(fmt::format("{} is of {}: only f64, f32, f16 and bf16 are quantized",
                                  described(weight), name(weight.dtype)),
                      {leave}));
  }
  if (weight.shape.size() < 2 || weight.byte_count() == 0) {
    found.add(problem(fmt::format("{} is no matrix to quantize", described(weight)), {leave}));
    return;
  }
  const std::int64_t columns = weight.shape.back();
  const std::int64_t group = scheme.group == 0 ? columns : scheme.group;
  if (group < 1 || !fits(facts(scheme.layout).groups, group, columns)) {
    found.add(bad_group(weight, scheme, columns));
  }
  const std::optional<Packing> packed = packing(scheme);
  const bool filled_up = facts(scheme.layout).blocks_apart;
  if (packed && in_nibbles(*packed) && !filled_up && columns % 2 != 0) {
    found.add(problem(fmt::format("{} cannot be quantized: {} puts two columns into a byte, and "
                                  "their number is odd",
                                  described(weight), name(scheme.layout)),
                      {"8 bits", leave}));
  }
}

TensorForm codes_of(const Weight& weight, const Scheme& scheme, const QuantizedForm& form) {
  const Packing packed = *packing(scheme);
  const std::int64_t codes_per_byte = in_nibbles(packed) ? 2 : 1;
  TensorForm codes{packed == Packing::signed_byte ? Dtype::i8 : Dtype::u8, weight.shape};
  if (facts(scheme.layout).blocks_apart) {
    codes.shape.back() = form.groups_per_row;
    codes.shape.push_back(form.group / codes_per_byte);
  } else {
    codes.shape.back() = form.columns / codes_per_byte;
  }
  return codes;
}

TensorForm zero_points_of(const TensorForm& codes, const Scheme& scheme, const Shape& scales) {
  TensorForm zero_points{codes.dtype, scales};
  // Packed like codes, each row from a byte of its own.
  if (in_nibbles(*packing(scheme))) zero_points.shape.back() = (scales.back() + 1) / 2;
  return zero_points;
}

}  // namespace

std::uint64_t TensorForm::byte_count() const {
  std::uint64_t count = byte_size(dtype);
  for (const std::int64_t size : shape) count *= static_cast<std::uint64_t>(size);
  return count;
}

QuantizedForm quantized_form(const Weight& weight, const Scheme& scheme) {
  Diagnostics found;
  check_layout(weight, scheme, found);
  check_weight(weight, scheme, found);
  found.throw_if_any();

  const LayoutFacts& row = facts(scheme.layout);
  QuantizedForm form;
  form.columns = weight.shape.back();
  form.rows = 1;
  for (const std::int64_t size : weight.shape) form.rows *= size;
  form.rows /= form.columns;
  form.group = scheme.group == 0 ? form.columns : scheme.group;
  form.groups_per_row = (form.columns + form.group - 1) / form.group;
  form.codes = codes_of(weight, scheme, form);
  form.scales = {scheme.scales.value_or(row.scales), weight.shape};
  form.scales.shape.back() = form.groups_per_row;
  if (scheme.zero_points) form.zero_points = zero_points_of(form.codes, scheme, form.scales.shape);
  if (row.row_scales_flat && form.groups_per_row == 1) form.scales.shape.pop_back();
  return form;
}

}  // namespace modelport::weights
