// Random tensors after the pattern of another one; what fills a tensor in place is functional here.
#include <array>

#include "ops/decompositions/create.h"
#include "ops/onnx/random.h"
#include "ops/rules/axes.h"
#include "ops/table/families.h"

namespace modelport::ops {
namespace {

Results like(Call& call) {
  return one(call.dtype("dtype").value_or(call.dtype_of("self")), call.shape("self"));
}

Results binomial(Call& call) {
  return one(call.dtype_of("count"), broadcast_args(call, {"count", "prob"}));
}

constexpr std::array kRandomLikeOps{
    OpDef{.name = "aten._standard_gamma",
          .schema = "(Tensor self, Generator? generator=None) -> Tensor",
          .infer = like_self,
          .onnx = refuse("ONNX has no gamma distribution"),
          .executorch = refuse("the runtime has no gamma distribution"),
          .samples = "f32[a, b]; f64[a]"},
    OpDef{.name = "aten.bernoulli",
          .schema = "(Tensor self, *, Generator? generator=None) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::bernoulli),
          .executorch = decompose(parts::bernoulli),
          .samples = "f32[a, b]; f64[]"},
    OpDef{.name = "aten.bernoulli.Tensor",
          .schema = "(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::bernoulli),
          .executorch = decompose(parts::bernoulli),
          .samples = "f32[a, b], f32[b]; i64[a], f32[a]"},
    OpDef{.name = "aten.bernoulli.p",
          .schema = "(Tensor self, float p, *, Generator? generator=None) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::bernoulli),
          .executorch = decompose(parts::bernoulli),
          .samples = "f32[a, b], 0.5; i64[a], 0.1"},
    OpDef{.name = "aten.binomial",
          .schema = "(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
          .infer = binomial,
          .onnx = refuse("ONNX has no binomial distribution"),
          .executorch = refuse("the runtime has no binomial distribution"),
          .samples = "f32[a, b], f32[a, b]; f64[a], f64[a]"},
    OpDef{.name = "aten.cauchy",
          .schema = "(Tensor self, float median=0., float sigma=1., *, Generator? generator=None) "
                    "-> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::cauchy),
          .executorch = decompose(parts::cauchy),
          .samples = "f32[a, b]; f64[]; f16[a]"},
    OpDef{.name = "aten.exponential",
          .schema = "(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::exponential),
          .executorch = decompose(parts::exponential),
          .samples = "f32[a, b]; f64[]; f16[a]; f32[a], 2.0"},
    OpDef{.name = "aten.geometric",
          .schema = "(Tensor self, float p, *, Generator? generator=None) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::geometric),
          .executorch = decompose(parts::geometric),
          .samples = "f32[a, b], 0.5; i64[a], 0.25"},
    OpDef{.name = "aten.log_normal",
          .schema =
              "(Tensor self, float mean=1., float std=2., *, Generator? generator=None) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::log_normal),
          .executorch = decompose(parts::log_normal),
          .samples = "f32[a, b]; f64[]; f16[a]"},
    OpDef{.name = "aten.normal_functional",
          .schema =
              "(Tensor self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::normal),
          .executorch = decompose(parts::normal),
          .samples = "f32[a, b]; f64[]; f16[a]; f32[a], 1.0, 2.0"},
    OpDef{.name = "aten.poisson",
          .schema = "(Tensor self, Generator? generator=None) -> Tensor",
          .infer = like_self,
          .onnx = refuse("ONNX has no Poisson distribution"),
          .executorch = refuse("the runtime has no Poisson distribution"),
          .samples = "f32[a, b]; f64[]; f16[a]"},
    OpDef{.name = "aten.rand_like",
          .schema =
              "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
              "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
          .infer = like,
          .onnx = custom(onnx::rand),
          .executorch = decompose(parts::rand),
          .samples = "f32[a, b]; f16[a], dtype=f64; f32[]"},
    OpDef{.name = "aten.rand_like.generator",
          .schema = "(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
                    "memory_format=None) -> Tensor",
          .infer = like,
          .onnx = custom(onnx::rand),
          .executorch = decompose(parts::rand),
          .samples = "f32[a, b], generator=None; f16[a], generator=None, dtype=f64"},
    OpDef{.name = "aten.randint_like",
          .schema =
              "(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? "
              "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
          .infer = like,
          .onnx = custom(onnx::randint),
          .executorch = decompose(parts::randint),
          .samples = "f32[a, b], 5; i64[a], 3, dtype=i32"},
    OpDef{.name = "aten.randint_like.low_dtype",
          .schema = "(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
                    "memory_format=None) -> Tensor",
          .infer = like,
          .onnx = custom(onnx::randint),
          .executorch = decompose(parts::randint),
          .samples = "f32[a, b], 1, 5; i64[a], 0, 3, dtype=i32"},
    OpDef{.name = "aten.randn_like",
          .schema =
              "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
              "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
          .infer = like,
          .onnx = custom(onnx::randn),
          .executorch = decompose(parts::randn),
          .samples = "f32[a, b]; f16[a], dtype=f64; f32[]"},
    OpDef{.name = "aten.randn_like.generator",
          .schema = "(Tensor self, *, Generator? generator, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? "
                    "memory_format=None) -> Tensor",
          .infer = like,
          .onnx = custom(onnx::randn),
          .executorch = decompose(parts::randn),
          .samples = "f32[a, b], generator=None; f16[a], generator=None, dtype=f64"},
    OpDef{.name = "aten.random",
          .schema = "(Tensor self, *, Generator? generator=None) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::random_integers),
          .executorch = decompose(parts::random_integers),
          .samples = "f32[a, b]; i64[]"},
    OpDef{.name = "aten.random.from",
          .schema = "(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::random_integers),
          .executorch = decompose(parts::random_integers),
          .samples = "f32[a, b], 0, 5; i64[], 1, 4"},
    OpDef{.name = "aten.random.to",
          .schema = "(Tensor self, int to, *, Generator? generator=None) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::random_integers),
          .executorch = decompose(parts::random_integers),
          .samples = "f32[a, b], 5; i64[], 4"},
    OpDef{.name = "aten.uniform",
          .schema =
              "(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor",
          .infer = like_self,
          .onnx = custom(onnx::uniform),
          .executorch = decompose(parts::uniform),
          .samples = "f32[a, b]; f64[]; f16[a]; f32[a], -1.0, 2.0"},
};
static_assert(first_bad_row(kRandomLikeOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> random_like_ops() { return kRandomLikeOps; }

}  // namespace modelport::ops
