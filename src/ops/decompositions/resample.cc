// Interpolation by the runtime's kernels for two axes, by picking, or by products with weights.
#include "ops/decompositions/neural.h"
#include "ops/decompositions/pieces.h"
#include "ops/rules/windows.h"

namespace modelport::ops::parts {
namespace {

using Factor = std::optional<double>;

Value image_of(Emitter& e) {
  return e.tensor(schema_of(e.call().op()).find("input") != nullptr ? "input" : "self");
}

/// The factors that the call states, one for each spatial axis.
std::vector<Factor> factors_of(Emitter& e, std::size_t axes) {
  std::vector<Factor> factors(axes);
  const auto number = [&](const ir::Arg& arg) -> Factor {
    if (const double* real = arg.get<double>()) return *real;
    if (const Int* whole = arg.get<Int>(); whole != nullptr && whole->constant())
      return static_cast<double>(*whole->constant());
    return std::nullopt;
  };
  const Schema& schema = schema_of(e.call().op());
  if (schema.find("scale_factors") != nullptr) {
    const auto* list = e.call().arg("scale_factors").get<ir::ArgList>();
    for (std::size_t i = 0; list != nullptr && i < axes; ++i) factors[i] = number((*list)[i]);
    return factors;
  }
  static constexpr std::string_view kNames[] = {"scales_d", "scales_h", "scales_w"};
  for (std::size_t i = 0; i < axes; ++i) {
    const std::string_view name = axes == 1 ? "scales" : kNames[3 - axes + i];
    factors[i] = number(e.call().arg(name));
  }
  return factors;
}

/// One of the runtime's kernels on planes, to these sizes or by these factors.
Value plane_resized(Emitter& e, const char* row, Value x, const Shape& sizes, Factor height,
                    Factor width) {
  const bool by_factors = height && width;
  const Operand size = by_factors ? Operand(std::nullopt) : Operand(sizes);
  const Operand factors = by_factors ? Operand{*height, *width} : Operand(std::nullopt);
  if (row == std::string_view("aten.upsample_nearest2d.vec"))
    return e.call(row, {x, size, factors});
  return e.call(row, {x, size, e.arg("align_corners"), factors});
}

Value resized(Emitter& e, const char* row) {
  const Value x = image_of(e);
  const std::size_t axes = spatial_axes(e.call());
  const std::vector<Factor> factors = factors_of(e, axes);
  const Shape& result = e.result().shape;
  const Shape shape = e.shape(x);
  if (axes == 2) return plane_resized(e, row, x, {result[2], result[3]}, factors[0], factors[1]);
  if (axes == 1) {
    const Value line = viewed(e, x, {shape[0], shape[1], 1, shape[2]});
    return viewed(e,
                  plane_resized(e, row, line, {1, result[2]}, factors[0] ? Factor(1.0) : factors[0],
                                factors[0]),
                  result);
  }
  const Value planes = viewed(e, x, {shape[0], shape[1] * shape[2], shape[3], shape[4]});
  const Value y = plane_resized(e, row, planes, {result[3], result[4]}, factors[1], factors[2]);
  const Int area = result[3] * result[4];
  const Value columns = viewed(e, y, {shape[0], shape[1], shape[2], area});
  const Value z = plane_resized(e, row, columns, {result[2], area}, factors[0],
                                factors[0] ? Factor(1.0) : factors[0]);
  return viewed(e, z, result);
}

/// How far one step in the result goes in the operand.
Value stretched(Emitter& e, Value places, const Int& from, const Int& to, Factor factor) {
  if (factor) return e.call("aten.mul.Scalar", {places, 1 / *factor});
  if (from.constant() && to.constant())
    return e.call("aten.mul.Scalar", {places, static_cast<double>(*from.constant()) /
                                                  static_cast<double>(*to.constant())});
  const auto real = [&](const Int& size) {
    return e.call("aten.scalar_tensor", {size}, {{"dtype", Dtype::f32}});
  };
  return mul(e, places, div(e, real(from), real(to)));
}

/// The weight of each element of the operand for each of the result, by a cubic through four.
Value cubic_weights(Emitter& e, const Int& from, const Int& to, Factor factor, bool corners) {
  Value places = counted(e, to, Dtype::f32);
  if (corners) {
    places = to == Int(1) ? places : stretched(e, places, from - 1, to - 1, std::nullopt);
  } else {
    places = stretched(e, e.call("aten.add.Scalar", {places, 0.5}), from, to, factor);
    places = e.call("aten.sub.Scalar", {places, 0.5});
  }
  const Value left = e.call("aten.floor", {places});
  const Value rest = sub(e, places, left);
  constexpr double kSharpness = -0.75;
  const auto polynomial = [&](Value x, double a, double b, double c, double d) {
    Value y = e.call("aten.add.Scalar", {scaled(e, x, a), b});
    y = e.call("aten.add.Scalar", {mul(e, y, x), c});
    return e.call("aten.add.Scalar", {mul(e, y, x), d});
  };
  const Value own = counted(e, from);
  Value sum = kNoValue;
  for (std::int64_t i = -1; i < 3; ++i) {
    const Value distance = i <= 0 ? e.call("aten.sub.Scalar", {rest, static_cast<double>(i)})
                                  : e.call("aten.rsub.Scalar", {rest, static_cast<double>(i)});
    const double a = kSharpness;
    const Value weight = i == 0 || i == 1 ? polynomial(distance, a + 2, -(a + 3), 0, 1)
                                          : polynomial(distance, a, -5 * a, 8 * a, -4 * a);
    Value place = e.call("aten.add.Scalar", {cast(e, left, Dtype::i64), i});
    place = e.call("aten.clamp", {place, 0, from - 1});
    const Value here = compare(e, "aten.eq.Tensor", with_axis_at(e, place, 1), own);
    const Value part = where(e, here, with_axis_at(e, weight, 1), e.number(0.0, Dtype::f32));
    sum = sum == kNoValue ? part : add(e, sum, part);
  }
  return sum;
}

}  // namespace

Value upsample_nearest(Emitter& e) { return resized(e, "aten.upsample_nearest2d.vec"); }
Value upsample_linear(Emitter& e) { return resized(e, "aten.upsample_bilinear2d.vec"); }

Value upsample_by_picking(Emitter& e) {
  Value x = image_of(e);
  const std::size_t axes = spatial_axes(e.call());
  const std::vector<Factor> factors = factors_of(e, axes);
  const bool exact = e.call().op().name.find("exact") != std::string_view::npos;
  for (std::size_t i = 0; i < axes; ++i) {
    const Int size = e.shape(x)[i + 2];
    const Int wanted = e.result().shape[i + 2];
    if (size == wanted) continue;
    Value places = counted(e, wanted, Dtype::f32);
    if (exact) places = e.call("aten.add.Scalar", {places, 0.5});
    places =
        cast(e, e.call("aten.floor", {stretched(e, places, size, wanted, factors[i])}), Dtype::i64);
    places = e.call("aten.clamp", {places, 0, size - 1});
    x = e.call("aten.index_select", {x, static_cast<std::int64_t>(i + 2), places});
  }
  return x;
}

Value upsample_bicubic(Emitter& e) {
  const Dtype own = e.result().dtype;
  const Value x = cast(e, image_of(e), Dtype::f32);
  const std::vector<Factor> factors = factors_of(e, 2);
  const bool corners = e.call().flag("align_corners");
  const Shape from = e.shape(x);
  const Shape& to = e.result().shape;
  const Value across = cubic_weights(e, from[3], to[3], factors[1], corners);
  const Value down = cubic_weights(e, from[2], to[2], factors[0], corners);
  return cast(e, product(e, down, product(e, x, transposed(e, across))), own);
}

Value grid_sampler(Emitter& e) {
  const bool flat = e.rank(e.tensor("input")) == 4;
  return e.call(flat ? "aten.grid_sampler_2d" : "aten.grid_sampler_3d",
                {e.arg("input"), e.arg("grid"), e.arg("interpolation_mode"), e.arg("padding_mode"),
                 e.arg("align_corners")});
}

Value affine_grid(Emitter& e) {
  const Shape& result = e.result().shape;
  const std::size_t axes = result.size() - 2;
  std::vector<std::int64_t> sizes;
  std::int64_t count = 1;
  for (std::size_t i = 0; i < axes; ++i) {
    sizes.push_back(known(e, result[i + 1], "the grid must have a fixed size"));
    count *= sizes.back();
  }
  const bool corners = e.call().flag("align_corners");
  std::vector<double> places;  // x, y(, z), 1 of each point
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i;
    for (std::size_t k = axes; k-- > 0; rest /= sizes[k]) {
      const auto place = static_cast<double>(rest % sizes[k]);
      const auto size = static_cast<double>(sizes[k]);
      places.push_back(corners ? (size > 1 ? 2 * place / (size - 1) - 1 : 0)
                               : (2 * place + 1) / size - 1);
    }
    places.push_back(1);
  }
  const Value base =
      e.constant(e.result().dtype, {count, static_cast<std::int64_t>(axes) + 1}, places);
  return viewed(e, product(e, base, transposed(e, e.tensor("theta"))), result);
}

}  // namespace modelport::ops::parts
