// Nodes: operators, in-place operators as their functional forms, and wrapped parts, which are
// taken apart.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "backends/pt2/program_reader.h"
#include "ops/table/op.h"

namespace modelport::pt2 {
namespace {

/// Tests that a graph states in other ways, and marks for torch's own tracer.
constexpr std::array kTests{
    std::string_view("_assert_async"),
    std::string_view("_assert_scalar"),
    std::string_view("_assert_tensor_metadata"),
    std::string_view("sym_constrain_range"),
    std::string_view("sym_constrain_range_for_size"),
};
constexpr std::array kSizes{std::string_view("sym_numel"), std::string_view("sym_size"),
                            std::string_view("sym_storage_offset"), std::string_view("sym_stride")};
static_assert(std::ranges::is_sorted(kTests) && std::ranges::is_sorted(kSizes));

constexpr std::string_view kOperators = "torch.ops.";

/// "torch.ops.aten.add.Tensor" is "aten.add.Tensor", "torch.ops.aten.linear.default" is
/// "aten.linear".
std::string op_name(std::string_view target) {
  target.remove_prefix(kOperators.size());
  if (std::ranges::count(target, '.') == 2 && target.ends_with(".default")) target.remove_suffix(8);
  return std::string(target);
}

/// Arithmetic on numbers: what it computes stands in the tables.
bool is_arithmetic(std::string_view target) {
  return target.starts_with("_operator.") || target.starts_with("math.") ||
         target.starts_with("torch.sym_");
}

/// The innermost line of `File "x.py", line 3, in f`.
SourceLine last_line(std::string_view trace) {
  constexpr std::string_view kFile = "File \"";
  SourceLine line;
  const std::size_t begin = trace.rfind(kFile);
  if (begin == std::string_view::npos) return line;
  std::string_view rest = trace.substr(begin + kFile.size());
  rest = rest.substr(0, rest.find('\n'));
  const std::size_t end = rest.find("\", line ");
  if (end == std::string_view::npos) return line;
  std::string_view file = rest.substr(0, end);
  if (file.find("site-packages") != std::string_view::npos) file.remove_prefix(file.rfind('/') + 1);
  rest.remove_prefix(end + 8);
  const auto [after, error] = std::from_chars(rest.data(), rest.data() + rest.size(), line.line);
  if (error != std::errc() || line.line < 0) return {};
  rest.remove_prefix(static_cast<std::size_t>(after - rest.data()));
  line.file = file;
  if (rest.starts_with(", in ")) line.function = rest.substr(5);
  return line;
}

/// The path of the innermost module of "key,path,type;key,path,type".
std::string_view innermost_module(std::string_view stack) {
  const std::size_t last = stack.rfind(';');
  if (last != std::string_view::npos) stack.remove_prefix(last + 1);
  const std::size_t begin = stack.find(',');
  if (begin == std::string_view::npos) return {};
  stack.remove_prefix(begin + 1);
  stack = stack.substr(0, stack.find(','));
  constexpr std::string_view kSelf = "L['self']";
  if (stack.starts_with(kSelf)) stack.remove_prefix(kSelf.size());
  if (stack.starts_with('.')) stack.remove_prefix(1);
  return stack;
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) >= ' '; });
}

}  // namespace

ir::PlaceId ProgramReader::place_of(const Json& metadata) {
  SourceLine where;
  std::string_view module_path;
  const auto trace = metadata.find("stack_trace");
  if (trace != metadata.end()) where = last_line(trace->get_ref<const std::string&>());
  const auto stack = metadata.find("nn_module_stack");
  if (stack != metadata.end()) module_path = innermost_module(stack->get_ref<const std::string&>());
  if (!is_printable(where.file) || !is_printable(where.function)) where = {};
  if (!is_printable(module_path)) module_path = {};
  if (!where.known() && module_path.empty()) return {};
  return graph.add_place(where, module_path);
}

void ProgramReader::read_nodes(const Json& nodes) {
  for (const Json& node : nodes) read_node(node);
}

void ProgramReader::read_node(const Json& node) {
  const auto& target = node.at("target").get_ref<const std::string&>();
  if (is_arithmetic(target)) return;
  if (target == "torch.ops.higher_order.wrap_with_set_grad_enabled") return read_wrapped(node);
  if (target.starts_with(kOperators) && std::ranges::count(target, '.') >= 3 &&
      !target.starts_with("torch.ops.higher_order.")) {
    return read_operator(target, node);
  }
  unsupported("the operator " + quote_text(target), place_of(node.at("metadata")));
  add_node("unsupported.operator", {}, node, {});
}

void ProgramReader::read_operator(std::string_view target, const Json& node) {
  std::string op = op_name(target);
  const std::string_view base = ops::base_name(op);
  const bool aten = op.starts_with("aten.");
  if (aten &&
      (std::ranges::binary_search(kTests, base) || std::ranges::binary_search(kSizes, base)))
    return;
  const ir::PlaceId place = place_of(node.at("metadata"));
  std::vector<ir::NamedArg> args = arguments(op, node.at("inputs"), place);
  if (aten && ops::writes_in_place(op) && read_in_place(op, args, node, place)) return;
  add_node(std::move(op), std::move(args), node, place);
}

std::vector<std::string> ProgramReader::result_names(const Json& outputs) const {
  std::vector<std::string> names;
  for (const Json& output : outputs) {
    if (output.contains("as_tensor")) {
      names.push_back(output["as_tensor"].at("name").get<std::string>());
    } else if (output.contains("as_tensors")) {
      for (const Json& item : output["as_tensors"])
        names.push_back(item.at("name").get<std::string>());
    } else {
      for (const char* kind : {"as_sym_int", "as_sym_float", "as_sym_bool"}) {
        if (output.contains(kind)) names.push_back(output[kind].at("as_name").get<std::string>());
      }
    }
  }
  return names;
}

ir::Type ProgramReader::result_type(const std::string& name) {
  const auto tensor = tables_.tensors->find(name);
  if (tensor != tables_.tensors->end()) return tensor_type(*tensor);
  const ir::Arg number = number_value(name);
  if (const auto* x = number.get<shape::Int>()) return ir::ScalarType{*x};
  if (const auto* x = number.get<shape::Real>()) return ir::ScalarType{*x};
  if (const auto* x = number.get<shape::Bool>()) return ir::ScalarType{*x};
  if (const auto* x = number.get<double>()) return ir::ScalarType{shape::Real(*x)};
  return ir::ScalarType{shape::Bool(*number.get<bool>())};
}

void ProgramReader::add_node(std::string op, std::vector<ir::NamedArg> args, const Json& node,
                             ir::PlaceId place) {
  const std::vector<std::string> names = result_names(node.at("outputs"));
  std::vector<ir::Type> types;
  for (const std::string& name : names) types.push_back(result_type(name));
  const bool none =
      std::ranges::any_of(node.at("outputs"), [](const Json& x) { return x.contains("as_none"); });
  if (none && names.empty())
    return unsupported("the operator " + op + ", which gives nothing", place);
  const ir::ValueId* viewed = nullptr;
  ir::ValueId memory;
  if (ops::may_share_memory(op) && !args.empty()) viewed = args[0].arg.get<ir::ValueId>();
  if (viewed != nullptr) {
    const auto known = memory_.find(viewed->index);
    memory = known == memory_.end() ? *viewed : known->second;
  }
  const ir::NodeId id = graph.add_node(std::move(op), std::move(args), std::move(types), place);
  const std::vector<ir::ValueId> results = graph.node(id).results;
  for (std::size_t i = 0; i < names.size(); ++i) {
    define(names[i], results[i]);
    if (viewed == nullptr) continue;
    memory_[results[i].index] = memory;
    ++sharers_[memory.index];
  }
}

/// `x.add_(y)` as a new value that every later use of x means. Not for memory that several values
/// share: there a graph would have to say which part of which value changed.
bool ProgramReader::read_in_place(std::string op, std::vector<ir::NamedArg> args, const Json& node,
                                  ir::PlaceId place) {
  const ir::ValueId* self = args.empty() ? nullptr : args[0].arg.get<ir::ValueId>();
  const std::vector<std::string> names = result_names(node.at("outputs"));
  if (self == nullptr || names.size() != 1) return false;
  const ir::ValueId old = *self;
  std::string functional = op;
  const std::string_view base = ops::base_name(op);
  functional.erase(static_cast<std::size_t>(base.data() + base.size() - 1 - op.data()), 1);
  if (ops::handling_of(functional) == ops::Handling::identity) {
    define(names[0], old);
    return true;
  }
  const bool shared = memory_.contains(old.index) || sharers_[old.index] > 0;
  const auto origin = written_.find(old.index);
  const ir::ValueId source = origin == written_.end() ? old : origin->second;
  const ir::Value& written = graph.value(source);
  const bool from_outside =
      written.origin == ir::Origin::input ||
      (written.origin == ir::Origin::weight && written.weight_kind != ir::WeightKind::buffer &&
       written.weight_kind != ir::WeightKind::buffer_not_saved);
  if (shared || from_outside) {
    unsupported(fmt::format("{} on memory that {}", op,
                            shared ? "other values share" : "is not the program's own"),
                place,
                {"program = program.run_decompositions({}) before torch.export.save: it then has "
                 "no in-place operators"});
    define(names[0], old);
    return true;
  }
  const bool is_weight = written.origin == ir::Origin::weight;
  const ir::NodeId id =
      graph.add_node(std::move(functional), std::move(args), {graph.value(old).type}, place);
  const ir::ValueId result = graph.node(id).results[0];
  for (auto& [name, arg] : scope_) {
    if (const ir::ValueId* bound = arg.get<ir::ValueId>(); bound != nullptr && *bound == old)
      arg = {result};
  }
  define(names[0], result);
  if (!is_weight) return true;
  written_[result.index] = source;
  const auto known = std::ranges::find(graph.mutations, source, &ir::Mutation::buffer);
  if (known == graph.mutations.end()) {
    graph.mutations.push_back({source, result});
  } else {
    known->value = result;
  }
  return true;
}

/// A part that runs with gradients off: its nodes are taken as they are.
void ProgramReader::read_wrapped(const Json& node) {
  const Json& inputs = node.at("inputs");
  const Json& part = inputs.at(1).at("arg").at("as_graph").at("graph");
  const Json& parameters = part.at("inputs");
  if (parameters.size() + 2 != inputs.size()) {
    return unsupported("a wrapped part with other operands than it takes",
                       place_of(node.at("metadata")));
  }
  Scope inner;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Json& parameter = parameters[i];
    auto arg = argument(inputs[i + 2].at("arg"), {});
    const std::vector<std::string> names = result_names(Json::array({parameter}));
    if (arg && names.size() == 1) inner.emplace(names[0], std::move(*arg));
  }
  const Tables tables = tables_;
  Scope outer = std::move(scope_);
  scope_ = std::move(inner);
  tables_ = {&part.at("tensor_values"), &part.at("sym_int_values"), &part.at("sym_float_values"),
             &part.at("sym_bool_values")};
  read_nodes(part.at("nodes"));
  std::vector<ir::Arg> results;
  for (const Json& output : part.at("outputs"))
    results.push_back(argument(output, {}).value_or(ir::Arg{}));
  scope_ = std::move(outer);
  tables_ = tables;
  const std::vector<std::string> names = result_names(node.at("outputs"));
  for (std::size_t i = 0; i < std::min(names.size(), results.size()); ++i)
    scope_[names[i]] = results[i];
}

}  // namespace modelport::pt2
