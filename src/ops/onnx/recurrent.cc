// Recurrent layers: one operator of ONNX for each layer, both directions in it.
#include "ops/onnx/recurrent.h"

#include <string>

#include "ops/onnx/pieces.h"
#include "ops/onnx/pointwise.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {
namespace {

/// How the gates of torch become those of ONNX: [input, forget, cell, output] is [input, output,
/// forget, cell], and [reset, update, new] is [update, reset, new].
struct Kind {
  std::string op;
  std::vector<std::int64_t> gates;
  std::string activation;  // of an RNN
};

Kind kind_of(std::string_view name) {
  if (name.starts_with("aten.lstm")) return {"LSTM", {0, 3, 1, 2}, ""};
  if (name.starts_with("aten.gru")) return {"GRU", {1, 0, 2}, ""};
  return {"RNN", {0}, name.starts_with("aten.rnn_relu") ? "Relu" : "Tanh"};
}

class Layers {
 public:
  explicit Layers(Lower& l)
      : l_(l),
        kind_(kind_of(l.call().op().name)),
        directions_(l.call().flag("bidirectional") ? 2 : 1),
        biased_(l.call().flag("has_biases")),
        params_(l.ins("params")) {
    if (l.call().flag("train") && l.real_number("dropout") != 0)
      l.refuse("dropout between recurrent layers");
    const std::size_t plain = biased_ ? 4 : 2;
    each_ = params_.size() / static_cast<std::size_t>(layers() * directions_);
    projected_ = each_ != plain;
    states_ = kind_.op == "LSTM" ? l.ins("hx") : Values{l.in("hx")};
    for (Value& state : states_) state = l.cast(state, kWide);
  }

  Values run() {
    const bool batch_first = l_.call().flag("batch_first");
    Value x = l_.in("input", kWide);
    if (batch_first) x = l_.transpose(x, {1, 0, 2});
    std::vector<Values> finals(states_.size());
    for (std::int64_t layer = 0; layer < layers(); ++layer) {
      const Values found = step(x, layer);
      x = found[0];
      for (std::size_t i = 0; i < finals.size(); ++i) finals[i].push_back(found[1 + i]);
    }
    if (batch_first) x = l_.transpose(x, {1, 0, 2});
    Values results{l_.cast(x, l_.result().dtype)};
    for (std::size_t i = 0; i < finals.size(); ++i)
      results.push_back(l_.cast(l_.concat(finals[i], 0), l_.result(1 + i).dtype));
    return results;
  }

 private:
  // The kernels have no other.
  static constexpr Dtype kWide = Dtype::f32;

  std::int64_t layers() { return l_.call().number("num_layers"); }

  /// The gates in ONNX's order; the first axis of a parameter is gates * hidden.
  Value reordered(Value parameter) {
    parameter = l_.cast(parameter, kWide);
    if (kind_.gates.size() == 1) return parameter;
    const Shape shape = l_.shape(parameter);
    const auto gates = static_cast<std::int64_t>(kind_.gates.size());
    Shape split = shape;
    split[0] = shape::floor_div(shape[0], gates);
    split.insert(split.begin(), Int(gates));
    return l_.reshape(l_.gather(l_.reshape(parameter, split), l_.ints(kind_.gates), 0), shape);
  }

  Value parameter(std::int64_t layer, std::int64_t direction, std::size_t which) {
    return params_[static_cast<std::size_t>(layer * directions_ + direction) * each_ + which];
  }

  /// What `make` gives for each direction: [directions, ...].
  template <class Make>
  Value each_direction(Make make) {
    Values parts;
    for (std::int64_t d = 0; d < directions_; ++d) parts.push_back(l_.unsqueeze(make(d), {0}));
    return l_.concat(parts, 0);
  }

  Value biases(std::int64_t layer) {
    if (!biased_) return kNoValue;
    return each_direction([&](std::int64_t d) {
      return l_.concat({reordered(parameter(layer, d, 2)), reordered(parameter(layer, d, 3))}, 0);
    });
  }

  /// With a projection P the state is h = P m, where m is what ONNX has for a state: the weights
  /// of h go with P to those of m.
  Value projection(std::int64_t layer, std::int64_t direction) {
    return l_.cast(parameter(layer, direction, each_ - 1), kWide);
  }

  Value state_weights(std::int64_t layer) {
    return each_direction([&](std::int64_t d) {
      const Value own = reordered(parameter(layer, d, 1));
      return projected_ ? l_.matmul(own, projection(layer, d)) : own;
    });
  }

  /// The first state has no m that it comes from: it is one more input, at the first step alone.
  Value with_first_states(Value x, std::int64_t layer) {
    const Int others = l_.shape(x)[0] - 1;
    Values parts{x};
    for (std::int64_t d = 0; d < directions_; ++d) {
      const std::int64_t at = layer * directions_ + d;
      const Value first = l_.slice(states_[0], 0, at, at + 1);
      const Shape before{d == 1 ? others : Int(0), 0, 0}, after{d == 1 ? Int(0) : others, 0, 0};
      parts.push_back(bordered(l_, first, before, after, l_.number(0.0, kWide)));
    }
    return l_.concat(parts, 2);
  }

  Value input_weights(std::int64_t layer) {
    return each_direction([&](std::int64_t d) {
      Values parts{reordered(parameter(layer, d, 0))};
      const Value state = projected_ ? reordered(parameter(layer, d, 1)) : kNoValue;
      for (std::int64_t other = 0; projected_ && other < directions_; ++other)
        parts.push_back(other == d ? state : l_.sub(state, state));
      return l_.concat(parts, 1);
    });
  }

  Attributes attributes(const Int& hidden) {
    if (!hidden.is_constant()) l_.refuse("a hidden size that is not known before the program runs");
    Attributes found{{"hidden_size", {hidden}},
                     {"direction", {std::string(directions_ == 2 ? "bidirectional" : "forward")}}};
    if (kind_.op == "GRU") found.push_back({"linear_before_reset", {Int(1)}});
    if (kind_.op == "RNN") {
      ir::ArgList names;
      for (std::int64_t i = 0; i < directions_; ++i) names.push_back({kind_.activation});
      found.push_back({"activations", {std::move(names)}});
    }
    return found;
  }

  /// The output of a layer [length, batch, directions * hidden] and its last states.
  Values step(Value x, std::int64_t layer) {
    const Int hidden = l_.shape(states_.back()).back();
    const Int length = l_.shape(x)[0];
    const Int batch = l_.shape(x)[1];
    if (projected_) x = with_first_states(x, layer);
    Values inputs{x, input_weights(layer), state_weights(layer), biases(layer)};
    inputs.push_back(kNoValue);  // all sequences are of the same length
    const std::int64_t first = layer * directions_;
    for (const Value state : states_)
      inputs.push_back(l_.slice(state, 0, first, first + directions_));
    if (projected_) inputs[5] = kNoValue;  // zeros
    const ir::TensorType last{kWide, {directions_, batch, hidden}};
    std::vector<ir::TensorType> types(states_.size(), last);
    types.insert(types.begin(), {kWide, {length, directions_, batch, hidden}});
    Values found = l_.emit_many(kind_.op, inputs, attributes(hidden), std::move(types));
    if (projected_) {
      const Value matrix = each_direction(
          [&](std::int64_t d) { return l_.transpose(projection(layer, d), {1, 0}); });
      found[0] = l_.matmul(found[0], matrix);
      found[1] = l_.matmul(found[1], matrix);
    }
    found[0] = directions_ == 1 ? l_.squeeze(found[0], {1})
                                : l_.reshape(l_.transpose(found[0], {0, 2, 1, 3}),
                                             {length, batch, 2 * l_.shape(found[0]).back()});
    return found;
  }

  Lower& l_;
  Kind kind_;
  std::int64_t directions_;
  bool biased_;
  bool projected_ = false;
  std::size_t each_ = 0;  // parameters of a direction of a layer
  Values params_, states_;
};

struct Gates {
  Value from_input, from_state;
};

Gates gates_of(Lower& l, Value state, Dtype dtype) {
  const auto linear = [&](Value x, std::string_view weight, std::string_view bias) {
    const Value y = l.matmul(x, l.transpose(l.in(weight, dtype), {1, 0}));
    return l.has(bias) ? l.add(y, l.in(bias, dtype)) : y;
  };
  return {linear(l.in("input", dtype), "w_ih", "b_ih"), linear(state, "w_hh", "b_hh")};
}

Values parts(Lower& l, Value x, std::int64_t count) {
  const std::int64_t last = l.rank(x) - 1;
  const Int each = shape::floor_div(l.shape(x).back(), count);
  Values found;
  for (std::int64_t i = 0; i < count; ++i)
    found.push_back(l.slice(x, last, each * i, each * (i + 1)));
  return found;
}

}  // namespace

Values recurrent(Lower& l) { return Layers(l).run(); }

Values lstm_cell(Lower& l) {
  const Dtype own = l.result().dtype;
  const Dtype wide = working_dtype(own);
  const Values states = l.ins("hx");
  const Gates gates = gates_of(l, l.cast(states[0], wide), wide);
  const Values p = parts(l, l.add(gates.from_input, gates.from_state), 4);
  const auto open = [&](Value x) { return l.unary("Sigmoid", x); };
  const Value kept = l.mul(open(p[1]), l.cast(states[1], wide));
  const Value cell = l.add(kept, l.mul(open(p[0]), l.unary("Tanh", p[2])));
  return {l.cast(l.mul(open(p[3]), l.unary("Tanh", cell)), own), l.cast(cell, own)};
}

Values gru_cell(Lower& l) {
  const Dtype own = l.result().dtype;
  const Dtype wide = working_dtype(own);
  const Value state = l.in("hx", wide);
  const Gates gates = gates_of(l, state, wide);
  const Values x = parts(l, gates.from_input, 3);
  const Values h = parts(l, gates.from_state, 3);
  const Value reset = l.unary("Sigmoid", l.add(x[0], h[0]));
  const Value update = l.unary("Sigmoid", l.add(x[1], h[1]));
  const Value fresh = l.unary("Tanh", l.add(x[2], l.mul(reset, h[2])));
  return {l.cast(l.add(fresh, l.mul(update, l.sub(state, fresh))), own)};
}

Values rnn_cell(Lower& l) {
  const Dtype own = l.result().dtype;
  const Dtype wide = working_dtype(own);
  const Gates gates = gates_of(l, l.in("hx", wide), wide);
  const std::string op = kind_of(l.call().op().name).activation;
  return {l.cast(l.unary(op, l.add(gates.from_input, gates.from_state)), own)};
}

}  // namespace modelport::ops::onnx
