// What caches in place need beside attention: the order of tokens.
#include "ops/decompositions/linear.h"
#include "ops/emit/emitter.h"

namespace modelport::ops::parts {

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
