// What caches in place need beside attention: tables for every position, and the order of tokens.
#include "ops/decompositions/linear.h"
#include "ops/emit/emitter.h"

namespace modelport::ops::parts {

/// [1, positions, columns]: each `step`-th column, as many as there are pairs.
Value position_table(emit::Emitter& e) {
  const Int pairs = e.call().integer("pairs");
  const Int step = e.call().integer("step");
  const Value rows = e.call("aten.select.int", {e.tensor("self"), 0, 0});
  return e.call("aten.slice.Tensor", {rows, 1, 0, pairs * step, step});
}

Value positions(emit::Emitter& e) {
  return e.call("aten.unsqueeze", {e.call("aten.arange", {e.arg("count")}), 0});
}

/// The kernel counts the tokens of a row; it does not look where the mask has them. So the new ones
/// come first, with padding behind them, and there is padding in the first call only.
Value tokens_come_first(emit::Emitter& e) {
  const Int fresh = e.call().integer("tokens");
  const Int past = e.call().shape("attention_mask")[1] - fresh;
  const Value mask = e.call("aten.slice.Tensor", {e.tensor("attention_mask"), 1, past});
  const Value there = e.call("aten.to.dtype", {mask, Dtype::boolean});
  const Value count = e.call("aten.sum.dim_IntList", {there, Shape{1}, true});
  const Value wanted = e.call("aten.lt.Tensor", {e.call("aten.arange", {fresh}), count});
  const Value same = e.call("aten.eq.Tensor", {there, wanted});
  const Int least = shape::max(1, shape::min(fresh, past * fresh));
  const Value enough = e.call("aten.ge.Scalar", {count, least});
  return e.call("aten.all", {e.call("aten.logical_and", {same, enough})});
}

}  // namespace modelport::ops::parts
