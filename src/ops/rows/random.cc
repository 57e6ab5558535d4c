// Random tensors of a given size, and draws from distributions.
#include "ops/onnx/random.h"

#include <array>

#include "ops/decompositions/create.h"
#include "ops/emit/emitter.h"
#include "ops/executorch/guarded.h"
#include "ops/rules/rules.h"
#include "ops/table/families.h"

namespace modelport::ops {
namespace {

Results float_of_size(Call& call) {
  return one(call.dtype("dtype").value_or(Dtype::f32), call.ints("size"));
}

Results int_of_size(Call& call) {
  return one(call.dtype("dtype").value_or(Dtype::i64), call.ints("size"));
}

Results randperm(Call& call) {
  return one(call.dtype("dtype").value_or(Dtype::i64), {call.integer("n")});
}

Results like_mean(Call& call) { return {call.tensor("mean")}; }
Results like_std(Call& call) { return {call.tensor("std")}; }
Results normal_tensors(Call& call) {
  return one(call.dtype_of("mean"), broadcast_args(call, {"mean", "std"}));
}

Results multinomial(Call& call) {
  Shape shape = call.shape("self");
  call.require(!shape.empty() && shape.size() <= 2, "weights must have one or two axes");
  shape.back() = call.integer("num_samples");
  return one(Dtype::i64, std::move(shape));
}

constexpr std::array kRandomOps{
    OpDef{.name = "aten.multinomial",
          .schema = "(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? "
                    "generator=None) -> Tensor",
          .infer = multinomial,
          .onnx = custom(onnx::multinomial),
          .executorch = decompose(parts::multinomial),
          .samples = "f32[a, b], 2; f32[b], 3, True; f64[a, b], 1; f32[a, b], a, True"},
    OpDef{.name = "aten.normal.Tensor_Tensor",
          .schema = "(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
          .infer = normal_tensors,
          .onnx = custom(onnx::normal),
          .executorch = decompose(parts::normal),
          .samples = "f32[a, b], f32[b]; f32[a, 1], f32[b]; f64[], f64[a]"},
    OpDef{.name = "aten.normal.Tensor_float",
          .schema = "(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
          .infer = like_mean,
          .onnx = custom(onnx::normal),
          .executorch = decompose(parts::normal),
          .samples = "f32[a, b]; f64[a], 2.0"},
    OpDef{.name = "aten.normal.float_Tensor",
          .schema = "(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
          .infer = like_std,
          .onnx = custom(onnx::normal),
          .executorch = decompose(parts::normal),
          .samples = "0.0, f32[a, b]; 1.0, f64[]"},
    OpDef{.name = "aten.normal.float_float",
          .schema = "(float mean, float std, SymInt[] size, *, Generator? generator=None, "
                    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
                    "pin_memory=None) -> Tensor",
          .infer = float_of_size,
          .onnx = custom(onnx::normal),
          .executorch = decompose(parts::normal),
          .samples = "0.0, 1.0, [a, b]; 1.0, 2.0, [], dtype=f64"},
    OpDef{.name = "aten.rand",
          .schema = "(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                    "device=None, bool? pin_memory=None) -> Tensor",
          .infer = float_of_size,
          .onnx = custom(onnx::rand),
          .executorch = custom(executorch::rand),
          .samples = "[a, b]; [a], dtype=f16; []"},
    OpDef{.name = "aten.rand.generator",
          .schema = "(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = float_of_size,
          .onnx = custom(onnx::rand),
          .executorch = decompose([](emit::Emitter& e) {
            return e.call("aten.rand", {e.arg("size")}, {{"dtype", e.arg("dtype")}});
          }),
          .samples = "[a, b], generator=None; [a], generator=None, dtype=f16"},
    OpDef{.name = "aten.randint",
          .schema = "(SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, "
                    "Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = int_of_size,
          .onnx = custom(onnx::randint),
          .executorch = decompose(parts::randint),
          .samples = "5, [a, b]; 10, [], dtype=i32; a, [b]"},
    OpDef{.name = "aten.randint.generator",
          .schema = "(SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=4, "
                    "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = int_of_size,
          .onnx = custom(onnx::randint),
          .executorch = decompose(parts::randint),
          .samples = "5, [a, b], generator=None; 10, [], generator=None, dtype=i32"},
    OpDef{.name = "aten.randint.low",
          .schema = "(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = int_of_size,
          .onnx = custom(onnx::randint),
          .executorch = decompose(parts::randint),
          .samples = "1, 5, [a, b]; 0, 10, [a], dtype=f32"},
    OpDef{.name = "aten.randint.low_generator",
          .schema =
              "(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, ScalarType? "
              "dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = int_of_size,
          .onnx = custom(onnx::randint),
          .executorch = decompose(parts::randint),
          .samples = "1, 5, [a, b], generator=None; 0, 10, [a], generator=None, dtype=f32"},
    OpDef{.name = "aten.randn",
          .schema = "(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                    "device=None, bool? pin_memory=None) -> Tensor",
          .infer = float_of_size,
          .onnx = custom(onnx::randn),
          .samples = "[a, b]; [a], dtype=f16; []"},
    OpDef{.name = "aten.randn.generator",
          .schema = "(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = float_of_size,
          .onnx = custom(onnx::randn),
          .executorch = decompose([](emit::Emitter& e) {
            return e.call("aten.randn", {e.arg("size")}, {{"dtype", e.arg("dtype")}});
          }),
          .samples = "[a, b], generator=None; [a], generator=None, dtype=f16"},
    OpDef{.name = "aten.randperm",
          .schema = "(SymInt n, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, "
                    "bool? pin_memory=None) -> Tensor",
          .infer = randperm,
          .onnx = custom(onnx::randperm),
          .executorch = decompose(parts::randperm),
          .samples = "a; 5, dtype=i32; 2*a"},
    OpDef{.name = "aten.randperm.generator",
          .schema = "(SymInt n, *, Generator? generator, ScalarType? dtype=4, Layout? layout=None, "
                    "Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = randperm,
          .onnx = custom(onnx::randperm),
          .executorch = decompose(parts::randperm),
          .samples = "a, generator=None; 5, generator=None, dtype=i32"},
};
static_assert(first_bad_row(kRandomOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> random_ops() { return kRandomOps; }

}  // namespace modelport::ops
