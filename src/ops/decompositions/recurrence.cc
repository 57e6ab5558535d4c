// Recurrences in doubling steps: combining each place with the one 1, 2, 4, ... before it gives the
// same as going from place to place, because a step after a step is a step.
#include "ops/decompositions/reduce.h"
#include "ops/rules/axes.h"

namespace modelport::ops::parts {
namespace {

/// state = join(apply(decay, state), input)
struct Recurrence {
  std::string_view apply;
  std::string_view join;
};

constexpr std::int64_t kMostPlaces = 65536;  // that the row takes

Value recurrence(Emitter& e, const Recurrence& rows) {
  Value decay = e.tensor("decay");
  Value x = e.tensor("input");
  const std::int64_t axis = e.axis("dim", e.rank(x));
  const Int length = e.shape(x)[static_cast<std::size_t>(axis)];
  const auto part = [&](Value of, const Int& start, const Int& size) {
    return e.call("aten.narrow", {of, axis, start, size});
  };
  const auto join = [&](Value a, Value b) { return e.call("aten.cat", {Values{a, b}, axis}); };
  const auto follow = [&](Value decays, Value before, Value inputs) {
    return e.call(rows.join, {e.call(rows.apply, {decays, before}), inputs});
  };
  if (const Value state = e.tensor("state"); state != kNoValue) {
    const Value before = e.call("aten.unsqueeze", {state, axis});
    const Value first = follow(part(decay, 0, 1), before, part(x, 0, 1));
    x = length.constant() == 1 ? first : join(first, part(x, 1, length - 1));
  }
  // A place has seen as many places as steps are far: the last step is the one that reaches the
  // longest that the axis may be.
  const auto suffices = [&](std::int64_t places) {
    return places >= kMostPlaces || e.surely_at_least(Int(places) - length, 0);
  };
  for (std::int64_t far = 1; !suffices(far); far *= 2) {
    const Int apart = shape::min(Int(far), length);
    const Int both = length - apart;
    const Value decays = part(decay, apart, both);
    x = join(part(x, 0, apart), follow(decays, part(x, 0, both), part(x, apart, both)));
    if (suffices(2 * far)) break;
    decay = join(part(decay, 0, apart), e.call(rows.apply, {decays, part(decay, 0, both)}));
  }
  return x;
}

}  // namespace

Value linear_recurrence(Emitter& e) {
  return recurrence(e, {"aten.mul.Tensor", "aten.add.Tensor"});
}
Value maximum_recurrence(Emitter& e) { return recurrence(e, {"aten.add.Tensor", "aten.maximum"}); }

}  // namespace modelport::ops::parts
