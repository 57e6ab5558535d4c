#include "capture/interpreter.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include "capture/bind_sizes.h"
#include "capture/memory_format.h"
#include "capture/op_facts.h"
#include "capture/session.h"
#include "capture/torch_dtype.h"
#include "signature/limits.h"

namespace modelport::capture {

using shape::Bool;
using shape::Int;
using shape::Real;

namespace {

class Interpreter {
 public:
  explicit Interpreter(const RunRequest& request)
      : request_(request), graph_(request.graph), tensors_(graph_.values().size()) {}

  RunResult run() {
    choose_device();
    bind_inputs();
    bind_weights();
    count_uses();
    for (const ir::ValueId input : graph_.inputs) check_assumptions(input);
    for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) run_node(ir::NodeId{i});
    check_conditions();
    RunResult result;
    for (const ir::Output& output : graph_.outputs)
      result.outputs.push_back(output_value(output.value));
    for (const ir::Mutation& mutation : graph_.mutations) {
      result.mutated_buffers.emplace_back(graph_.value(mutation.buffer).name,
                                          tensors_[mutation.value.index]);
    }
    return result;
  }

  /// Where the inputs are: a graph says nothing of devices. What is on the CPU beside inputs on
  /// another device goes there too.
  void choose_device() {
    device_ = at::kCPU;
    const bool any = !graph_.inputs.empty();
    for (const at::Tensor& input : request_.inputs) {
      if (!input.is_cpu()) device_ = input.device();
    }
    for (const auto& [name, weight] : request_.weights) {
      if (!any && !weight.is_cpu()) device_ = weight.device();
    }
  }

  at::Tensor placed(const at::Tensor& tensor) const {
    return device_ ? tensor.to(*device_) : tensor;
  }

  void bind_inputs() {
    values_ = bind_sizes(graph_, request_.inputs);
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
      tensors_[graph_.inputs[i].index] = placed(request_.inputs[i]);
  }

  void bind_weights() {
    Diagnostics missing;
    for (const ir::ValueId id : graph_.weights) {
      const std::string& name = graph_.value(id).name;
      const auto kept = request_.state.find(name);
      const auto found = request_.weights.find(name);
      if (kept != request_.state.end()) {
        tensors_[id.index] = placed(kept->second);
      } else if (found != request_.weights.end()) {
        tensors_[id.index] = placed(found->second);
      } else {
        missing.add({.code = Code::missing_weight,
                     .what = "no tensor for the weight " + name,
                     .ways_out = {"load the checkpoint that the graph was captured from"}});
      }
    }
    missing.throw_if_any();
  }

  /// The last node that needs a value, so that memory is freed as early as in eager mode.
  void count_uses() {
    uses_.assign(graph_.values().size(), 0);
    const auto count = [this](ir::ValueId id) { ++uses_[id.index]; };
    for (const ir::Node& node : graph_.nodes()) {
      for (const ir::NamedArg& arg : node.args) ir::for_each_value(arg.arg, count);
    }
    for (const ir::Output& output : graph_.outputs) ir::for_each_value(output.value, count);
    for (const ir::Mutation& mutation : graph_.mutations) count(mutation.value);
    for (const ir::Assumption& assumption : graph_.assumptions) {
      count(assumption.value);
      assumptions_[assumption.value.index].push_back(&assumption);
    }
  }

  /// Tensors that one call gives, lists flattened.
  std::vector<at::Tensor> call(const ir::Node& node) {
    bind_inputs();
    const c10::OperatorHandle op = find_operator(node.op);
    torch::jit::Stack stack = operands(node, op);
    op.callBoxed(stack);
    std::vector<at::Tensor> results;
    append_tensors(stack, results);
    return results;
  }

 private:
  static void append_tensors(const torch::jit::Stack& stack, std::vector<at::Tensor>& results) {
    for (const c10::IValue& v : stack) {
      if (v.isTensor()) results.push_back(v.toTensor());
      if (v.isTensorList()) {
        for (const at::Tensor& t : v.toTensorVector()) results.push_back(t);
      }
    }
  }

  void run_node(ir::NodeId id) {
    const ir::Node& node = graph_.node(id);
    const c10::OperatorHandle op = find_operator(node.op);
    torch::jit::Stack stack = operands(node, op);
    fill_in_the_rest(node, stack);
    try {
      op.callBoxed(stack);
    } catch (const c10::Error& error) {
      const ir::Place& place = graph_.place(node.place);
      throw ExportError(
          Diagnostic{.code = Code::guard_failed,
                     .what = node.op + " failed at these sizes: " + error.what_without_backtrace(),
                     .where = place.where,
                     .module_path = place.module_path});
    }
    std::vector<at::Tensor> results;
    append_tensors(stack, results);
    for (const c10::IValue& v : stack) {
      if (v.isScalar()) bind_number(node, v.toScalar());
    }
    if (results.size() != node.results.size() && !results.empty())
      count_differs(node, results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      tensors_[node.results[i].index] = results[i];
      bind_new_sizes(node, node.results[i], results[i]);
    }
    if (request_.watch) request_.watch(id, results);
    for (const ir::ValueId result : node.results) check_assumptions(result);
    for (const ir::NamedArg& arg : node.args) {
      ir::for_each_value(arg.arg, [this](ir::ValueId used) {
        if (--uses_[used.index] == 0) tensors_[used.index].reset();
      });
    }
  }

  /// A -1 in a shape stands for what is left, which torch cannot tell where there are no elements;
  /// the graph knows it.
  void fill_in_the_rest(const ir::Node& node, torch::jit::Stack& stack) {
    if (stack.size() < 2 || !stack[1].isIntList() || !stack[0].isTensor()) return;
    if (stack[0].toTensor().numel() != 0 || !ops::takes_shape(node.op)) return;
    std::vector<std::int64_t> sizes;
    for (const Int& size : graph_.value(node.results[0]).tensor().shape)
      sizes.push_back(evaluate(size, values_));
    stack[1] = sizes;
  }

  [[noreturn]] void count_differs(const ir::Node& node, std::size_t count) {
    const ir::Place& place = graph_.place(node.place);
    throw ExportError(
        Diagnostic{.code = Code::guard_failed,
                   .what = fmt::format("{} gives {} results at these sizes, {} in the example run",
                                       node.op, count, node.results.size()),
                   .where = place.where,
                   .module_path = place.module_path,
                   .ways_out = {"capture again with inputs of this size"}});
  }

  /// A number read from a tensor gives its symbol a value; where the model needed it to be a
  /// certain number (the count of a Python loop), it must be that number again.
  void bind_number(const ir::Node& node, const at::Scalar& value) {
    const auto& type = std::get<ir::ScalarType>(graph_.value(node.results[0]).type);
    if (const Real* r = std::get_if<Real>(&type.symbol))
      values_.reals[r->node().name] = value.toDouble();
    if (const Bool* b = std::get_if<Bool>(&type.symbol))
      values_.bools[b->node().name] = value.toBool();
    if (const Int* i = std::get_if<Int>(&type.symbol)) {
      if (const auto symbol = i->as_symbol()) {
        values_.ints.emplace(std::string(*symbol), value.toLong());
      }
      const std::int64_t needed = evaluate(*i, values_);
      if (needed != value.toLong())
        differs_from_capture(node, "reads the number", value.toLong(), needed);
    }
    check_conditions();
  }

  /// Those on what the data decides: the others were tested before the run.
  void check_conditions() {
    for (const shape::Guard& guard : graph_.guards) {
      if (fails(guard, values_)) throw ExportError(signature::broken_condition(guard, values_));
    }
  }

  [[noreturn]] void differs_from_capture(const ir::Node& node, std::string_view what,
                                         std::int64_t now, std::int64_t needed) {
    const ir::Place& place = graph_.place(node.place);
    throw ExportError(Diagnostic{
        .code = Code::guard_failed,
        .what = fmt::format("{} {} {}, the graph was captured for {}", node.op, what, now, needed),
        .where = place.where,
        .module_path = place.module_path,
        .ways_out = {"capture again with these inputs"}});
  }

  void bind_new_sizes(const ir::Node& node, ir::ValueId id, const at::Tensor& tensor) {
    const auto* type = std::get_if<ir::TensorType>(&graph_.value(id).type);
    if (type == nullptr || !tensor.defined()) return;
    const auto rank = static_cast<std::int64_t>(type->shape.size());
    if (tensor.dim() != rank) differs_from_capture(node, "gives a rank of", tensor.dim(), rank);
    for (std::size_t d = 0; d < type->shape.size(); ++d) {
      const std::int64_t size = tensor.size(static_cast<std::int64_t>(d));
      const auto symbol = type->shape[d].as_symbol();
      if (symbol) values_.ints.emplace(std::string(*symbol), size);
      const std::int64_t needed = evaluate(type->shape[d], values_);
      if (needed != size) differs_from_capture(node, "gives a size of", size, needed);
    }
  }

  void check_assumptions(ir::ValueId id) {
    const auto found = assumptions_.find(id.index);
    if (found == assumptions_.end()) return;
    for (const ir::Assumption* assumption : found->second) {
      const at::Scalar now = tensors_[id.index].item();
      const bool holds = std::visit(
          [&](auto expected) {
            if constexpr (std::is_same_v<decltype(expected), bool>)
              return now.toBool() == expected;
            else if constexpr (std::is_same_v<decltype(expected), std::int64_t>)
              return now.toLong() == expected;
            else
              return now.toDouble() == expected;
          },
          assumption->expected);
      if (holds) continue;
      const ir::Place& place = graph_.place(assumption->place);
      throw ExportError(Diagnostic{.code = Code::guard_failed,
                                   .what = "the model branches on its data here, and these inputs "
                                           "take the branch that was not captured",
                                   .where = place.where,
                                   .module_path = place.module_path,
                                   .ways_out = {"capture with inputs that take this branch"}});
    }
  }

  c10::IValue number(const ir::Arg& arg) const {
    if (const bool* b = arg.get<bool>()) return *b;
    if (const double* d = arg.get<double>()) return *d;
    if (const Int* i = arg.get<Int>()) return evaluate(*i, values_);
    if (const Real* r = arg.get<Real>()) return evaluate(*r, values_);
    if (const Bool* b = arg.get<Bool>()) return evaluate(*b, values_);
    throw InternalError("an argument that is no number");
  }

  at::Tensor tensor(const ir::Arg& arg) const {
    if (const ir::ValueId* id = arg.get<ir::ValueId>()) return tensors_[id->index];
    const c10::IValue plain = number(arg);
    at::Tensor wrapped = plain.isInt()      ? at::scalar_tensor(plain.toInt(), at::kLong)
                         : plain.isDouble() ? at::scalar_tensor(plain.toDouble(), at::kDouble)
                                            : at::scalar_tensor(plain.toBool(), at::kBool);
    wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
    return wrapped;
  }

  torch::jit::Stack operands(const ir::Node& node, const c10::OperatorHandle& op) const {
    torch::jit::Stack stack;
    const auto& arguments = op.schema().arguments();
    const OpFacts& facts = facts_of(op);
    bool from_nothing = true;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const ir::Arg* arg = node.find(arguments[i].name());
      if (facts.args[i].is_tensor && arg != nullptr) from_nothing = false;
      if (device_ && facts.args[i].kind == ArgKind::device && (arg != nullptr || from_nothing)) {
        stack.emplace_back(*device_);
      } else if (arg == nullptr) {
        stack.push_back(arguments[i].default_value().value_or(c10::IValue()));
      } else {
        stack.push_back(operand(*arg, facts.args[i], *arguments[i].type()));
      }
    }
    return stack;
  }

  c10::IValue operand(const ir::Arg& arg, const ArgFacts& facts, const c10::Type& type) const {
    if (arg.is_none()) return {};
    if (facts.kind == ArgKind::memory_format) {
      return static_cast<std::int64_t>(parse_memory_format(*arg.get<std::string>()));
    }
    if (facts.kind == ArgKind::device) return c10::Device(*arg.get<std::string>());
    if (const Dtype* dtype = arg.get<Dtype>()) return static_cast<std::int64_t>(to_torch(*dtype));
    if (facts.is_tensor) return tensor(arg);
    if (const std::string* text = arg.get<std::string>()) return *text;
    if (const ir::ArgList* list = arg.get<ir::ArgList>()) return list_operand(*list, type);
    const c10::Type* inner = &type;
    if (const auto* optional = type.castRaw<c10::OptionalType>())
      inner = optional->getElementType().get();
    // `int[1] dim` takes a plain number for a list of one; `float` takes an int.
    if (inner->kind() == c10::TypeKind::ListType) return list_operand({arg}, type);
    c10::IValue plain = number(arg);
    if (inner->kind() == c10::TypeKind::FloatType && plain.isInt())
      return static_cast<double>(plain.toInt());
    return plain;
  }

  c10::IValue list_operand(const ir::ArgList& list, const c10::Type& type) const {
    const c10::Type* inner = &type;
    if (const auto* optional = inner->castRaw<c10::OptionalType>())
      inner = optional->getElementType().get();
    const auto* list_type = inner->castRaw<c10::ListType>();
    if (list_type == nullptr) throw InternalError("a list where the schema has none");
    const c10::Type& element = *list_type->getElementType();
    if (element.kind() == c10::TypeKind::TensorType) {
      c10::List<at::Tensor> tensors;
      for (const ir::Arg& item : list) tensors.push_back(tensor(item));
      return tensors;
    }
    if (element.kind() == c10::TypeKind::OptionalType) {
      c10::List<std::optional<at::Tensor>> tensors;
      for (const ir::Arg& item : list) {
        tensors.push_back(item.is_none() ? std::nullopt : std::optional<at::Tensor>(tensor(item)));
      }
      return tensors;
    }
    if (element.kind() == c10::TypeKind::FloatType) {
      c10::List<double> numbers;
      for (const ir::Arg& item : list) numbers.push_back(number(item).toScalar().toDouble());
      return numbers;
    }
    if (element.kind() == c10::TypeKind::BoolType) {
      c10::List<bool> flags;
      for (const ir::Arg& item : list) flags.push_back(number(item).toBool());
      return flags;
    }
    if (element.kind() == c10::TypeKind::NumberType) {
      c10::List<at::Scalar> numbers;
      for (const ir::Arg& item : list) numbers.push_back(number(item).toScalar());
      return numbers;
    }
    c10::List<std::int64_t> numbers;
    for (const ir::Arg& item : list) numbers.push_back(number(item).toInt());
    return numbers;
  }

  OutputValue output_value(const ir::Arg& arg) const {
    if (const ir::ValueId* id = arg.get<ir::ValueId>()) return tensors_[id->index];
    const c10::IValue plain = number(arg);
    if (plain.isBool()) return plain.toBool();
    if (plain.isInt()) return plain.toInt();
    return plain.toDouble();
  }

  const RunRequest& request_;
  const ir::Graph& graph_;
  std::optional<c10::Device> device_;  // of all tensors of a run
  std::vector<at::Tensor> tensors_;
  std::vector<std::uint32_t> uses_;
  std::unordered_map<std::uint32_t, std::vector<const ir::Assumption*>> assumptions_;
  shape::Values values_;
};

}  // namespace

void run_operator(std::string_view op, const ir::Graph& graph,
                  const std::vector<ir::NamedArg>& args, const std::vector<at::Tensor>& inputs,
                  std::vector<at::Tensor>& results) {
  const Paused paused;
  const at::AutoDispatchBelowADInplaceOrView below;
  const WeightTensors none;
  results = Interpreter({graph, none, inputs, {}}).call(ir::Node{std::string(op), args, {}, {}});
}

RunResult run_graph(const RunRequest& request) {
  const Paused paused;
  const at::AutoDispatchBelowADInplaceOrView below;
  return Interpreter(request).run();
}

}  // namespace modelport::capture
