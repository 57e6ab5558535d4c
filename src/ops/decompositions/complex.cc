// Complex numbers as pairs of reals: what rows do with them.
#include "ops/decompositions/complex.h"

#include <algorithm>
#include <array>
#include <numbers>

#include "ops/decompositions/terms.h"
#include "ops/rules/rules.h"

namespace modelport::ops::parts {
namespace {

struct Parts {
  Value re, im;
};

Parts parts_of(Emitter& e, Value complex) {
  const Value pairs = e.as_pairs(complex);
  const std::int64_t last = e.rank(complex);
  return {selected(e, pairs, last, 0), selected(e, pairs, last, 1)};
}

Value joined_parts(Emitter& e, Value re, Value im) {
  return e.from_pairs(e.call("aten.stack", {Values{re, im}, e.rank(re)}));
}

/// A number of any kind as pairs of this type.
Value pairs_from(Emitter& e, Value x, Dtype real) {
  if (is_complex(e.dtype(x))) return cast(e, e.as_pairs(x), real);
  const Value re = cast(e, x, real);
  return e.call("aten.stack", {Values{re, filled(e, e.shape(re), 0, real)}, e.rank(re)});
}

Shape with_pair(Shape shape) {
  shape.push_back(2);
  return shape;
}

bool names_axes(std::string_view parameter) {
  constexpr std::array kAxes{"dim", "dim0", "dim1", "dims", "axis0", "axis1"};
  return std::ranges::find(kAxes, parameter) != kAxes.end();
}

/// Axes counted from the front: the pair is behind them.
ir::Arg from_front(const ir::Arg& axes, std::int64_t rank) {
  if (const Int* axis = axes.get<Int>(); axis != nullptr && axis->constant())
    return {Int(*axis->constant() < 0 ? *axis->constant() + rank : *axis->constant())};
  if (const auto* list = axes.get<ir::ArgList>()) {
    ir::ArgList made;
    for (const ir::Arg& item : *list) made.push_back(from_front(item, rank));
    return {std::move(made)};
  }
  return emit::int_list(axes_in_order(rank));  // None: all of them
}

/// Complex numbers, and reals among them in a list, become pairs; all else stays.
ir::Arg with_pairs(Emitter& e, const ir::Arg& arg, Dtype real) {
  if (const Value* x = arg.get<Value>())
    return is_complex(e.dtype(*x)) ? ir::Arg{pairs_from(e, *x, real)} : arg;
  const auto* list = arg.get<ir::ArgList>();
  if (list == nullptr) return arg;
  const auto is_complex_value = [&](const ir::Arg& item) {
    return item.get<Value>() != nullptr && is_complex(e.dtype(*item.get<Value>()));
  };
  if (std::ranges::none_of(*list, is_complex_value)) return arg;
  ir::ArgList made;
  for (const ir::Arg& item : *list) made.push_back({pairs_from(e, *item.get<Value>(), real)});
  return {std::move(made)};
}

/// That of the result's parts where it is complex.
Dtype real_type(Emitter& e) { return to_real(e.result().dtype); }

/// An operand of arithmetic: a tensor or a number, as pairs.
Value pairs_in(Emitter& e, std::string_view name) {
  if (const Value x = e.tensor(name); x != kNoValue) return pairs_from(e, x, real_type(e));
  return e.constant(real_type(e), {2}, {e.real_number(name), 0});
}

}  // namespace

Values on_pairs(Emitter& e) {
  const OpDef& op = e.call().op();
  const std::vector<Parameter>& parameters = schema_of(op).parameters;
  const ir::Arg& first = e.call().arg(parameters[0].name);
  const ir::ArgList* list = first.get<ir::ArgList>();
  const Value like = list == nullptr ? *first.get<Value>() : *(*list)[0].get<Value>();
  // A new axis may stand behind all others.
  const std::int64_t rank =
      std::max(e.rank(like), static_cast<std::int64_t>(e.result().shape.size()));
  std::vector<ir::NamedArg> args;
  for (const Parameter& parameter : parameters) {
    const ir::Arg& own = e.call().arg(parameter.name);
    args.push_back({parameter.name, names_axes(parameter.name) ? from_front(own, rank)
                                                               : with_pairs(e, own, real_type(e))});
  }
  Values made = e.calls(op, args);
  for (Value& value : made) value = e.from_pairs(value);
  return made;
}

Value pairs_in_shape(Emitter& e) {
  return e.from_pairs(viewed(e, e.as_pairs(e.tensor("self")), with_pair(e.result().shape)));
}

Value pairs_expanded(Emitter& e) {
  return e.from_pairs(expanded(e, e.as_pairs(e.tensor("self")), with_pair(e.result().shape)));
}

Value pairs_permuted(Emitter& e) {
  const Value x = e.tensor("self");
  Axes order = axis_list(e.call(), "dims", e.rank(x));
  order.push_back(e.rank(x));
  return e.from_pairs(permuted(e, e.as_pairs(x), order));
}

Value pairs_sum(Emitter& e) {
  const Value self = pairs_in(e, "self"), other = pairs_in(e, "other");
  return e.from_pairs(e.call(e.call().op().name, {self, other}, {{"alpha", e.arg("alpha")}}));
}

Value pairs_product(Emitter& e) {
  const OpDef& op = e.call().op();
  const std::vector<Parameter>& parameters = schema_of(op).parameters;
  const Operand a = e.arg(parameters[0].name), b = e.arg(parameters[1].name);
  const auto is_one = [&](const Operand& x) {
    return x.arg.get<Value>() != nullptr && is_complex(e.dtype(*x.arg.get<Value>()));
  };
  const auto product = [&](const Operand& x, const Operand& y) { return e.call(op.name, {x, y}); };
  const auto parts = [&](const Operand& x) { return parts_of(e, *x.arg.get<Value>()); };
  const auto done = [&](Value re, Value im) {
    return joined_parts(e, cast(e, re, real_type(e)), cast(e, im, real_type(e)));
  };
  if (!is_one(b)) return done(product(parts(a).re, b), product(parts(a).im, b));
  if (!is_one(a)) return done(product(a, parts(b).re), product(a, parts(b).im));
  const Parts x = parts(a), y = parts(b);
  return done(sub(e, product(x.re, y.re), product(x.im, y.im)),
              add(e, product(x.re, y.im), product(x.im, y.re)));
}

Value pairs_quotient(Emitter& e) {
  const Value other = e.tensor("other");
  if (other == kNoValue || !is_complex(e.dtype(other))) {
    Operand by = e.arg("other");
    if (other != kNoValue) by = with_axis_at(e, cast(e, other, real_type(e)), e.rank(other));
    return e.from_pairs(e.call("aten.div.Tensor", {pairs_in(e, "self"), by}));
  }
  const Parts x = parts_of(e, e.from_pairs(pairs_in(e, "self"))), y = parts_of(e, other);
  const Value norm = add(e, mul(e, y.re, y.re), mul(e, y.im, y.im));
  return joined_parts(e, div(e, add(e, mul(e, x.re, y.re), mul(e, x.im, y.im)), norm),
                      div(e, sub(e, mul(e, x.im, y.re), mul(e, x.re, y.im)), norm));
}

Value pairs_choice(Emitter& e) {
  const Value condition = e.tensor("condition");
  return e.from_pairs(where(e, with_axis_at(e, condition, e.rank(condition)), pairs_in(e, "self"),
                            pairs_in(e, "other")));
}

Value pairs_cast(Emitter& e) {
  const Value x = e.tensor("self");
  if (!is_complex(e.result().dtype)) return cast(e, parts_of(e, x).re, e.result().dtype);
  return e.from_pairs(pairs_from(e, x, real_type(e)));
}

Value pairs_magnitude(Emitter& e) {
  const Parts x = parts_of(e, e.tensor("self"));
  return e.call("aten.sqrt", {add(e, mul(e, x.re, x.re), mul(e, x.im, x.im))});
}

Value pairs_conjugate(Emitter& e) {
  const Value pairs = e.as_pairs(e.tensor("self"));
  return e.from_pairs(mul(e, pairs, e.constant(e.dtype(pairs), {2}, {1, -1})));
}

Value pairs_as_they_are(Emitter& e) { return e.tensor("self"); }

Value complex(Emitter& e) {
  const Shape& shape = e.result().shape;
  return joined_parts(e, expanded(e, e.tensor("real"), shape),
                      expanded(e, e.tensor("imag"), shape));
}

Value polar(Emitter& e) {
  const Value size = e.tensor("abs"), angle = e.tensor("angle");
  return joined_parts(e, mul(e, size, e.call("aten.cos", {angle})),
                      mul(e, size, e.call("aten.sin", {angle})));
}

Value real_part(Emitter& e) {
  const Value x = e.tensor("self");
  return is_complex(e.dtype(x)) ? parts_of(e, x).re : x;
}

Value imaginary_part(Emitter& e) { return parts_of(e, e.tensor("self")).im; }

Value angle(Emitter& e) {
  const Value x = e.tensor("self");
  if (is_complex(e.dtype(x))) {
    const Parts parts = parts_of(e, x);
    return e.call("aten.atan2", {parts.im, parts.re});
  }
  // Pi for numbers below zero; NaN stays.
  Terms t(e);
  const Value y = cast(e, x, e.result().dtype);
  const Value turned = t.mul(cast(e, t.is("lt", y, 0), e.dtype(y)), std::numbers::pi);
  return is_floating(e.dtype(x)) ? t.where(t.is("ne", y, y), y, turned) : turned;
}

Value view_as_complex(Emitter& e) { return e.from_pairs(e.tensor("self")); }
Value view_as_real(Emitter& e) { return e.as_pairs(e.tensor("self")); }

}  // namespace modelport::ops::parts
