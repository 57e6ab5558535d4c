// A mixture of experts as onnxruntime's operator takes it: with the share of every expert in every
// token, most of them zero.
#include "ops/onnx/attention.h"
#include "ops/onnx/pieces.h"

namespace modelport::ops::onnx {

Values experts(Lower& l) {
  const Value tokens = l.in("tokens");
  const Dtype dtype = l.dtype(tokens);
  const Value shares = l.in("shares", dtype);
  const Shape all{l.shape(tokens)[0], l.shape(l.in("gate_up"))[0]};
  const Value none = l.filled(l.number(0.0, dtype), all);
  const Value spread = scatter_elements(l, none, l.in("chosen", Dtype::i64), shares, 1);
  return {l.emit("com.microsoft.MoE", {tokens, spread, l.in("gate_up"), kNoValue, l.in("down")},
                 {{"k", {l.shape(shares)[1]}}}, l.type(tokens))};
}

}  // namespace modelport::ops::onnx
