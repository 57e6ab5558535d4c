// Pointwise operators with two operands: arithmetic, powers, minima and maxima.
#include "ops/onnx/binary.h"

#include <array>

#include "ops/emit/emitter.h"
#include "ops/rules/pointwise.h"
#include "ops/table/families.h"

namespace modelport::ops {
namespace {

Results div_mode(Call& call) {
  return call.has("rounding_mode") ? binary(call) : binary_floating(call);
}

Results pow_rule(Call& call) {
  return one(promote(call, {"self", "exponent"}), broadcast_args(call, {"self", "exponent"}));
}

Results heaviside(Call& call) {
  return one(promote(call, {"self", "values"}), broadcast_args(call, {"self", "values"}));
}

constexpr std::array kBinaryOps{
    OpDef{.name = "aten.add.Scalar",
          .schema = "(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::add),
          .samples = "f32[a, b], 2; i32[a], 2; i32[a, b], 2.5; f16[], 1.5; bool[a], 3"},
    OpDef{.name = "aten.add.Tensor",
          .schema = "(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::add),
          .samples = "f32[a, b], f32[b]; f16[a, 1], f32[1, b]; i64[a], f32[]; i32[a], 2; f32[a], "
                     "2; bool[a], bool[]; i64[], f16[a, b]; f32[a, b], f32[b], alpha=2; c64[a], "
                     "f64[a]; bf16[a, b], a; i64[a], a + b; c64[a], c64[]; u8[a], 3"},
    OpDef{.name = "aten.atan2",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary_floating,
          .onnx = custom(onnx::atan2),
          .samples = "f32[a, b], f32[b]; i64[a, 1], i32[b]; i64[a], 2; f16[a], 2; i64[], f64[]; "
                     "bool[a], bool[a]"},
    OpDef{.name = "aten.copysign.Scalar",
          .schema = "(Tensor self, Scalar other) -> Tensor",
          .infer = binary_floating,
          .onnx = custom(onnx::copysign),
          .samples = "f32[a, b], -1; i64[a], 2.0"},
    OpDef{.name = "aten.copysign.Tensor",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary_floating,
          .onnx = custom(onnx::copysign),
          .samples = "f32[a, b], f32[b]; i64[a, 1], i32[b]; i64[a], 2; f16[a], 2; i64[], f64[]; "
                     "bool[a], bool[a]"},
    OpDef{.name = "aten.div.Scalar",
          .schema = "(Tensor self, Scalar other) -> Tensor",
          .infer = binary_floating,
          .onnx = custom(onnx::div),
          .samples = "f32[a, b], 2; i32[a], 2; i32[a, b], 2.5; f16[], 1.5; bool[a], 3"},
    OpDef{.name = "aten.div.Scalar_mode",
          .schema = "(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
          .infer = div_mode,
          .onnx = custom(onnx::div_mode),
          .samples = "f32[a, b], 2, rounding_mode='floor'; i64[a], 2.0, rounding_mode='trunc'; "
                     "i32[a], 2, rounding_mode=None"},
    OpDef{.name = "aten.div.Tensor",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary_floating,
          .onnx = custom(onnx::div),
          .samples = "f32[a, b], f32[b]; i64[a, 1], i32[b]; i64[a], 2; f16[a], 2; i64[], f64[]; "
                     "bool[a], bool[a]; c64[a], c64[a]; c64[a], 2; bf16[a], 3"},
    OpDef{.name = "aten.div.Tensor_mode",
          .schema = "(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
          .infer = div_mode,
          .onnx = custom(onnx::div_mode),
          .executorch = direct("aten::div.out_mode"),
          .samples = "f32[a, b], f32[b], rounding_mode='floor'; i64[a], 2, rounding_mode='floor'; "
                     "i32[a, b], 3, rounding_mode='trunc'; i64[a], f32[], rounding_mode='floor'; "
                     "i64[a], 2, rounding_mode=None; f32[a, b], 3, rounding_mode='floor'; i32[a, "
                     "b], 3, rounding_mode='floor'; f32[a], f32[a], rounding_mode='trunc'"},
    OpDef{.name = "aten.floor_divide",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::floor_divide),
          .samples = "f32[a, b], 2; i64[a, b], 3; i64[a], 2.0; f16[a], 2; f32[a], f32[a]; i32[a], "
                     "4; bf16[a], 3"},
    OpDef{.name = "aten.floor_divide.Scalar",
          .schema = "(Tensor self, Scalar other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::floor_divide),
          .executorch = decompose([](emit::Emitter& e) {
            return e.call("aten.div.Scalar_mode", {e.arg("self"), e.arg("other"), "floor"});
          }),
          .samples = "f32[a, b], 2; i64[a, b], 3; i64[a], 2.0"},
    OpDef{.name = "aten.fmax",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::fmax),
          .samples = "f32[a, b], f32[b]; i64[a], i64[]; f16[a, 1], f32[1, b]"},
    OpDef{.name = "aten.fmin",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::fmin),
          .samples = "f32[a, b], f32[b]; i64[a], i64[]; f16[a, 1], f32[1, b]"},
    OpDef{.name = "aten.fmod.Scalar",
          .schema = "(Tensor self, Scalar other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::fmod),
          .samples = "f32[a, b], 2; i64[a], 3; i32[], 2.5"},
    OpDef{.name = "aten.fmod.Tensor",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::fmod),
          .samples = "f32[a, b], f32[b]; i64[a], 3; i64[a], 2.5; f16[], f32[a]; i32[a], -3"},
    OpDef{.name = "aten.gcd",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = refuse("ONNX has no greatest common divisor"),
          .samples = "i64[a, b], i64[b]; i32[a, 1], i64[b]; i64[a], 2; u8[], u8[a]"},
    OpDef{.name = "aten.heaviside",
          .schema = "(Tensor self, Tensor values) -> Tensor",
          .infer = heaviside,
          .onnx = custom(onnx::heaviside),
          .samples = "f32[a, b], f32[b]; f64[a, 1], f64[1, b]; f32[], f32[a]"},
    OpDef{.name = "aten.hypot",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::hypot),
          .samples = "f32[a, b], f32[b]; f64[a, 1], f64[1, b]; f32[], f32[a]"},
    OpDef{.name = "aten.igamma",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = refuse("ONNX has no incomplete gamma function"),
          .samples = "f32[a, b], f32[b]; f64[a, 1], f64[1, b]; f32[], f32[a]"},
    OpDef{.name = "aten.igammac",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = refuse("ONNX has no incomplete gamma function"),
          .samples = "f32[a, b], f32[b]; f64[a, 1], f64[1, b]; f32[], f32[a]"},
    OpDef{.name = "aten.lcm",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = refuse("ONNX has no least common multiple"),
          .samples = "i64[a, b], i64[b]; i32[a, 1], i64[b]; i64[a], 2; u8[], u8[a]"},
    OpDef{.name = "aten.ldexp.Tensor",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary_floating,
          .onnx = custom(onnx::ldexp),
          .samples = "f32[a, b], i64[b]; i64[a], i64[]; f16[a], i32[a]; f16[a], f32[a]"},
    OpDef{.name = "aten.logaddexp",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::logaddexp),
          .samples = "f32[a, b], f32[b]; f64[a, 1], f64[1, b]; f32[], f32[a]"},
    OpDef{.name = "aten.logaddexp2",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::logaddexp2),
          .samples = "f32[a, b], f32[b]; f64[a, 1], f64[1, b]; f32[], f32[a]"},
    OpDef{.name = "aten.max.other",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::maximum),
          .samples = "f32[a, b], f32[b]; i64[a], i64[]; f16[a, 1], f32[1, b]"},
    OpDef{.name = "aten.maximum",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::maximum),
          .samples = "f32[a, b], f32[b]; f16[a, 1], f32[1, b]; i64[a], f32[]; i32[a], 2; f32[a], "
                     "2; i64[], f16[a, b]; u8[a], i8[a]; bool[a], bool[a]; bf16[a], bf16[]"},
    OpDef{.name = "aten.min.other",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::minimum),
          .samples = "f32[a, b], f32[b]; i64[a], i64[]; f16[a, 1], f32[1, b]"},
    OpDef{.name = "aten.minimum",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::minimum),
          .samples = "f32[a, b], f32[b]; f16[a, 1], f32[1, b]; i64[a], f32[]; i32[a], 2; f32[a], "
                     "2; i64[], f16[a, b]; u8[a], i8[a]; bool[a], bool[a]; bf16[a], bf16[]"},
    OpDef{.name = "aten.mul.Scalar",
          .schema = "(Tensor self, Scalar other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::mul),
          .samples = "f32[a, b], 2; i32[a], 2; i32[a, b], 2.5; f16[], 1.5; bool[a], 3"},
    OpDef{.name = "aten.mul.Tensor",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::mul),
          .samples = "f32[a, b], f32[b]; f16[a, 1], f32[1, b]; i64[a], f32[]; i32[a], 2; f32[a], "
                     "2; bool[a], bool[]; i64[], f16[a, b]; bool[a, b], f32[b]; i16[a], u8[a]; "
                     "bf16[a], f16[a]; c64[a], c64[a]; c64[a, b], f32[b]; f32[a], c64[a]"},
    OpDef{.name = "aten.nextafter",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = refuse("ONNX cannot step from one float to the next"),
          .samples = "f32[a, b], f32[b]; f64[a, 1], f64[1, b]; f32[], f32[a]"},
    OpDef{.name = "aten.pow.Scalar",
          .schema = "(Scalar self, Tensor exponent) -> Tensor",
          .infer = pow_rule,
          .onnx = custom(onnx::pow),
          .samples = "2, f32[a, b]; 2, i64[a]; 0.5, i64[a]; 10000.0, f16[]"},
    OpDef{.name = "aten.pow.Tensor_Scalar",
          .schema = "(Tensor self, Scalar exponent) -> Tensor",
          .infer = pow_rule,
          .onnx = custom(onnx::pow),
          .samples =
              "f32[a, b], 2; i64[a], 2; i64[a], 0.5; f16[], -0.5; bool[a], 2; f32[a], a; f32[a], "
              "3; f32[a], -1; f32[a], 1; f32[a], 2.5; i32[a], 5; bf16[a], 2; c64[a], 2; f32[a], 0"},
    OpDef{.name = "aten.pow.Tensor_Tensor",
          .schema = "(Tensor self, Tensor exponent) -> Tensor",
          .infer = pow_rule,
          .onnx = custom(onnx::pow),
          .samples = "f32[a, b], f32[b]; i64[a], f32[]; i64[a, 1], i64[b]; f32[a], 2"},
    OpDef{.name = "aten.remainder.Scalar",
          .schema = "(Tensor self, Scalar other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::remainder),
          .samples = "f32[a, b], 2; i64[a], 3; i32[], 2.5"},
    OpDef{.name = "aten.remainder.Scalar_Tensor",
          .schema = "(Scalar self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::remainder),
          .samples = "7, f32[a, b]; 2.5, f64[a]"},
    OpDef{.name = "aten.remainder.Tensor",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::remainder),
          .samples =
              "f32[a, b], f32[b]; i64[a], 3; i64[a], 2.5; f16[], f32[a]; i32[a], -3; bf16[a], 2"},
    OpDef{.name = "aten.rsub.Scalar",
          .schema = "(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::rsub),
          .samples = "f32[a, b], 2; i32[a], 2; i32[a, b], 2.5; f16[], 1.5; i64[a], a"},
    OpDef{.name = "aten.rsub.Tensor",
          .schema = "(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::rsub),
          .samples = "f32[a, b], f32[b]; f16[a, 1], f32[1, b]; i64[a], f32[]; i32[a], 2; f32[a], "
                     "2; i64[], f16[a, b]; u8[a], i8[a]"},
    OpDef{.name = "aten.special_xlog1py",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary_floating,
          .onnx = custom(onnx::xlog1py),
          .samples = "f32[a, b], f32[b]; i64[a, 1], i32[b]; i64[a], 2; f16[a], 2; i64[], f64[]; "
                     "bool[a], bool[a]"},
    OpDef{.name = "aten.special_zeta",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary_floating,
          .onnx = refuse("ONNX has no zeta function"),
          .samples = "f32[a, b], f32[b]; i64[a, 1], i32[b]; i64[a], 2; f64[a], 2; i64[], f64[]; "
                     "bool[a], bool[a]"},
    OpDef{.name = "aten.sub.Scalar",
          .schema = "(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::sub),
          .samples = "f32[a, b], 2; i32[a], 2; i32[a, b], 2.5; f16[], 1.5; i64[a], a"},
    OpDef{.name = "aten.sub.Tensor",
          .schema = "(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
          .infer = binary,
          .onnx = custom(onnx::sub),
          .samples = "f32[a, b], f32[b]; f16[a, 1], f32[1, b]; i64[a], f32[]; i32[a], 2; f32[a], "
                     "2; i64[], f16[a, b]; u8[a], i8[a]; i64[a], a - 1, alpha=2; c64[a], c64[a]"},
    OpDef{.name = "aten.xlogy.Scalar_Other",
          .schema = "(Tensor self, Scalar other) -> Tensor",
          .infer = binary_floating,
          .onnx = custom(onnx::xlogy),
          .samples = "f32[a, b], 2; i64[a], 3"},
    OpDef{.name = "aten.xlogy.Scalar_Self",
          .schema = "(Scalar self, Tensor other) -> Tensor",
          .infer = binary_floating,
          .onnx = custom(onnx::xlogy),
          .samples = "2, f32[a, b]; 1, i64[a]"},
    OpDef{.name = "aten.xlogy.Tensor",
          .schema = "(Tensor self, Tensor other) -> Tensor",
          .infer = binary_floating,
          .onnx = custom(onnx::xlogy),
          .samples = "f32[a, b], f32[b]; i64[a, 1], i32[b]; i64[a], 2; f16[a], 2; i64[], f64[]; "
                     "bool[a], bool[a]"},
};
static_assert(first_bad_row(kBinaryOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> binary_ops() { return kBinaryOps; }

}  // namespace modelport::ops
