// Tensors of numbers: ranges, constants, windows.
#include "ops/onnx/create.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "ops/onnx/pieces.h"
#include "ops/onnx/pointwise.h"
#include "ops/onnx/special.h"
#include "ops/rules/rules.h"

namespace modelport::ops::onnx {
namespace {

bool is_number(const ir::Arg& arg, std::int64_t value) {
  const Int* whole = arg.get<Int>();
  return whole != nullptr && *whole == Int(value);
}
bool is_real(const ir::Arg& arg) {
  return arg.get<double>() != nullptr || arg.get<shape::Real>() != nullptr;
}

/// The argument, or `otherwise` for overloads without it.
const ir::Arg& arg_or(Lower& l, std::string_view name, const ir::Arg& otherwise) {
  return schema_of(l.call().op()).find(name) == nullptr ? otherwise : l.call().arg(name);
}

/// All elements the same.
Values filled(Lower& l, Value value) {
  const Dtype own = l.result().dtype;
  return {l.filled(l.cast(value, own), l.result().shape)};
}

/// start + i step for i below the length of the result, in double precision as torch has it: Range
/// of onnxruntime adds up its rounding errors.
Value real_range(Lower& l, const ir::Arg& start, const ir::Arg& step) {
  Value x = l.cast(l.range(l.result().shape[0]), Dtype::f64);
  if (!is_number(step, 1)) x = l.mul(x, l.number_of(step, Dtype::f64));
  return is_number(start, 0) ? x : l.add(x, l.number_of(start, Dtype::f64));
}

/// Windows of signals: weights of the cosines of k turns, all over the window.
struct Cosines {
  std::string_view name;
  double constant, once, twice;
};
constexpr std::array kCosines{Cosines{"blackman", 0.42, -0.5, 0.08},
                              Cosines{"hamming", 0.54, -0.46, 0}, Cosines{"hann", 0.5, -0.5, 0}};

/// The window at places 0, 1 ... of `span`, which a window that goes on after its end has one more
/// of.
Value window_at(Lower& l, std::string_view kind, Value places, Value span) {
  for (const Cosines& shape : kCosines) {
    if (!kind.starts_with(shape.name)) continue;
    const Value turn = l.mul(l.div(places, span), like(l, places, 2 * std::numbers::pi));
    Value x = l.add(l.mul(l.unary("Cos", turn), like(l, places, shape.once)),
                    like(l, places, shape.constant));
    if (shape.twice == 0) return x;
    const Value twice = l.unary("Cos", l.mul(turn, like(l, places, 2)));
    return l.add(x, l.mul(twice, like(l, places, shape.twice)));
  }
  const Value one = like(l, places, 1);
  const Value away = l.sub(l.mul(l.div(places, span), like(l, places, 2)), one);  // -1 to 1
  if (kind.starts_with("bartlett")) return l.sub(one, l.unary("Abs", away));
  const double beta = 12;  // torch's default for kaiser_window, and the only one it has rows for
  const Value height =
      l.unary("Sqrt", l.binary("Max", l.sub(one, l.mul(away, away)), like(l, one, 0)));
  const Value bump = bessel_i0_of(l, l.mul(height, like(l, places, beta)));
  return l.div(bump, bessel_i0_of(l, like(l, places, beta)));
}

std::int64_t first_column(std::int64_t row, std::int64_t offset, bool lower) {
  return lower ? 0 : std::max<std::int64_t>(row + offset, 0);
}
std::int64_t last_column(std::int64_t row, std::int64_t columns, std::int64_t offset, bool lower) {
  return lower ? std::min(row + offset + 1, columns) : columns;
}

}  // namespace

Values arange(Lower& l) {
  static const ir::Arg kZero{Int(0)};
  static const ir::Arg kOne{Int(1)};
  const ir::Arg& start = arg_or(l, "start", kZero);
  const ir::Arg& end = l.call().arg("end");
  const ir::Arg& step = arg_or(l, "step", kOne);
  const Dtype own = l.result().dtype;
  const bool whole = !is_real(start) && !is_real(end) && !is_real(step);
  if (!whole && own != Dtype::i64) return done(l, real_range(l, start, step));
  if (is_number(start, 0) && is_number(step, 1)) return done(l, l.range(l.result().shape[0]));
  const auto number = [&](const ir::Arg& arg) { return l.number_of(arg, Dtype::i64); };
  const Int* first = start.get<Int>();
  const Int* by = step.get<Int>();
  const bool upwards = first != nullptr && by != nullptr && l.surely_at_least(*first, 0) &&
                       by->constant().value_or(0) > 0;
  if (upwards) {
    return done(l, l.emit("Range", {number(start), number(end), number(step)}, {},
                          {Dtype::i64, l.result().shape}));
  }
  // onnxruntime makes a slice of a Gather at the places of a Range, and the end -1 of a slice is
  // another than that of a range: so places below zero are computed.
  const Value places = l.range(l.result().shape[0]);
  return done(l, l.add(l.mul(places, number(step)), number(start)));
}

Values eye(Lower& l) {
  const Shape& shape = l.result().shape;
  return done(l, diagonal_mask(l, shape[0], shape[1], 0));
}

Values zeros(Lower& l) { return filled(l, l.number(std::int64_t{0}, l.result().dtype)); }
Values ones(Lower& l) { return filled(l, l.number(std::int64_t{1}, l.result().dtype)); }

Values full(Lower& l) {
  const Schema& schema = schema_of(l.call().op());
  for (const std::string_view name : {"fill_value", "value"}) {
    if (schema.find(name) != nullptr) return filled(l, l.in(name, l.result().dtype));
  }
  return filled(l, l.in("s", l.result().dtype));
}

namespace {

Value spaced(Lower& l) {
  const Int& steps = l.result().shape[0];
  const Value start = l.in("start", Dtype::f64), end = l.in("end", Dtype::f64);
  const Value last = l.cast(l.scalar(shape::max(steps - 1, 1)), Dtype::f64);
  const Value step = l.div(l.sub(end, start), last);
  return l.add(l.mul(l.cast(l.range(steps), Dtype::f64), step), start);
}

}  // namespace

Values linspace(Lower& l) { return done(l, spaced(l)); }

Values logspace(Lower& l) {
  return done(l, l.binary("Pow", l.number(l.real_number("base"), Dtype::f64), spaced(l)));
}

Values triangle_indices(Lower& l) {
  const bool lower = l.call().op().name == "aten.tril_indices";
  const std::int64_t columns = l.call().number("col"), offset = l.call().number("offset");
  std::vector<std::int64_t> places, across;
  for (std::int64_t row = 0; row < l.call().number("row"); ++row) {
    const std::int64_t end = last_column(row, columns, offset, lower);
    for (std::int64_t column = first_column(row, offset, lower); column < end; ++column) {
      places.push_back(row);
      across.push_back(column);
    }
  }
  const auto count = static_cast<std::int64_t>(places.size());
  places.insert(places.end(), across.begin(), across.end());
  return done(l, l.constant_ints(Dtype::i64, {2, count}, places));
}

Values signal_window(Lower& l) {
  const Int length = l.result().shape[0];
  const std::string_view kind = l.call().op().name.substr(std::string_view("aten.").size());
  const bool asked = schema_of(l.call().op()).find("periodic") != nullptr;
  const bool periodic = !asked || l.call().flag("periodic");
  const Value places = l.cast(l.range(length), Dtype::f64);
  const Int span = periodic ? length : length - 1;
  const Value turns = l.cast(l.scalar(shape::max(span, 1)), Dtype::f64);
  const Value window = window_at(l, kind, places, turns);
  if (l.surely_at_least(length, 2)) return done(l, window);
  // A window of one place is 1.
  const Value single = l.compare("Equal", l.size(length), l.ints({1}));
  return done(l, l.where(single, l.number(1.0, Dtype::f64), window));
}

}  // namespace modelport::ops::onnx
