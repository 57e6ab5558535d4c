// Functions of mathematics with one operand that torch has under `special`.
#include "ops/onnx/special.h"

#include <array>

#include "ops/decompositions/pointwise.h"
#include "ops/onnx/unary.h"
#include "ops/rules/pointwise.h"
#include "ops/table/families.h"

namespace modelport::ops {
namespace {

Results floating_x(Call& call) { return one(to_floating(call.dtype_of("x")), call.shape("x")); }

constexpr std::array kSpecialOps{
    OpDef{.name = "aten.special_bessel_j0",
          .schema = "(Tensor self) -> Tensor",
          .infer = floating_self,
          .onnx = refuse("ONNX has no Bessel functions"),
          .executorch = refuse("the runtime has no Bessel functions"),
          .samples = "f32[a, b]; i64[a]; bool[b]; f64[]"},
    OpDef{.name = "aten.special_bessel_j1",
          .schema = "(Tensor self) -> Tensor",
          .infer = floating_self,
          .onnx = refuse("ONNX has no Bessel functions"),
          .executorch = refuse("the runtime has no Bessel functions"),
          .samples = "f32[a, b]; i64[a]; bool[b]; f64[]"},
    OpDef{.name = "aten.special_entr",
          .schema = "(Tensor self) -> Tensor",
          .infer = floating_self,
          .onnx = custom(onnx::entropy_term),
          .executorch = decompose(parts::entropy_term),
          .samples = "f32[a, b]; i64[a]; bool[b]; f16[]"},
    OpDef{.name = "aten.special_erfcx",
          .schema = "(Tensor self) -> Tensor",
          .infer = floating_self,
          .onnx = custom(onnx::erfcx),
          .executorch = refuse("the runtime has no scaled error function"),
          .samples = "f32[a, b]; i64[a]; bool[b]; f64[]"},
    OpDef{.name = "aten.special_i0e",
          .schema = "(Tensor self) -> Tensor",
          .infer = floating_self,
          .onnx = custom(onnx::bessel_i0e),
          .executorch = refuse("the runtime has no Bessel functions"),
          .samples = "f32[a, b]; i64[a]; bool[b]; f16[]"},
    OpDef{.name = "aten.special_i1",
          .schema = "(Tensor self) -> Tensor",
          .infer = floating_self,
          .onnx = custom(onnx::bessel_i1),
          .executorch = refuse("the runtime has no Bessel functions"),
          .samples = "f32[a, b]; i64[a]; bool[b]; f16[]"},
    OpDef{.name = "aten.special_i1e",
          .schema = "(Tensor self) -> Tensor",
          .infer = floating_self,
          .onnx = custom(onnx::bessel_i1e),
          .executorch = refuse("the runtime has no Bessel functions"),
          .samples = "f32[a, b]; i64[a]; bool[b]; f16[]"},
    OpDef{.name = "aten.special_log_ndtr",
          .schema = "(Tensor self) -> Tensor",
          .infer = floating_self,
          .onnx = custom(onnx::log_ndtr),
          .executorch = refuse("the runtime has no logarithm of the normal distribution"),
          .samples = "f32[a, b]; i64[a]; bool[b]; f64[]"},
    OpDef{.name = "aten.special_logit",
          .schema = "(Tensor self, float? eps=None) -> Tensor",
          .infer = floating_self,
          .onnx = custom(onnx::logit),
          .executorch = decompose(parts::logit),
          .samples = "f32[a, b]; i64[a]; bool[b]; f16[]"},
    OpDef{.name = "aten.special_ndtri",
          .schema = "(Tensor self) -> Tensor",
          .infer = floating_self,
          .onnx = custom(onnx::ndtri),
          .executorch = refuse("the runtime has no inverse of the normal distribution"),
          .samples = "f32[a, b]; i64[a]; bool[b]; f64[]"},
    OpDef{.name = "aten.special_spherical_bessel_j0",
          .schema = "(Tensor x) -> Tensor",
          .infer = floating_x,
          .onnx = decompose(parts::spherical_bessel_j0),
          .executorch = decompose(parts::spherical_bessel_j0),
          .samples = "f32[a, b]; i64[a]; bool[b]; f64[]"},
};
static_assert(first_bad_row(kSpecialOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> special_ops() { return kSpecialOps; }

}  // namespace modelport::ops
