// Tensors made from sizes and numbers alone.
#include "ops/onnx/create.h"

#include <algorithm>
#include <array>

#include "ops/decompositions/create.h"
#include "ops/emit/emitter.h"
#include "ops/rules/arange.h"
#include "ops/rules/rules.h"
#include "ops/table/families.h"

namespace modelport::ops {
namespace {

Results of_size(Call& call) {
  return one(call.dtype("dtype").value_or(Dtype::f32), call.ints("size"));
}

Results full(Call& call) {
  const Dtype dtype = call.number_dtype("fill_value").value_or(Dtype::f32);
  return one(call.dtype("dtype").value_or(dtype), call.ints("size"));
}

Results linspace(Call& call) {
  return one(call.dtype("dtype").value_or(Dtype::f32), {call.integer("steps")});
}

Results eye(Call& call) {
  const bool square = schema_of(call.op()).find("m") == nullptr;
  const Int rows = call.integer("n");
  return one(call.dtype("dtype").value_or(Dtype::f32), {rows, square ? rows : call.integer("m")});
}

Results scalar_tensor(Call& call) { return one(call.dtype("dtype").value_or(Dtype::f32), {}); }

/// How many cells of a matrix lie on or below the diagonal `offset`.
std::int64_t lower_cells(std::int64_t rows, std::int64_t columns, std::int64_t offset) {
  std::int64_t cells = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    cells += std::clamp<std::int64_t>(row + offset + 1, 0, columns);
  }
  return cells;
}

Results triangle_indices(Call& call) {
  const std::int64_t rows = call.number("row");
  const std::int64_t columns = call.number("col");
  const std::int64_t offset = call.number("offset");
  const bool lower = call.op().name == "aten.tril_indices";
  const std::int64_t cells = lower ? lower_cells(rows, columns, offset)
                                   : rows * columns - lower_cells(rows, columns, offset - 1);
  return one(call.dtype("dtype").value_or(Dtype::i64), {2, cells});
}

Results signal_window(Call& call) {
  return one(call.dtype("dtype").value_or(Dtype::f32), {call.integer("window_length")});
}

constexpr std::array kCreateOps{
    OpDef{.name = "aten.arange",
          .schema = "(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                    "device=None, bool? pin_memory=None) -> Tensor",
          .infer = arange,
          .onnx = custom(onnx::arange),
          .samples = "a; a, dtype=f32; 2*a + 1; 5.5; 7; a, dtype=i32; a, dtype=bf16"},
    OpDef{.name = "aten.arange.start",
          .schema = "(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, "
                    "Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = arange,
          .onnx = custom(onnx::arange),
          .executorch = decompose([](emit::Emitter& e) {
            return e.call("aten.arange.start_step", {e.arg("start"), e.arg("end"), 1},
                          {{"dtype", e.arg("dtype")}});
          }),
          .samples = "1, a; 0.5, 4; -a, b; a, a + b; 0, a, dtype=f32"},
    OpDef{.name = "aten.arange.start_step",
          .schema = "(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = arange,
          .onnx = custom(onnx::arange),
          .executorch = direct("aten::arange.start_out"),
          .samples = "0, a, 2; a, 0, -1; a, -1, -2; 0, 1, 0.1; 0, a, 3, dtype=f32; 1.5, 9, 2, "
                     "dtype=i64; 0, 10 + a, a; 2, 2; 0.5, a, 0.25; 10, 0, -3, dtype=f64"},
    OpDef{.name = "aten.bartlett_window",
          .schema = "(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                    "device=None, bool? pin_memory=None) -> Tensor",
          .infer = signal_window,
          .onnx = custom(onnx::signal_window),
          .executorch = decompose(parts::window),
          .samples = "a; 5, dtype=f64"},
    OpDef{.name = "aten.bartlett_window.periodic",
          .schema = "(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = signal_window,
          .onnx = custom(onnx::signal_window),
          .executorch = decompose(parts::window),
          .samples = "a, False; 5, True, dtype=f64"},
    OpDef{.name = "aten.blackman_window",
          .schema = "(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                    "device=None, bool? pin_memory=None) -> Tensor",
          .infer = signal_window,
          .onnx = custom(onnx::signal_window),
          .executorch = decompose(parts::window),
          .samples = "a; 5, dtype=f64"},
    OpDef{.name = "aten.blackman_window.periodic",
          .schema = "(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = signal_window,
          .onnx = custom(onnx::signal_window),
          .executorch = decompose(parts::window),
          .samples = "a, False; 5, True, dtype=f64"},
    OpDef{.name = "aten.empty.memory_format",
          .schema =
              "(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
              "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
          .infer = of_size,
          .onnx = custom(onnx::zeros),
          .samples = "[a, b]; [a, 2*b + 1], dtype=i64; []; [a], dtype=bool"},
    OpDef{.name = "aten.empty_permuted",
          .schema = "(SymInt[] size, int[] physical_layout, *, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = of_size,
          .onnx = custom(onnx::zeros),
          .executorch = decompose(parts::empty),
          .samples = "[a, b], [1, 0]; [a], [0], dtype=i64"},
    OpDef{.name = "aten.empty_strided",
          .schema = "(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = of_size,
          .onnx = custom(onnx::zeros),
          .executorch = decompose(parts::empty),
          .samples = "[a, b], [b, 1]; [a], [1], dtype=i64"},
    OpDef{.name = "aten.eye",
          .schema = "(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                    "device=None, bool? pin_memory=None) -> Tensor",
          .infer = eye,
          .onnx = custom(onnx::eye),
          .executorch = decompose(parts::eye),
          .samples = "a; 3, dtype=i64; 0; a, dtype=bf16"},
    OpDef{.name = "aten.eye.m",
          .schema = "(SymInt n, SymInt m, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                    "device=None, bool? pin_memory=None) -> Tensor",
          .infer = eye,
          .onnx = custom(onnx::eye),
          .executorch = decompose(parts::eye),
          .samples = "a, b; 3, 0, dtype=bool"},
    OpDef{.name = "aten.full",
          .schema = "(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = full,
          .onnx = custom(onnx::full),
          .samples = "[a, b], 0.5; [a], 1; [], True; [a, b], 1, dtype=f16; [a], a; [a], 0.5, "
                     "dtype=bf16; [a], 2, dtype=c64"},
    OpDef{.name = "aten.hamming_window",
          .schema = "(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                    "device=None, bool? pin_memory=None) -> Tensor",
          .infer = signal_window,
          .onnx = custom(onnx::signal_window),
          .executorch = decompose(parts::window),
          .samples = "a; 5, dtype=f64"},
    OpDef{.name = "aten.hamming_window.periodic",
          .schema = "(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = signal_window,
          .onnx = custom(onnx::signal_window),
          .executorch = decompose(parts::window),
          .samples = "a, False; 5, True, dtype=f64"},
    OpDef{.name = "aten.hann_window",
          .schema = "(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                    "device=None, bool? pin_memory=None) -> Tensor",
          .infer = signal_window,
          .onnx = custom(onnx::signal_window),
          .executorch = decompose(parts::window),
          .samples = "a; 5, dtype=f64"},
    OpDef{.name = "aten.hann_window.periodic",
          .schema = "(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = signal_window,
          .onnx = custom(onnx::signal_window),
          .executorch = decompose(parts::window),
          .samples = "a, False; 5, True, dtype=f64; 1, False"},
    OpDef{.name = "aten.kaiser_window",
          .schema = "(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                    "device=None, bool? pin_memory=None) -> Tensor",
          .infer = signal_window,
          .onnx = custom(onnx::signal_window),
          .executorch = refuse("the runtime has no Bessel functions"),
          .samples = "a; 5, dtype=f64"},
    OpDef{.name = "aten.kaiser_window.periodic",
          .schema = "(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = signal_window,
          .onnx = custom(onnx::signal_window),
          .executorch = refuse("the runtime has no Bessel functions"),
          .samples = "a, False; 5, True, dtype=f64"},
    OpDef{.name = "aten.linspace",
          .schema = "(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = linspace,
          .onnx = custom(onnx::linspace),
          .executorch = decompose(parts::linspace),
          .samples = "0, 1, a; -1.0, 1.0, 5; 0, 10, a, dtype=f64; 0, 10, 5, dtype=i64; 3, 3, 1"},
    OpDef{.name = "aten.linspace.Scalar_Tensor",
          .schema = "(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = linspace,
          .onnx = custom(onnx::linspace),
          .executorch = decompose(parts::linspace),
          .samples = "1, f32[], a; 2.0, f32[], 5, dtype=f64"},
    OpDef{.name = "aten.linspace.Tensor_Scalar",
          .schema = "(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = linspace,
          .onnx = custom(onnx::linspace),
          .executorch = decompose(parts::linspace),
          .samples = "f32[], 1, a; f32[], 2.0, 5, dtype=f64"},
    OpDef{.name = "aten.linspace.Tensor_Tensor",
          .schema = "(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? "
                    "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = linspace,
          .onnx = custom(onnx::linspace),
          .executorch = decompose(parts::linspace),
          .samples = "f32[], f32[], a; f64[], f32[], 5; i64[], i64[], 3"},
    OpDef{.name = "aten.logspace",
          .schema =
              "(Scalar start, Scalar end, int steps, float base=10., *, ScalarType? dtype=None, "
              "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = linspace,
          .onnx = custom(onnx::logspace),
          .executorch = decompose(parts::logspace),
          .samples = "0, 1, a; -1.0, 1.0, 5, 2.0; 0, 10, a, dtype=f64"},
    OpDef{.name = "aten.ones",
          .schema = "(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                    "device=None, bool? pin_memory=None) -> Tensor",
          .infer = of_size,
          .onnx = custom(onnx::ones),
          .samples = "[a, b]; [a, 2*b + 1], dtype=i64; []; [a], dtype=bool"},
    OpDef{.name = "aten.scalar_tensor",
          .schema = "(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                    "device=None, bool? pin_memory=None) -> Tensor",
          .infer = scalar_tensor,
          .onnx = custom(onnx::full),
          .samples = "1; 0.5, dtype=f16; True, dtype=bool; a, dtype=i64"},
    OpDef{.name = "aten.tril_indices",
          .schema = "(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, "
                    "Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = triangle_indices,
          .onnx = custom(onnx::triangle_indices),
          .executorch = decompose(parts::triangle_indices),
          .samples = "3, 4; 4, 3, 1; 5, 5, -2, dtype=i32; 0, 3; 3, 5, -4; 2, 3, 7; 4, 4, -1"},
    OpDef{.name = "aten.triu_indices",
          .schema = "(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, "
                    "Device? device=None, bool? pin_memory=None) -> Tensor",
          .infer = triangle_indices,
          .onnx = custom(onnx::triangle_indices),
          .executorch = decompose(parts::triangle_indices),
          .samples = "3, 4; 4, 3, 1; 5, 5, -2, dtype=i32; 0, 3; 3, 5, -4; 2, 3, 7; 4, 4, -1"},
    OpDef{.name = "aten.zeros",
          .schema = "(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                    "device=None, bool? pin_memory=None) -> Tensor",
          .infer = of_size,
          .onnx = custom(onnx::zeros),
          .samples = "[a, b]; [a, 2*b + 1], dtype=i64; []; [a], dtype=bool; [a], dtype=bf16; [a], "
                     "dtype=c64"},
};
static_assert(first_bad_row(kCreateOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> create_ops() { return kCreateOps; }

}  // namespace modelport::ops
