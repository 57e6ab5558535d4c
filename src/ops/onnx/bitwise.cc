// Bits: ONNX has operators for them from opset 18 on, and shifts for unsigned integers alone.
#include "ops/onnx/bitwise.h"

#include "ops/onnx/pointwise.h"
#include "ops/rules/rules.h"

namespace modelport::ops::onnx {
namespace {

/// 1, 2, 4 ... as many as fit into an i64, the last one being its sign.
std::vector<std::int64_t> powers_of_two(std::int64_t count) {
  std::vector<std::int64_t> powers;
  for (std::int64_t i = 0; i < count; ++i)
    powers.push_back(static_cast<std::int64_t>(std::uint64_t{1} << i));
  return powers;
}

/// The bits of an i64 along a new last axis, as 0 and 1.
Value bits_of(Lower& l, Value x, std::int64_t count) {
  const Value line = l.unsqueeze(x, {l.rank(x)});
  const std::int64_t low = std::min<std::int64_t>(count, 63);
  const Value bits =
      l.binary("Mod", floor_quotient(l, line, l.ints(powers_of_two(low))), l.ints({2}));
  if (low == count) return bits;
  const Value sign = l.cast(l.compare("Less", line, l.ints({0})), Dtype::i64);
  return l.concat({bits, sign}, l.rank(x));
}

/// Before opset 18: bit by bit. A product with the powers of two puts them together again, exactly,
/// which ReduceSum in onnxruntime does not beyond 2^53.
Value bit_by_bit(Lower& l, std::string_view op, Value a, Value b) {
  const std::int64_t count = 64;
  const Value left = bits_of(l, l.cast(a, Dtype::i64), count);
  const Value right = bits_of(l, l.cast(b, Dtype::i64), count);
  const Value bits = op == "And"  ? l.mul(left, right)
                     : op == "Or" ? l.binary("Max", left, right)
                                  : l.unary("Abs", l.sub(left, right));
  return l.matmul(bits, l.ints(powers_of_two(count)));
}

Values bitwise(Lower& l, std::string_view op) {
  const Dtype own = l.result().dtype;
  const Value a = l.in("self", own), b = l.in("other", own);
  if (own == Dtype::boolean) return {l.binary(op, a, b)};
  if (l.opset() < 18) return {l.cast(bit_by_bit(l, op, a, b), own)};
  return {l.binary(std::string("Bitwise") + std::string(op), a, b)};
}

/// Whether a shift is one that moves bits at all: torch takes others for a shift by all bits.
Value inside(Lower& l, Value shift, std::int64_t limit) {
  return l.binary("And", l.compare("GreaterOrEqual", shift, l.number(std::int64_t{0}, Dtype::i64)),
                  l.compare("Less", shift, l.number(limit, Dtype::i64)));
}

std::optional<std::int64_t> plain_shift(Lower& l, std::int64_t limit) {
  const Int* shift = l.call().arg("other").get<Int>();
  if (shift == nullptr || !shift->constant()) return std::nullopt;
  const std::int64_t number = *shift->constant();
  return number >= 0 && number < limit ? std::optional(number) : std::nullopt;
}

/// 2^shift out of a table: Pow goes through floats.
Value power_of_shift(Lower& l, Value shift, Value is_inside, bool zero_outside) {
  std::vector<std::int64_t> table = powers_of_two(64);
  table.push_back(zero_outside ? 0 : 1);
  const Value index = l.where(is_inside, shift, l.number(std::int64_t{64}, Dtype::i64));
  return l.gather(l.ints(table), index, 0);
}

}  // namespace

Values bitwise_and(Lower& l) { return bitwise(l, "And"); }
Values bitwise_or(Lower& l) { return bitwise(l, "Or"); }
Values bitwise_xor(Lower& l) { return bitwise(l, "Xor"); }

Values left_shift(Lower& l) {
  const Dtype own = l.result().dtype;
  const Value x = l.in("self", Dtype::i64);
  const std::int64_t limit = bit_count(own);
  if (const auto shift = plain_shift(l, limit))
    return {l.cast(
        l.mul(x, l.number(powers_of_two(64)[static_cast<std::size_t>(*shift)], Dtype::i64)), own)};
  const Value shift = l.in("other", Dtype::i64);
  return {l.cast(l.mul(x, power_of_shift(l, shift, inside(l, shift, limit), true)), own)};
}

Values right_shift(Lower& l) {
  const Dtype own = l.result().dtype;
  const Value x = l.in("self", Dtype::i64);
  const std::int64_t limit = bit_count(own) - (is_signed(own) ? 1 : 0);
  if (const auto shift = plain_shift(l, limit))
    return {
        l.cast(floor_quotient(
                   l, x, l.number(powers_of_two(64)[static_cast<std::size_t>(*shift)], Dtype::i64)),
               own)};
  const Value shift = l.in("other", Dtype::i64);
  const Value moved = inside(l, shift, limit);
  const Value negative =
      l.cast(l.compare("Less", x, l.number(std::int64_t{0}, Dtype::i64)), Dtype::i64);
  const Value quotient = floor_quotient(l, x, power_of_shift(l, shift, moved, false));
  return {l.cast(l.where(moved, quotient, l.unary("Neg", negative)), own)};
}

}  // namespace modelport::ops::onnx
