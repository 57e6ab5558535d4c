#include "ir/verify.h"

#include <algorithm>
#include <set>

#include "ir/lexical.h"
#include "ir/print.h"
#include "ir/symbols.h"
#include "ir/text.h"

namespace modelport::ir {

namespace {

constexpr std::size_t kLongestNote = 2000;

/// Names that stand in expressions as they are or in backquotes.
bool can_be_symbol(std::string_view name) {
  const auto is_bad = [](char c) {
    return c == '`' || static_cast<unsigned char>(c) < ' ' || c == '\x7f';
  };
  return !name.empty() && std::ranges::none_of(name, is_bad);
}

/// What is being checked, for messages: "input %x", and the node or place where it stands.
struct Subject {
  std::string name = {};
  const Node* node = nullptr;
  PlaceId place = {};
  const shape::Guard* guard = nullptr;
};

class Checker {
 public:
  explicit Checker(const Graph& graph)
      : graph_(graph), names_(graph), defined_(graph.values().size(), false) {}

  Diagnostics run() {
    dims();
    inputs();
    weights();
    for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) node({i});
    guards();
    outputs();
    mutations();
    assumptions();
    return std::move(found_);
  }

 private:
  void dims();
  void inputs();
  void weights();
  void node(NodeId id);
  void arguments(const Node& node, const Subject& subject);
  void results(NodeId id, const Node& node, const Subject& subject);
  void guards();
  void outputs();
  void mutations();
  void mutation(const Mutation& mutation);
  void assumptions();

  bool exists(ValueId id) const { return id.index < graph_.values().size(); }
  void listed(ValueId id, Origin origin, std::string_view what);
  void type(const Type& type, const Subject& subject);
  void use(ValueId id, const Subject& subject);
  void use(const Arg& arg, const Subject& subject);
  void known(const Mentions& mentioned, const Subject& subject);
  void give(const Type& type);
  void report(std::string what, const Subject& subject = {});
  const std::string& note_on(const Node& node);

  const Graph& graph_;
  ValueNames names_;
  std::vector<bool> defined_;  // inputs, weights, and results of nodes above the one at hand
  Symbols declared_;
  Symbols awaited_;  // sizes from data that no node above gives a value
  Symbols given_;    // floats and bools from data that a node above gives a value
  const Node* noted_ = nullptr;
  std::string note_;
  Diagnostics found_;
};

/// Printed once a node and cut, because a hostile node may be long and wrong in many places.
const std::string& Checker::note_on(const Node& node) {
  if (noted_ == &node) return note_;
  noted_ = &node;
  note_ = "node    ";
  Printer(graph_, names_, note_).node(node);
  if (note_.size() > kLongestNote) note_ = note_.substr(0, kLongestNote) + "...";
  return note_;
}

void Checker::report(std::string what, const Subject& subject) {
  Diagnostic diagnostic;
  diagnostic.code = Code::bad_graph;
  diagnostic.what = subject.name.empty() ? std::move(what) : subject.name + " " + what;
  PlaceId place = subject.place;
  if (subject.node != nullptr) {
    place = subject.node->place;
    diagnostic.notes.push_back(note_on(*subject.node));
  }
  if (place.index < graph_.place_count()) {
    diagnostic.where = graph_.place(place).where;
    diagnostic.module_path = graph_.place(place).module_path;
  }
  if (subject.guard != nullptr) {
    diagnostic.where = subject.guard->where;
    diagnostic.module_path = subject.guard->module_path;
  }
  found_.add(std::move(diagnostic));
}

void Checker::dims() {
  for (const shape::Dim& dim : graph_.dims) {
    const Subject subject{.name = "dimension " + dim.name};
    if (!can_be_symbol(dim.name)) report("has a name that cannot be printed", subject);
    if (!declared_.insert(dim.name).second) report("is declared twice", subject);
    if (dim.range.lo > dim.range.hi) {
      report("has the empty range " + shape::print(dim.range), subject);
    }
    if (dim.from_data) awaited_.insert(dim.name);
  }
}

void Checker::listed(ValueId id, Origin origin, std::string_view what) {
  const Subject subject{.name = std::string(what) + names_(id)};
  if (!exists(id)) return report("does not exist", subject);
  const Value& value = graph_.value(id);
  if (value.origin != origin) return report("is not of that kind", subject);
  if (defined_[id.index]) report("is listed twice", subject);
  if (value.name.empty()) report("has no name", subject);
  defined_[id.index] = true;
  type(value.type, subject);
}

void Checker::inputs() {
  std::set<std::string_view> names;
  for (const ValueId id : graph_.inputs) {
    listed(id, Origin::input, "input ");
    if (!exists(id)) continue;
    // Whoever calls the program brings the sizes of its inputs along.
    give(graph_.value(id).type);
    if (!names.insert(graph_.value(id).name).second) report("two inputs are called " + names_(id));
  }
}

void Checker::weights() {
  std::set<std::string_view> names;
  for (const ValueId id : graph_.weights) {
    listed(id, Origin::weight, "weight ");
    if (!exists(id)) continue;
    const Value& value = graph_.value(id);
    if (!names.insert(value.name).second) report("two weights are called " + names_(id));
    const auto* tensor = std::get_if<TensorType>(&value.type);
    if (tensor == nullptr || !std::ranges::all_of(tensor->shape, &shape::Int::is_constant)) {
      report("weight " + names_(id) + " has no fixed sizes: " + print(value.type));
    }
  }
}

void Checker::type(const Type& type, const Subject& subject) {
  Mentions mentioned;
  collect(type, mentioned);
  std::string undeclared;
  for (const std::string& symbol : mentioned.sizes) {
    if (!declared_.contains(symbol)) undeclared += (undeclared.empty() ? "" : ", ") + symbol;
  }
  if (!undeclared.empty()) {
    report("has a type with the undeclared symbol " + undeclared + ": " + print(type), subject);
  }
  const auto* tensor = std::get_if<TensorType>(&type);
  if (tensor == nullptr) return;
  const auto is_negative = [](const shape::Int& size) { return size.constant().value_or(0) < 0; };
  if (std::ranges::any_of(tensor->shape, is_negative)) {
    report("has a negative size: " + print(type), subject);
  }
}

void Checker::known(const Mentions& mentioned, const Subject& subject) {
  for (const std::string& symbol : mentioned.sizes) {
    if (!declared_.contains(symbol)) {
      report("mentions the undeclared symbol " + symbol, subject);
    } else if (awaited_.contains(symbol)) {
      report("mentions " + symbol + ", which no node above gives a value", subject);
    }
  }
  for (const std::string& symbol : mentioned.data) {
    if (!given_.contains(symbol)) {
      report("mentions " + symbol + ", which no node above gives a value", subject);
    }
  }
}

void Checker::give(const Type& type) {
  Mentions given;
  collect(type, given);
  for (const std::string& symbol : given.sizes) awaited_.erase(symbol);
  given_.merge(given.data);
}

void Checker::use(ValueId id, const Subject& subject) {
  if (!exists(id)) return report("uses a value that does not exist", subject);
  if (defined_[id.index]) return;
  const bool is_result = graph_.value(id).origin == Origin::node;
  report("uses " + names_(id) + (is_result ? " before it is defined" : ", which is not listed"),
         subject);
}

void Checker::use(const Arg& arg, const Subject& subject) {
  for_each_value(arg, [&](ValueId id) { use(id, subject); });
  Mentions mentioned;
  collect(arg, mentioned);
  known(mentioned, subject);
}

void Checker::node(NodeId id) {
  const Node& node = graph_.node(id);
  const Subject subject{
      .name = node.op.empty() ? "a node" : node.op, .node = &node, .place = node.place};
  if (node.op.empty()) report("has no operator", subject);
  if (node.place.index >= graph_.place_count()) report("has a place that does not exist", subject);
  arguments(node, subject);
  results(id, node, subject);
}

void Checker::arguments(const Node& node, const Subject& subject) {
  std::set<std::string_view> names;
  for (const NamedArg& named : node.args) {
    if (named.name.empty()) report("has an argument without a name", subject);
    if (!names.insert(named.name).second) {
      report("has the argument " + named.name + " twice", subject);
    }
    use(named.arg, subject);
  }
}

void Checker::results(NodeId id, const Node& node, const Subject& subject) {
  for (const ValueId result : node.results) {
    if (!exists(result)) {
      report("has a result that does not exist", subject);
      continue;
    }
    const Value& value = graph_.value(result);
    if (value.origin != Origin::node || value.producer != id) {
      report("lists the result " + names_(result) + ", which says that it comes from elsewhere",
             subject);
    }
    if (defined_[result.index]) report("defines " + names_(result) + " again", subject);
    defined_[result.index] = true;
    type(value.type, subject);
    give(value.type);
  }
}

void Checker::guards() {
  for (const shape::Guard& guard : graph_.guards) {
    Mentions mentioned;
    collect(guard.condition, mentioned);
    Subject subject{.name = "the guard " + shape::print(guard.condition)};
    subject.guard = &guard;
    known(mentioned, subject);
  }
}

void Checker::outputs() {
  std::set<std::string_view> names;
  for (const Output& output : graph_.outputs) {
    const Subject subject{.name = "output " + output.name};
    if (!names.insert(output.name).second) report("is returned twice", subject);
    use(output.value, subject);
  }
}

void Checker::mutations() {
  std::set<ValueId> buffers;
  for (const Mutation& each : graph_.mutations) {
    if (!buffers.insert(each.buffer).second) {
      report("the program writes " + names_(each.buffer) + " twice");
    }
    mutation(each);
  }
}

void Checker::mutation(const Mutation& mutation) {
  const Subject subject{.name = "the new value of " + names_(mutation.buffer)};
  use(mutation.buffer, subject);
  use(mutation.value, subject);
  if (!exists(mutation.buffer) || !exists(mutation.value)) return;
  const Value& buffer = graph_.value(mutation.buffer);
  if (buffer.origin != Origin::weight || buffer.weight_kind == WeightKind::constant) {
    report("has no buffer to go to", subject);
  }
  if (!(graph_.value(mutation.value).type == buffer.type)) {
    report("is " + print(graph_.value(mutation.value).type) + ", not " + print(buffer.type),
           subject);
  }
}

void Checker::assumptions() {
  for (const Assumption& assumption : graph_.assumptions) {
    const Subject subject{.name = "the assumption on " + names_(assumption.value),
                          .node = nullptr,
                          .place = assumption.place};
    use(assumption.value, subject);
    if (!exists(assumption.value)) continue;
    const auto* tensor = std::get_if<TensorType>(&graph_.value(assumption.value).type);
    if (tensor == nullptr) continue;  // a number is one by itself
    const auto is_one = [](const shape::Int& size) { return size.constant().value_or(1) == 1; };
    if (!std::ranges::all_of(tensor->shape, is_one)) {
      report("is on more than one element: " + print(*tensor), subject);
    }
  }
}

}  // namespace

Diagnostics violations(const Graph& graph) { return Checker(graph).run(); }

void verify(const Graph& graph) { violations(graph).throw_if_any(); }

}  // namespace modelport::ir
