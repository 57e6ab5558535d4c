// Tensors of numbers: constants, ranges, windows.
#include "ops/decompositions/create.h"

#include <algorithm>
#include <array>
#include <numbers>

#include "ops/rules/rules.h"

namespace modelport::ops::parts {
namespace {

Value filled_with(Emitter& e, const Operand& number) {
  return Terms(e).filled(e.result().shape, number, e.result().dtype);
}

/// Windows of signals: weights of the cosines of k turns, all over the window.
struct Cosines {
  std::string_view name;
  double constant, once, twice;
};
constexpr std::array kCosines{Cosines{"aten.blackman", 0.42, -0.5, 0.08},
                              Cosines{"aten.hamming", 0.54, -0.46, 0},
                              Cosines{"aten.hann", 0.5, -0.5, 0}};

/// Places go from 0 to 1.
Value window_at(Terms& t, Value places) {
  for (const Cosines& shape : kCosines) {
    if (!t.e.call().op().name.starts_with(shape.name)) continue;
    const Value turn = t.mul(places, 2 * std::numbers::pi);
    const Value x = t.add(t.mul(t.of("cos", turn), shape.once), shape.constant);
    if (shape.twice == 0) return x;
    return t.add(x, t.mul(t.of("cos", t.mul(turn, 2.0)), shape.twice));
  }
  return t.sub(1.0, t.of("abs", t.sub(t.mul(places, 2.0), 1.0)));
}

Value spaced(Terms& t) {
  const Int steps = t.e.result().shape[0];
  const Value start = t.in("start", Dtype::f64), end = t.in("end", Dtype::f64);
  const Value last = t.size(shape::max(steps - 1, 1), Dtype::f64);
  return t.add(t.mul(t.range(steps, Dtype::f64), t.div(t.sub(end, start), last)), start);
}

}  // namespace

Value empty(Emitter& e) {
  return e.call("aten.empty.memory_format", {e.result().shape}, {{"dtype", e.result().dtype}});
}

Value zeros(Emitter& e) { return filled_with(e, 0); }
Value ones(Emitter& e) { return filled_with(e, 1); }
Value filled(Emitter& e) { return filled_with(e, e.arg("fill_value")); }

Value eye(Emitter& e) {
  Terms t(e);
  const Int rows = e.result().shape[0], columns = e.result().shape[1];
  const Value down = t.reshape(t.range(rows), {rows, 1});
  return t.done(t.is("eq", down, t.reshape(t.range(columns), {1, columns})));
}

Value linspace(Emitter& e) {
  Terms t(e);
  return t.done(spaced(t));
}

Value logspace(Emitter& e) {
  Terms t(e);
  return t.done(e.call("aten.pow.Scalar", {e.real_number("base"), spaced(t)}));
}

Value triangle_indices(Emitter& e) {
  const bool lower = e.call().op().name == "aten.tril_indices";
  const std::int64_t columns = e.call().number("col"), offset = e.call().number("offset");
  std::vector<std::int64_t> down, across;
  for (std::int64_t row = 0; row < e.call().number("row"); ++row) {
    const std::int64_t start = lower ? 0 : std::max<std::int64_t>(row + offset, 0);
    const std::int64_t end = lower ? std::min(row + offset + 1, columns) : columns;
    for (std::int64_t column = start; column < end; ++column) {
      down.push_back(row);
      across.push_back(column);
    }
  }
  const auto count = static_cast<std::int64_t>(down.size());
  down.insert(down.end(), across.begin(), across.end());
  if (count == 0) return filled_with(e, 0);
  return e.constant_ints(e.result().dtype, {2, count}, down);
}

// A window that goes on after its end has one place more; one of a single place is 1.
Value window(Emitter& e) {
  Terms t(e);
  const Int length = e.result().shape[0];
  const bool periodic = !has_parameter(e, "periodic") || e.call().flag("periodic");
  if (length.constant().value_or(0) == 1) return filled_with(e, 1);
  const Int span = shape::max(periodic ? length : length - 1, 1);
  const Value places = t.div(t.range(length, Dtype::f64), t.size(span, Dtype::f64));
  const Value found = window_at(t, places);
  if (e.surely_at_least(length, 2)) return t.done(found);
  return t.done(t.where(t.is("eq", t.size(length, Dtype::i64), 1), 1.0, found));
}

}  // namespace modelport::ops::parts
