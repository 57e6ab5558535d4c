#include "ir/print.h"

#include <algorithm>
#include <span>

#include "ir/lexical.h"
#include "ir/text.h"

namespace modelport::ir {

namespace {

constexpr std::size_t kLineWidth = 100;
constexpr std::string_view kContinued = ",\n    ";

template <class... F>
struct match : F... {
  using F::operator()...;
};
template <class... F>
match(F...) -> match<F...>;  // clang 16 does not find it by itself

void append_int(std::string& out, const shape::Int& x) {
  if (const auto number = x.constant()) {
    append_number(out, *number);
  } else if (const auto symbol = x.as_symbol()) {
    append_symbol(out, *symbol);
  } else {
    out += shape::print(x);
  }
}

/// In an argument a symbol stands beside words such as f32 and None: one that is called so is
/// wrapped.
void append_int_arg(std::string& out, const shape::Int& x) {
  const auto symbol = x.as_symbol();
  const bool wrapped = symbol && is_argument_word(*symbol);
  if (wrapped) out += "int(";
  append_int(out, x);
  if (wrapped) out += ')';
}

/// What is read from data prints as real(u0) or bool(u0) by itself; nothing else in such a wrapper
/// is one name.
template <class Symbolic>
void append_wrapped(std::string& out, std::string_view wrapper, const Symbolic& x) {
  if (x.node().op == Symbolic::Op::data) {
    out += shape::print(x);
    return;
  }
  out += wrapper;
  out += '(';
  out += shape::print(x);
  out += ')';
}

template <class Symbolic>
void append_scalar_type(std::string& out, std::string_view word, const Symbolic& x) {
  out += word;
  out += ' ';
  if constexpr (requires { x.node(); }) {
    if (x.node().op == Symbolic::Op::data) return append_symbol(out, x.node().name);
  }
  out += shape::print(x);
}

void append_type(std::string& out, const Type& type) {
  if (const auto* tensor = std::get_if<TensorType>(&type)) {
    out += name(tensor->dtype);
    out += '[';
    for (std::size_t i = 0; i < tensor->shape.size(); ++i) {
      if (i > 0) out += ", ";
      append_int(out, tensor->shape[i]);
    }
    out += ']';
    return;
  }
  std::visit(match{[&](const shape::Int& x) { append_scalar_type(out, "int", x); },
                   [&](const shape::Real& x) { append_scalar_type(out, "float", x); },
                   [&](const shape::Bool& x) { append_scalar_type(out, "bool", x); }},
             std::get<ScalarType>(type).symbol);
}

void append_dim(std::string& out, const shape::Dim& dim) {
  append_symbol(out, dim.name);
  out += " in " + shape::print(dim.range) + " = ";
  append_number(out, dim.hint);
  if (dim.from_data) out += " from data";
  if (dim.declared != dim.range) out += " declared " + shape::print(dim.declared);
}

std::string_view kind_word(WeightKind kind) {
  switch (kind) {
    case WeightKind::parameter:
      return "";
    case WeightKind::buffer:
      return " buffer";
    case WeightKind::buffer_not_saved:
      return " buffer_not_saved";
    case WeightKind::constant:
      return " constant";
  }
  throw InternalError("a kind of weight that does not exist");
}

/// On the line at hand where they fit, else one a line.
void append_items(std::string& out, std::span<const std::string> items) {
  const std::size_t line_start = out.rfind('\n') + 1;  // npos + 1 is 0
  std::size_t width = out.size() - line_start;
  for (const std::string& item : items) width += item.size() + 2;
  bool first = true;
  for (const std::string& item : items) {
    if (!first) out += width > kLineWidth ? kContinued : ", ";
    out += item;
    first = false;
  }
}

}  // namespace

ValueNames::ValueNames(const Graph& graph) : graph_(graph), numbers_(graph.values().size(), 0) {
  std::uint32_t next = 1;
  for (const Node& node : graph.nodes()) {
    for (const ValueId id : node.results) {
      if (id.index < numbers_.size()) numbers_[id.index] = next++;
    }
  }
}

void ValueNames::append(std::string& out, ValueId id) const {
  if (id.index >= numbers_.size()) {
    out += "%?";
    return;
  }
  const Value& value = graph_.value(id);
  out += value.origin == Origin::weight ? '@' : '%';
  if (value.origin == Origin::node) {
    if (numbers_[id.index] == 0) {
      out += '?';
    } else {
      append_number(out, std::int64_t{numbers_[id.index]});
    }
  } else if (value.origin == Origin::input && is_number(value.name)) {
    append_quoted(out, value.name);  // %1 is the result of a node
  } else {
    append_name(out, value.name);
  }
}

std::string ValueNames::operator()(ValueId id) const {
  std::string text;
  append(text, id);
  return text;
}

void Printer::append_arg(std::string& out, const Arg& arg) const {
  std::visit(match{[&](None) { out += "None"; },                          //
                   [&](ValueId id) { names_.append(out, id); },           //
                   [&](bool truth) { out += truth ? "true" : "false"; },  //
                   [&](const shape::Int& x) { append_int_arg(out, x); },  //
                   [&](double number) { append_number(out, number); },    //
                   [&](const shape::Real& x) { append_wrapped(out, "real", x); },
                   [&](const shape::Bool& x) { append_wrapped(out, "bool", x); },
                   [&](const std::string& text) { append_quoted(out, text); },
                   [&](Dtype dtype) { out += name(dtype); },
                   [&](const ArgList& list) {
                     out += '[';
                     for (std::size_t i = 0; i < list.size(); ++i) {
                       if (i > 0) out += ", ";
                       append_arg(out, list[i]);
                     }
                     out += ']';
                   }},
             arg.value);
}

void Printer::node(const Node& node) {
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    if (i > 0) out_ += ", ";
    names_.append(out_, node.results[i]);
  }
  if (!node.results.empty()) out_ += " = ";
  if (is_statement_word(node.op)) {
    append_quoted(out_, node.op);
  } else {
    append_name(out_, node.op);
  }
  out_ += '(';
  for (std::size_t i = 0; i < node.args.size(); ++i) {
    if (i > 0) out_ += ", ";
    append_identifier(out_, node.args[i].name);
    out_ += '=';
    append_arg(out_, node.args[i].arg);
  }
  out_ += ')';
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    out_ += i == 0 ? " : " : ", ";
    if (node.results[i].index < graph_.values().size()) {
      append_type(out_, graph_.value(node.results[i]).type);
    } else {
      out_ += '?';
    }
  }
}

void Printer::place(PlaceId id) {
  if (id.index == 0 || id.index >= graph_.place_count()) return;
  out_ += "  # ";
  append_place(out_, graph_.place(id));
}

void Printer::inputs() {
  std::vector<std::string> items;
  for (const ValueId id : graph_.inputs) {
    std::string& item = items.emplace_back(names_(id));
    item += ": ";
    if (id.index < graph_.values().size()) append_type(item, graph_.value(id).type);
  }
  append_items(out_, items);
}

void Printer::where() {
  const auto must_be_tested = [](const shape::Guard& guard) {
    return guard.effect == shape::Guard::Effect::kept;
  };
  const auto guards = std::ranges::count_if(graph_.guards, must_be_tested);
  if (graph_.dims.empty() && guards == 0) return;
  out_ += "  where ";
  std::vector<std::string> items;
  for (const shape::Dim& dim : graph_.dims) append_dim(items.emplace_back(), dim);
  append_items(out_, items);
  // One line each, because each has a place of its own.
  bool first = items.empty();
  std::string comment;
  for (const shape::Guard& guard : graph_.guards) {
    if (!must_be_tested(guard)) continue;
    if (!first) out_ += ',';
    out_ += comment;
    if (!first) out_ += "\n    ";
    out_ += shape::print(guard.condition);
    std::string place;
    append_place(place, {guard.where, guard.module_path});
    comment = place.empty() ? "" : "  # " + place;
    first = false;
  }
  out_ += comment;
  out_ += '\n';
}

void Printer::weights() {
  if (graph_.weights.empty()) return;
  out_ += "  weights ";
  std::vector<std::string> items;
  for (const ValueId id : graph_.weights) {
    std::string& item = items.emplace_back(names_(id));
    item += ": ";
    if (id.index >= graph_.values().size()) continue;
    append_type(item, graph_.value(id).type);
    item += kind_word(graph_.value(id).weight_kind);
  }
  append_items(out_, items);
  out_ += '\n';
}

void Printer::assumption(const Assumption& assumption) {
  out_ += "  assume ";
  names_.append(out_, assumption.value);
  out_ += " == ";
  std::visit(match{[&](bool truth) { out_ += truth ? "true" : "false"; },
                   [&](auto number) { append_number(out_, number); }},
             assumption.expected);
  place(assumption.place);
  out_ += '\n';
}

void Printer::returns() {
  out_ += "  return";
  std::vector<std::string> items;
  for (const Output& output : graph_.outputs) {
    std::string& item = items.emplace_back();
    append_name(item, output.name);
    item += " = ";
    append_arg(item, output.value);
  }
  if (!items.empty()) out_ += ' ';
  append_items(out_, items);
  out_ += '\n';
}

void Printer::graph() {
  out_ += "graph ";
  append_name(out_, graph_.name);
  out_ += '(';
  inputs();
  out_ += ")\n";
  where();
  weights();
  out_ += "{\n";
  for (const Node& each : graph_.nodes()) {
    out_ += "  ";
    node(each);
    place(each.place);
    out_ += '\n';
  }
  for (const Assumption& each : graph_.assumptions) assumption(each);
  returns();
  for (const Mutation& mutation : graph_.mutations) {
    out_ += "  mutate ";
    names_.append(out_, mutation.buffer);
    out_ += " = ";
    names_.append(out_, mutation.value);
    out_ += '\n';
  }
  out_ += "}\n";
}

std::string print(const Type& type, const Graph*) {
  std::string text;
  append_type(text, type);
  return text;
}

std::string print(const Graph& graph) {
  std::string text;
  text.reserve(160 * (graph.nodes().size() + graph.weights.size() + 8));
  Printer(graph, ValueNames(graph), text).graph();
  return text;
}

std::string print(const Graph& graph, const Node& node) {
  std::string text;
  Printer(graph, ValueNames(graph), text).node(node);
  return text;
}

}  // namespace modelport::ir
