// Elements through operators that compute; those that move elements are in move_elements.cc.
#include "ops/fusions/elements.h"

#include <algorithm>

#include "ops/fusions/element_place.h"

namespace modelport::ops::fusions {

const std::unordered_map<std::string_view, Elements::Rule>& Elements::rules() {
  static const std::unordered_map<std::string_view, Rule> rules{
      {"aten.__and__.Tensor", &Elements::both},
      {"aten.add.Tensor", &Elements::sum},
      {"aten.alias", &Elements::same},
      {"aten.arange", &Elements::counted},
      {"aten.arange.start", &Elements::counted},
      {"aten.arange.start_step", &Elements::counted},
      {"aten.bitwise_and.Tensor", &Elements::both},
      {"aten.cat", &Elements::joined},
      {"aten.chunk", &Elements::cut},
      {"aten.clone", &Elements::same},
      {"aten.contiguous", &Elements::same},
      {"aten.cos", &Elements::unary},
      {"aten.detach", &Elements::same},
      {"aten.expand", &Elements::expanded},
      {"aten.flatten.using_ints", &Elements::reshaped},
      {"aten.ge.Scalar", &Elements::compared},
      {"aten.ge.Tensor", &Elements::compared},
      {"aten.gt.Scalar", &Elements::compared},
      {"aten.gt.Tensor", &Elements::compared},
      {"aten.index.Tensor", &Elements::indexed},
      {"aten.le.Scalar", &Elements::compared},
      {"aten.le.Tensor", &Elements::compared},
      {"aten.logical_and", &Elements::both},
      {"aten.lt.Scalar", &Elements::compared},
      {"aten.lt.Tensor", &Elements::compared},
      {"aten.mul.Tensor", &Elements::product},
      {"aten.neg", &Elements::negated},
      {"aten.new_ones", &Elements::ones},
      {"aten.ones", &Elements::ones},
      {"aten.pad", &Elements::padded},
      {"aten.permute", &Elements::permuted},
      {"aten.repeat_interleave.self_int", &Elements::repeated},
      {"aten.reshape", &Elements::reshaped},
      {"aten.select.int", &Elements::selected},
      {"aten.sin", &Elements::unary},
      {"aten.slice.Tensor", &Elements::sliced},
      {"aten.split.Tensor", &Elements::cut},
      {"aten.split.sizes", &Elements::cut},
      {"aten.squeeze.dim", &Elements::squeezed},
      {"aten.stack", &Elements::stacked},
      {"aten.sub.Tensor", &Elements::sum},
      {"aten.to.dtype", &Elements::cast},
      {"aten.transpose.int", &Elements::transposed},
      {"aten.unsqueeze", &Elements::unsqueezed},
      {"aten.view", &Elements::reshaped},
      {"aten.where.ScalarOther", &Elements::chosen},
      {"aten.where.self", &Elements::chosen},
  };
  return rules;
}

TermId Elements::at(ir::ValueId value, Index index) {
  const ir::Value& found = graph_.value(value);
  const auto& shape = found.tensor().shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == shape::Int(1)) index[i] = 0;
  }
  if (found.origin == ir::Origin::weight && shape.empty()) {
    if (const auto known = known_.find(found.name); known != known_.end())
      return real(known->second);
  }
  if (value == leaf_ || found.origin != ir::Origin::node) return element(value, std::move(index));
  const ir::Node& node = graph_.node(found.producer);
  const auto rule = rules().find(node.op);
  if (rule == rules().end()) return element(value, std::move(index));
  const Place place{graph_, node, value, index};
  return (this->*rule->second)(place);
}

TermId Elements::counted(const Place& p) {
  if (!is_integral(p.type().dtype)) return stop(p);
  const auto start = p.size("start", 0);
  const auto step = p.size("step", 1);
  return start && step ? number(*start + *step * p.index[0]) : stop(p);
}

TermId Elements::ones(const Place& p) {
  return p.type().dtype == Dtype::boolean ? call("and", {}) : stop(p);
}

TermId Elements::cast(const Place& p) {
  const Dtype from = p.type("self").dtype;
  const Dtype to = p.type().dtype;
  const TermId x = operand(p, "self");
  if (from == to) return x;
  if (to == Dtype::boolean) return call("nonzero", {x});
  return call("cast." + std::string(name(to)), {x});
}

TermId Elements::sum(const Place& p) {
  if (p.size("alpha", 1) != shape::Int(1)) return stop(p);
  const bool minus = p.node.op == "aten.sub.Tensor";
  const TermId a = operand(p, "self");
  const TermId b = operand(p, "other");
  const Term &x = terms_[a.index], &y = terms_[b.index];
  if (x.kind == Term::Kind::number && y.kind == Term::Kind::number)
    return number(minus ? x.number - y.number : x.number + y.number);
  if (minus) return call("sub", {a, b});
  return call("add", a < b ? std::vector{a, b} : std::vector{b, a});
}

TermId Elements::product(const Place& p) {
  const TermId a = operand(p, "self");
  const TermId b = operand(p, "other");
  return call("mul", a < b ? std::vector{a, b} : std::vector{b, a});
}

TermId Elements::negated(const Place& p) { return call("neg", {operand(p, "self")}); }
TermId Elements::unary(const Place& p) { return call(p.node.op, {operand(p, "self")}); }

/// Comparisons of numbers that indices give: at_least_zero(difference).
TermId Elements::compared(const Place& p) {
  const Term a = terms_[operand(p, "self").index];
  const Term b = terms_[operand(p, "other").index];
  if (a.kind != Term::Kind::number || b.kind != Term::Kind::number) return stop(p);
  const std::string_view op = p.node.op;
  const bool strict = op.starts_with("aten.lt.") || op.starts_with("aten.gt.");
  const bool below = op.starts_with("aten.lt.") || op.starts_with("aten.le.");
  const shape::Int difference = below ? b.number - a.number : a.number - b.number;
  return call("at_least_zero", {number(strict ? difference - 1 : difference)});
}

/// One `and` of all that must hold, each once.
TermId Elements::both(const Place& p) {
  if (p.type().dtype != Dtype::boolean) return stop(p);
  std::vector<TermId> parts;
  for (const char* side : {"self", "other"}) {
    const TermId id = operand(p, side);
    if (terms_[id.index].is("and")) {
      parts.insert(parts.end(), terms_[id.index].parts.begin(), terms_[id.index].parts.end());
    } else {
      parts.push_back(id);
    }
  }
  std::ranges::sort(parts);
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  return call("and", std::move(parts));
}

TermId Elements::chosen(const Place& p) {
  return call("where", {operand(p, "condition"), operand(p, "self"), operand(p, "other")});
}

TermId Elements::operand(const Place& p, std::string_view name) {
  const ir::Arg& arg = *p.node.find(name);
  if (const auto* id = arg.get<ir::ValueId>()) {
    const auto& shape = type(*id).shape;
    return at(*id, Index(p.index.end() - static_cast<std::ptrdiff_t>(shape.size()), p.index.end()));
  }
  if (const auto* x = arg.get<shape::Int>()) return number(*x);
  if (const auto* x = arg.get<double>()) return real(*x);
  return stop(p);
}

TermId Elements::stop(const Place& p) { return element(p.value, p.index); }
TermId Elements::element(ir::ValueId value, Index index) {
  return intern({.kind = Term::Kind::element, .value = value, .index = std::move(index)});
}
TermId Elements::call(std::string op, std::vector<TermId> parts) {
  return intern({.kind = Term::Kind::call, .op = std::move(op), .parts = std::move(parts)});
}
TermId Elements::number(const shape::Int& x) {
  return intern({.kind = Term::Kind::number, .number = x});
}
TermId Elements::real(double x) { return intern({.kind = Term::Kind::real, .real = x}); }

TermId Elements::intern(Term term) {
  std::size_t hash = static_cast<std::size_t>(term.kind) * 31 + term.value.index;
  const auto mix = [&](std::size_t x) { hash = (hash ^ x) * 0x9E3779B97F4A7C15ULL; };
  mix(term.number.hash());
  mix(std::hash<double>{}(term.real));
  mix(std::hash<std::string>{}(term.op));
  for (const shape::Int& x : term.index) mix(x.hash());
  for (const TermId part : term.parts) mix(part.index);
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    if (terms_[known->second.index] == term) return known->second;
  }
  bool leaf = term.kind == Term::Kind::element && term.value == leaf_;
  for (const TermId part : term.parts) leaf = leaf || has_leaf_[part.index];
  const TermId id{static_cast<std::uint32_t>(terms_.size())};
  terms_.push_back(std::move(term));
  has_leaf_.push_back(leaf);
  by_hash_.emplace(hash, id);
  return id;
}

}  // namespace modelport::ops::fusions
