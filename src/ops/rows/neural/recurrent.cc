// Recurrent layers, whole sequences at once, and single steps of them.
#include "ops/onnx/recurrent.h"

#include <array>

#include "ops/decompositions/neural.h"
#include "ops/rules/axes.h"
#include "ops/table/families.h"
#include "ops/table/family_parts.h"

namespace modelport::ops {
namespace {

/// The output of the last layer, both directions side by side. The state tells its width: with a
/// projection that is not the hidden size.
ir::TensorType sequence_output(Call& call, const Int& width) {
  const Int directions = call.flag("bidirectional") ? 2 : 1;
  return {call.dtype_of("input"),
          with_size(call.shape("input"), call.rank("input") - 1, width * directions)};
}

Results lstm(Call& call) {
  const std::vector<const ir::TensorType*> states = all_tensors(call, "hx");
  call.require(states.size() == 2, "an LSTM has two states");
  return {sequence_output(call, size_at(call, states[0]->shape, -1)), *states[0], *states[1]};
}

Results rnn(Call& call) {
  const ir::TensorType& state = call.tensor("hx");
  return {sequence_output(call, size_at(call, state.shape, -1)), state};
}

Results lstm_cell(Call& call) {
  const std::vector<const ir::TensorType*> states = all_tensors(call, "hx");
  call.require(states.size() == 2, "an LSTM has two states");
  return {*states[0], *states[1]};
}

Results like_state(Call& call) { return {call.tensor("hx")}; }

constexpr std::array kRecurrentOps{
    OpDef{.name = "aten.gru.input",
          .schema =
              "(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
              "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
          .infer = rnn,
          .onnx = custom(onnx::recurrent),
          .executorch = decompose(parts::gru),
          .samples =
              "f32[a, b, 3], f32[1, b, 4], [f32[12, 3], f32[12, 4], f32[12], f32[12]], "
              "True, 1, 0.0, False, False, False; f32[b, a, 3], f32[2, b, 4], [f32[12, 3], "
              "f32[12, 4], f32[12, 3], f32[12, 4]], False, 1, 0.0, False, True, True; f32[a, b, "
              "3], f32[4, b, 4], [f32[12, 3], f32[12, 4], f32[12], f32[12], f32[12, 3], f32[12, "
              "4], f32[12], f32[12], f32[12, 8], f32[12, 4], f32[12], f32[12], f32[12, 8], f32[12, "
              "4], f32[12], f32[12]], True, 2, 0.0, False, True, False; f32[5, b, 3], f32[2, b, "
              "4], [f32[12, 3], f32[12, 4], f32[12], f32[12], f32[12, 3], f32[12, 4], f32[12], "
              "f32[12]], True, 1, 0.0, False, True, False"},
    OpDef{.name = "aten.gru_cell",
          .schema = "(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
                    "Tensor? b_hh=None) -> Tensor",
          .infer = like_state,
          .onnx = custom(onnx::gru_cell),
          .executorch = decompose(parts::gru_cell),
          .samples = "f32[a, 3], f32[a, 4], f32[12, 3], f32[12, 4]; f32[a, b], f32[a, 2], f32[6, "
                     "b], f32[6, 2], f32[6], f32[6]"},
    OpDef{.name = "aten.lstm.input",
          .schema = "(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, "
                    "float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, "
                    "Tensor, Tensor)",
          .infer = lstm,
          .onnx = custom(onnx::recurrent),
          .executorch = decompose(parts::lstm),
          .samples =
              "f32[a, b, 3], [f32[1, b, 4], f32[1, b, 4]], [f32[16, 3], f32[16, 4], f32[16], "
              "f32[16]], True, 1, 0.0, False, False, False; f32[b, a, 3], [f32[2, b, 4], f32[2, b, "
              "4]], [f32[16, 3], f32[16, 4], f32[16, 3], f32[16, 4]], False, 1, 0.0, False, True, "
              "True; f32[a, b, 3], [f32[1, b, 2], f32[1, b, 4]], [f32[16, 3], f32[16, 2], f32[16], "
              "f32[16], f32[2, 4]], True, 1, 0.0, False, False, False; f32[b, a, 3], [f32[4, b, "
              "4], f32[4, b, 4]], [f32[16, 3], f32[16, 4], f32[16], f32[16], f32[16, 3], f32[16, "
              "4], f32[16], f32[16], f32[16, 8], f32[16, 4], f32[16], f32[16], f32[16, 8], f32[16, "
              "4], f32[16], f32[16]], True, 2, 0.0, False, True, True; f32[b, a, 3], [f32[4, b, "
              "2], f32[4, b, 4]], [f32[16, 3], f32[16, 2], f32[16], f32[16], f32[2, 4], f32[16, "
              "3], f32[16, 2], f32[16], f32[16], f32[2, 4], f32[16, 4], f32[16, 2], f32[16], "
              "f32[16], f32[2, 4], f32[16, 4], f32[16, 2], f32[16], f32[16], f32[2, 4]], True, 2, "
              "0.0, False, True, True; f32[b, 5, 3], [f32[2, b, 2], f32[2, b, 4]], [f32[16, 3], "
              "f32[16, 2], f32[16], f32[16], f32[2, 4], f32[16, 3], f32[16, 2], f32[16], f32[16], "
              "f32[2, 4]], True, 1, 0.0, False, True, True; f32[3, b, 3], [f32[2, b, 4], f32[2, b, "
              "4]], [f32[16, 3], f32[16, 4], f32[16, 4], f32[16, 4]], False, 2, 0.0, False, False, "
              "False"},
    OpDef{.name = "aten.lstm_cell",
          .schema = "(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
                    "Tensor? b_hh=None) -> (Tensor, Tensor)",
          .infer = lstm_cell,
          .onnx = custom(onnx::lstm_cell),
          .executorch = decompose(parts::lstm_cell),
          .samples = "f32[a, 3], [f32[a, 4], f32[a, 4]], f32[16, 3], f32[16, 4]; f32[a, b], "
                     "[f32[a, 2], f32[a, 2]], f32[8, b], f32[8, 2], f32[8], f32[8]"},
    OpDef{.name = "aten.rnn_relu.input",
          .schema =
              "(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
              "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
          .infer = rnn,
          .onnx = custom(onnx::recurrent),
          .executorch = decompose(parts::rnn_relu),
          .samples =
              "f32[a, b, 3], f32[1, b, 4], [f32[4, 3], f32[4, 4], f32[4], f32[4]], True, 1, "
              "0.0, False, False, False; f32[b, a, 3], f32[2, b, 4], [f32[4, 3], f32[4, 4], "
              "f32[4, 3], f32[4, 4]], False, 1, 0.0, False, True, True; f32[4, b, 3], f32[1, b, "
              "4], [f32[4, 3], f32[4, 4], f32[4], f32[4]], True, 1, 0.0, False, False, False"},
    OpDef{.name = "aten.rnn_relu_cell",
          .schema = "(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
                    "Tensor? b_hh=None) -> Tensor",
          .infer = like_state,
          .onnx = custom(onnx::rnn_cell),
          .executorch = decompose(parts::rnn_relu_cell),
          .samples = "f32[a, 3], f32[a, 4], f32[4, 3], f32[4, 4]; f32[a, b], f32[a, 2], f32[2, b], "
                     "f32[2, 2], f32[2], f32[2]"},
    OpDef{.name = "aten.rnn_tanh.input",
          .schema =
              "(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
              "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
          .infer = rnn,
          .onnx = custom(onnx::recurrent),
          .executorch = decompose(parts::rnn_tanh),
          .samples =
              "f32[a, b, 3], f32[1, b, 4], [f32[4, 3], f32[4, 4], f32[4], f32[4]], True, 1, "
              "0.0, False, False, False; f32[b, a, 3], f32[2, b, 4], [f32[4, 3], f32[4, 4], "
              "f32[4, 3], f32[4, 4]], False, 1, 0.0, False, True, True; f32[a, b, 3], "
              "f32[4, b, 4], [f32[4, 3], f32[4, 4], f32[4], f32[4], f32[4, 3], f32[4, 4], "
              "f32[4], f32[4], f32[4, 8], f32[4, 4], f32[4], f32[4], f32[4, 8], f32[4, 4], "
              "f32[4], f32[4]], True, 2, 0.0, False, True, False; f32[4, b, 3], f32[1, b, 4], "
              "[f32[4, 3], f32[4, 4], f32[4], f32[4]], True, 1, 0.0, False, False, False"},
    OpDef{.name = "aten.rnn_tanh_cell",
          .schema = "(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, "
                    "Tensor? b_hh=None) -> Tensor",
          .infer = like_state,
          .onnx = custom(onnx::rnn_cell),
          .executorch = decompose(parts::rnn_tanh_cell),
          .samples = "f32[a, 3], f32[a, 4], f32[4, 3], f32[4, 4]; f32[a, b], f32[a, 2], f32[2, b], "
                     "f32[2, 2], f32[2], f32[2]"},
};
static_assert(first_bad_row(kRecurrentOps).empty(), "unsorted, duplicate or half-filled row");

}  // namespace

std::span<const OpDef> recurrent_ops() { return kRecurrentOps; }

}  // namespace modelport::ops