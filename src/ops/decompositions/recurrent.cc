// Recurrent cells, and layers as many of them as there are steps.
#include "ops/decompositions/neural.h"
#include "ops/decompositions/pieces.h"

namespace modelport::ops::parts {
namespace {

constexpr std::int64_t kMostSteps = 512;

struct CellWeights {
  Value input, state, input_bias = kNoValue, state_bias = kNoValue, projection = kNoValue;
};

Value linear_of(Emitter& e, Value x, Value weight, Value bias) {
  if (bias == kNoValue) return e.call("aten.linear", {x, weight});
  return e.call("aten.linear", {x, weight, bias});
}

Values gates_of(Emitter& e, Value x, std::int64_t count) {
  const Int width = divided(e.call(), e.shape(x).back(), count);
  Values gates;
  for (std::int64_t i = 0; i < count; ++i)
    gates.push_back(sliced(e, x, e.rank(x) - 1, width * i, width * (i + 1)));
  return gates;
}

Value sigmoid(Emitter& e, Value x) { return e.call("aten.sigmoid", {x}); }
Value tanh_of(Emitter& e, Value x) { return e.call("aten.tanh", {x}); }

using State = Values;  // the hidden state, and the cell's where there is one
/// What comes in is multiplied by its weights already.
using Step = State (*)(Emitter&, Value, const State&, const CellWeights&);

State lstm_step(Emitter& e, Value in, const State& state, const CellWeights& w) {
  const Values gates = gates_of(e, add(e, in, linear_of(e, state[0], w.state, w.state_bias)), 4);
  const Value cell = add(e, mul(e, sigmoid(e, gates[1]), state[1]),
                         mul(e, sigmoid(e, gates[0]), tanh_of(e, gates[2])));
  Value hidden = mul(e, sigmoid(e, gates[3]), tanh_of(e, cell));
  if (w.projection != kNoValue) hidden = linear_of(e, hidden, w.projection, kNoValue);
  return {hidden, cell};
}

State gru_step(Emitter& e, Value in, const State& state, const CellWeights& w) {
  const Values x = gates_of(e, in, 3);
  const Values h = gates_of(e, linear_of(e, state[0], w.state, w.state_bias), 3);
  const Value reset = sigmoid(e, add(e, x[0], h[0]));
  const Value keep = sigmoid(e, add(e, x[1], h[1]));
  const Value fresh = tanh_of(e, add(e, x[2], mul(e, reset, h[2])));
  return {add(e, fresh, mul(e, keep, sub(e, state[0], fresh)))};
}

State tanh_step(Emitter& e, Value in, const State& state, const CellWeights& w) {
  return {tanh_of(e, add(e, in, linear_of(e, state[0], w.state, w.state_bias)))};
}

State relu_step(Emitter& e, Value in, const State& state, const CellWeights& w) {
  return {e.call("aten.relu", {add(e, in, linear_of(e, state[0], w.state, w.state_bias))})};
}

State cell_of(Emitter& e, Step step, const State& state) {
  const CellWeights w{e.tensor("w_ih"), e.tensor("w_hh"), e.tensor("b_ih"), e.tensor("b_hh")};
  return step(e, linear_of(e, e.tensor("input"), w.input, w.input_bias), state, w);
}

/// One layer in one direction over [steps, batch, width]; the outputs in the order of the steps.
Values run_layer(Emitter& e, Value x, Step step, State& state, const CellWeights& w,
                 bool backwards) {
  const std::int64_t steps =
      known(e, e.shape(x)[0], "the number of steps must be fixed, for instance with static shapes");
  if (steps > kMostSteps) e.refuse("more than 512 steps of a recurrent layer");
  const Value in = linear_of(e, x, w.input, w.input_bias);
  Values outputs(at(steps));
  for (std::int64_t i = 0; i < steps; ++i) {
    const std::int64_t t = backwards ? steps - 1 - i : i;
    state = step(e, selected(e, in, 0, t), state, w);
    outputs[at(t)] = state[0];
  }
  return outputs;
}

Values layers_of(Emitter& e, Step step, const Values& initial) {
  const Values params = e.ins("params");
  const bool biased = e.call().flag("has_biases");
  const std::int64_t directions = e.call().flag("bidirectional") ? 2 : 1;
  const std::int64_t layers = e.call().number("num_layers");
  const bool batch_first = e.call().flag("batch_first");
  const std::size_t per_cell = params.size() / at(layers * directions);
  Value x = e.tensor("input");
  if (e.rank(x) != 3) e.refuse("a recurrent layer on one sequence; a batch of one works");
  if (batch_first) x = permuted(e, x, {1, 0, 2});
  std::vector<Values> last(initial.size());
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    Values both;
    for (std::int64_t way = 0; way < directions; ++way) {
      const std::int64_t number = layer * directions + way;
      const Value* own = params.data() + at(number) * per_cell;
      CellWeights w{own[0], own[1]};
      if (biased) {
        w.input_bias = own[2];
        w.state_bias = own[3];
      }
      if (per_cell == (biased ? 5U : 3U)) w.projection = own[per_cell - 1];
      State state;
      for (const Value start : initial) state.push_back(selected(e, start, 0, number));
      both.push_back(e.call("aten.stack", {run_layer(e, x, step, state, w, way == 1), 0}));
      for (std::size_t i = 0; i < state.size(); ++i) last[i].push_back(state[i]);
    }
    x = both.size() == 1 ? both[0] : e.call("aten.cat", {both, 2});
  }
  Values results{batch_first ? permuted(e, x, {1, 0, 2}) : x};
  for (const Values& states : last) results.push_back(e.call("aten.stack", {states, 0}));
  return results;
}

}  // namespace

Values lstm(Emitter& e) { return layers_of(e, lstm_step, e.ins("hx")); }
Values gru(Emitter& e) { return layers_of(e, gru_step, {e.tensor("hx")}); }
Values rnn_relu(Emitter& e) { return layers_of(e, relu_step, {e.tensor("hx")}); }
Values rnn_tanh(Emitter& e) { return layers_of(e, tanh_step, {e.tensor("hx")}); }

Values lstm_cell(Emitter& e) { return cell_of(e, lstm_step, e.ins("hx")); }
Value gru_cell(Emitter& e) { return cell_of(e, gru_step, {e.tensor("hx")})[0]; }
Value rnn_relu_cell(Emitter& e) { return cell_of(e, relu_step, {e.tensor("hx")})[0]; }
Value rnn_tanh_cell(Emitter& e) { return cell_of(e, tanh_step, {e.tensor("hx")})[0]; }

}  // namespace modelport::ops::parts
