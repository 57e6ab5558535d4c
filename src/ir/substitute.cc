// Replacing symbols in a whole graph.
#include <algorithm>
#include <set>

#include "ir/graph.h"

namespace modelport::ir {

namespace {

class Replacer {
 public:
  explicit Replacer(const shape::Substitution& replacements) : replacements_(replacements) {}

  void in(shape::Int& x) const {
    if (!x.is_constant()) x = shape::substitute(x, replacements_);
  }
  void in(shape::Real& x) const { x = shape::substitute(x, replacements_); }
  void in(shape::Bool& x) const { x = shape::substitute(x, replacements_); }

  void in(Type& type) const {
    if (auto* tensor = std::get_if<TensorType>(&type)) {
      for (shape::Int& size : tensor->shape) in(size);
    } else {
      std::visit([&](auto& symbol) { in(symbol); }, std::get<ScalarType>(type).symbol);
    }
  }

  void in(Arg& arg) const {
    if (auto* x = std::get_if<shape::Int>(&arg.value)) in(*x);
    if (auto* x = std::get_if<shape::Real>(&arg.value)) in(*x);
    if (auto* x = std::get_if<shape::Bool>(&arg.value)) in(*x);
    if (auto* list = std::get_if<ArgList>(&arg.value)) {
      for (Arg& item : *list) in(item);
    }
  }

  /// A dim that is replaced by a symbol of its own is renamed; one that is replaced by a symbol
  /// that is there leaves its range with that one; every other one that is replaced goes.
  void in(std::vector<shape::Dim>& dims) const {
    std::set<std::string, std::less<>> taken;
    for (const shape::Dim& dim : dims) {
      if (!replacements_.contains(dim.name)) taken.insert(dim.name);
    }
    std::vector<shape::Dim> united;
    std::erase_if(dims, [&](shape::Dim& dim) {
      const auto replacement = replacements_.find(dim.name);
      if (replacement == replacements_.end()) return false;
      const auto symbol = replacement->second.as_symbol();
      if (!symbol) return true;
      dim.name = *symbol;
      if (taken.emplace(*symbol).second) return false;
      united.push_back(dim);
      return true;
    });
    for (const shape::Dim& gone : united) {
      shape::Dim& stays = *std::ranges::find(dims, gone.name, &shape::Dim::name);
      if (gone.range.lo > stays.range.lo) stays.lo_where = gone.lo_where;
      if (gone.range.hi < stays.range.hi) stays.hi_where = gone.hi_where;
      stays.range = shape::intersect(stays.range, gone.range);
    }
  }

 private:
  const shape::Substitution& replacements_;
};

}  // namespace

void Graph::substitute(const shape::Substitution& replacements) {
  if (replacements.empty()) return;
  const Replacer replace(replacements);
  for (Value& value : values_) replace.in(value.type);
  for (Node& node : nodes_) {
    for (NamedArg& named : node.args) replace.in(named.arg);
  }
  for (Output& output : outputs) replace.in(output.value);
  for (shape::Guard& guard : guards) replace.in(guard.condition);
  std::erase_if(
      guards, [](const shape::Guard& guard) { return guard.condition.constant().value_or(false); });
  replace.in(dims);
}

}  // namespace modelport::ir
