// Matches patterns by trying: each attempt has its own copy of what names stand for.
#include "ops/fusions/pattern.h"

#include <algorithm>

#include "ops/table/schema.h"

namespace modelport::ops::fusions {

std::optional<double> Found::number(std::string_view name) const {
  const ir::Arg& found = arg(name);
  if (const double* real = found.get<double>()) return *real;
  const auto* integer = found.get<shape::Int>();
  if (integer == nullptr || !integer->constant()) return std::nullopt;
  return static_cast<double>(*integer->constant());
}

std::vector<std::int64_t> Found::integers(std::string_view name) const {
  const auto* list = arg(name).get<ir::ArgList>();
  std::vector<std::int64_t> numbers;
  for (const ir::Arg& item : list == nullptr ? ir::ArgList() : *list) {
    const auto* integer = item.get<shape::Int>();
    if (integer == nullptr || !integer->constant()) return {};
    numbers.push_back(*integer->constant());
  }
  return numbers;
}

class Matcher {
 public:
  explicit Matcher(const ir::Graph& graph) : graph_(graph) {}

  bool matches(const Pattern& pattern, const ir::Arg& arg, Found& found) const {
    switch (pattern.kind) {
      case Pattern::Kind::any:
        return true;
      case Pattern::Kind::name:
        return bind(pattern.name, arg, found);
      case Pattern::Kind::literal:
        return same_literal(pattern.literal, arg);
      case Pattern::Kind::list:
        return matches_list(pattern, arg, found);
      case Pattern::Kind::one_of:
        return std::ranges::any_of(pattern.parts, [&](const Pattern& part) {
          return attempt(found, [&](Found& trial) { return matches(part, arg, trial); });
        });
      case Pattern::Kind::call: {
        const ir::Node* node = producer(arg);
        while (pattern.through_slices && node != nullptr && takes_all(*node))
          node = producer(*node->find("self"));
        return node != nullptr && matches_call(pattern, *node, found);
      }
    }
    __builtin_unreachable();
  }

  bool matches_call(const Pattern& pattern, const ir::Node& node, Found& found) const {
    const OpDef* row = pattern.op == node.op ? find_op(node.op) : nullptr;
    if (row == nullptr) return false;
    if (!pattern.name.empty() && !bind(pattern.name, {node.results[0]}, found)) return false;
    const Schema& schema = schema_of(*row);
    const auto in_order = [&](bool swapped) {
      return attempt(found, [&](Found& trial) {
        return std::ranges::all_of(schema.parameters, [&](const Parameter& parameter) {
          return matches_argument(pattern, parameter, argument(node, schema, parameter, swapped),
                                  trial);
        });
      });
    };
    return in_order(false) || (row->commutes && in_order(true));
  }

 private:
  bool matches_list(const Pattern& pattern, const ir::Arg& arg, Found& found) const {
    const auto* items = arg.get<ir::ArgList>();
    if (items == nullptr || items->size() != pattern.parts.size()) return false;
    for (std::size_t i = 0; i < items->size(); ++i) {
      if (!matches(pattern.parts[i], (*items)[i], found)) return false;
    }
    return true;
  }

  template <class Try>
  static bool attempt(Found& found, Try&& run) {
    const auto before = found.names_;
    if (run(found)) return true;
    found.names_ = before;
    return false;
  }

  static const ir::Arg& argument(const ir::Node& node, const Schema& schema,
                                 const Parameter& parameter, bool swapped) {
    const Parameter* asked = &parameter;
    if (swapped && parameter.name == "self") asked = schema.find("other");
    if (swapped && parameter.name == "other") asked = schema.find("self");
    const ir::Arg* given = node.find(asked->name);
    return given == nullptr ? asked->default_value : *given;
  }

  bool matches_argument(const Pattern& pattern, const Parameter& parameter, const ir::Arg& arg,
                        Found& found) const {
    const auto named = std::ranges::find(pattern.argument_names, parameter.name);
    if (named != pattern.argument_names.end())
      return matches(
          pattern.parts[static_cast<std::size_t>(named - pattern.argument_names.begin())], arg,
          found);
    return pattern.rest_is_free || arg == parameter.default_value;
  }

  static bool bind(const std::string& name, const ir::Arg& arg, Found& found) {
    const auto [known, is_new] = found.names_.try_emplace(name, arg);
    return is_new || known->second == arg;
  }

  /// 2 in a pattern is 2.0 as well.
  static bool same_literal(const ir::Arg& literal, const ir::Arg& arg) {
    if (literal == arg) return true;
    const auto* wanted = literal.get<shape::Int>();
    const double* real = arg.get<double>();
    return wanted != nullptr && real != nullptr &&
           *real == static_cast<double>(*wanted->constant());
  }

  const ir::Node* producer(const ir::Arg& arg) const {
    const ir::ValueId* id = arg.get<ir::ValueId>();
    if (id == nullptr || graph_.value(*id).origin != ir::Origin::node) return nullptr;
    const ir::Node& node = graph_.node(graph_.value(*id).producer);
    return node.results[0] == *id ? &node : nullptr;  // patterns mean first results
  }

  /// Models write `x[:, :, None, :, :]`, and the length of a cache may be nothing, so that its
  /// slice stays in the graph.
  bool takes_all(const ir::Node& node) const {
    if (node.op != "aten.slice.Tensor") return false;
    const ir::ValueId* whole = node.find("self")->get<ir::ValueId>();
    const ir::Arg* start = node.find("start");
    const bool from_front =
        start == nullptr || start->is_none() || *start == ir::Arg{shape::Int(0)};
    return from_front &&
           graph_.value(*whole).tensor().shape == graph_.value(node.results[0]).tensor().shape;
  }

  const ir::Graph& graph_;
};

std::optional<Found> find(const Pattern& pattern, const ir::Graph& graph, const ir::Node& node,
                          const std::vector<int>& uses) {
  Found found(graph, uses);
  if (!Matcher(graph).matches_call(pattern, node, found)) return std::nullopt;
  return found;
}

}  // namespace modelport::ops::fusions
