#include "ops/executorch/adjust.h"

#include <algorithm>

#include "ops/decompositions/neural.h"
#include "ops/decompositions/pieces.h"

namespace modelport::ops::executorch {
using emit::Operand;

namespace {

bool has_fixed_sizes(Lower& l) {
  return std::ranges::all_of(l.result().shape,
                             [](const Int& size) { return size.constant().has_value(); });
}

Values for_fixed_sizes(Lower& l, std::string_view kernel) {
  if (!has_fixed_sizes(l))
    l.refuse("the runtime's kernel takes fixed sizes only, for instance with static shapes");
  return l.kernel_with_own_operands(kernel);
}

/// Operands of several types are computed in f32.
Values in_one_type(Lower& l, std::string_view kernel) {
  const Schema& schema = schema_of(l.call().op());
  const Dtype own = l.dtype(l.tensor("input"));
  bool mixed = false;
  for (const char* name : {"weight", "bias"})
    mixed = mixed || (l.has(name) && l.dtype(l.tensor(name)) != own);
  if (!mixed) return l.kernel_with_own_operands(kernel);
  std::vector<ir::NamedArg> args;
  for (const Parameter& parameter : schema.parameters) {
    const Value x = parameter.type.starts_with("Tensor") ? l.tensor(parameter.name) : kNoValue;
    args.push_back({parameter.name, x == kNoValue ? l.call().arg(parameter.name)
                                                  : ir::Arg{parts::cast(l, x, Dtype::f32)}});
  }
  std::vector<ir::Type> types;
  for (std::size_t i = 0; i < l.result_count(); ++i)
    types.push_back(ir::TensorType{Dtype::f32, l.result(i).shape});
  Values results = l.kernel(kernel, std::move(args), std::move(types));
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = parts::cast(l, results[i], l.result(i).dtype);
  return results;
}

}  // namespace

Values grid_sampler_2d(Lower& l) {
  if (!has_fixed_sizes(l)) return {parts::grid_sampler_by_gathering(l)};
  return l.kernel_with_own_operands("aten::grid_sampler_2d.out");
}

Values upsample_bilinear2d_aa(Lower& l) {
  return for_fixed_sizes(l, "aten::_upsample_bilinear2d_aa.out");
}

Values native_group_norm(Lower& l) { return in_one_type(l, "aten::native_group_norm.out"); }
Values native_layer_norm(Lower& l) { return in_one_type(l, "aten::native_layer_norm.out"); }

Values constant_pad_nd(Lower& l) {
  const Value x = l.tensor("self");
  if (is_complex(l.dtype(x))) l.refuse("no rule for complex numbers");
  Shape pads = l.call().ints("pad");
  const Value rest = parts::cut_off(l, x, pads);
  if (std::ranges::all_of(pads, [](const Int& pad) { return pad == Int(0); })) return {rest};
  return l.kernel("aten::constant_pad_nd.out",
                  {{"self", {rest}}, {"pad", Operand(pads).arg}, {"value", l.arg("value").arg}});
}

Values linear(Lower& l) {
  const Value x = l.tensor("input");
  const Value weight = l.tensor("weight");
  if (l.rank(x) > 1 && l.rank(weight) > 1) return l.kernel_with_own_operands("aten::linear.out");
  const Value y = parts::product(l, x, l.rank(weight) > 1 ? parts::transposed(l, weight) : weight);
  return {l.has("bias") ? parts::add(l, y, l.tensor("bias")) : y};
}

Values masked_select(Lower& l) {
  const Value x = l.tensor("self");
  if (is_complex(l.dtype(x))) l.refuse("no rule for complex numbers");
  const Shape whole = broadcast_args(l.call(), {"self", "mask"});
  return l.kernel("aten::masked_select.out",
                  {{"self", {parts::expanded(l, x, whole)}}, {"mask", l.arg("mask").arg}});
}

Values roll(Lower& l) {
  if (!l.call().ints("dims").empty()) return l.kernel_with_own_operands("aten::roll.out");
  const Value x = l.tensor("self");
  const Value flat = parts::viewed(l, x, {numel(l.shape(x))});
  return {parts::viewed(l, l.call("aten.roll", {flat, l.arg("shifts"), {0}}), l.shape(x))};
}

Values unfold(Lower& l) {
  const Value x = l.tensor("self");
  if (l.rank(x) == 0) return {parts::viewed(l, x, l.result().shape)};
  return l.kernel_with_own_operands("aten::unfold_copy.out");
}

}  // namespace modelport::ops::executorch
