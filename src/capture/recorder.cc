#include "capture/recorder.h"

#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "capture/learn.h"
#include "capture/shape_only.h"
#include "capture/torch_dtype.h"
#include "ops/table/call.h"
#include "ops/table/names.h"

namespace modelport::capture {

namespace {

/// Results of a call with lists flattened.
std::vector<at::Tensor> flat_tensors(const std::vector<c10::IValue>& results) {
  std::vector<at::Tensor> flat;
  for (const c10::IValue& v : results) {
    if (v.isTensor()) flat.push_back(v.toTensor());
    if (v.isTensorList()) {
      for (const at::Tensor& t : v.toTensorVector()) flat.push_back(t);
    }
  }
  return flat;
}

bool shares_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() && a.has_storage() && b.has_storage() &&
         a.storage().is_alias_of(b.storage());
}

}  // namespace

Recorder::Recorder(Session& session, const c10::OperatorHandle& op, torch::jit::Stack& stack)
    : session_(session), op_(op), facts_(facts_of(op)), stack_(stack) {
  const std::size_t count = op.schema().arguments().size();
  operands_.assign(std::make_move_iterator(stack.end() - static_cast<std::ptrdiff_t>(count)),
                   std::make_move_iterator(stack.end()));
  torch::jit::drop(stack, count);
}

void Recorder::run() {
  switch (facts_.handling) {
    case Handling::record:
      return record();
    case Handling::identity:
      return identity();
    case Handling::cast:
      return cast();
    case Handling::read_number:
      return read_number();
    case Handling::read_truth:
      return read_truth();
    case Handling::equal:
      return equal();
    case Handling::all_close:
      return all_close();
    case Handling::copy:
      return copy();
    case Handling::size:
      return size();
    case Handling::reshape_self:
      return reshape_self();
    case Handling::refuse:
      refuse();
    case Handling::decompose:
      break;
  }
  throw InternalError("a composite operator reached the recorder");
}

/// Copies that `reshape` and `contiguous` make of tensors without data: torch's own way to them
/// leads through Python. Nothing where the result is a view, or the operand as it is.
static std::optional<at::Tensor> copy_without_data(const OpFacts& facts,
                                                   const std::vector<c10::IValue>& real) {
  const ops::Recording recording = facts.recording();
  const bool reshape = recording == ops::Recording::view_or_copy;
  if (!reshape && recording != ops::Recording::dense_or_copy) return std::nullopt;
  const at::Tensor self = real[0].toTensor();
  if (!self.is_meta() || self.numel() == 0) return std::nullopt;
  if (!reshape) {
    if (self.is_contiguous() || real[1].toMemoryFormat() != at::MemoryFormat::Contiguous)
      return std::nullopt;
    return at::empty(self.sizes(), self.options());
  }
  const at::DimVector sizes = at::infer_size_dv(real[1].toIntVector(), self.numel());
  if (at::detail::computeStride(self.sizes(), self.strides(), sizes)) return std::nullopt;
  return at::empty(sizes, self.options());
}

std::vector<c10::IValue> Recorder::run_for_real(const std::vector<c10::IValue>& real) {
  const at::AutoDispatchBelowADInplaceOrView below;
  if (const auto copy = copy_without_data(facts_, real)) return {*copy};
  torch::jit::Stack stack(real.begin(), real.end());
  op_.callBoxed(stack);
  return {std::make_move_iterator(stack.begin()), std::make_move_iterator(stack.end())};
}

std::vector<ir::Type> Recorder::infer(const std::vector<ir::NamedArg>& args,
                                      const std::vector<at::Tensor>& results) {
  if (facts_.row == nullptr) return learn_types(session_, op_, facts_, operands_, results);
  std::vector<std::vector<std::int64_t>> observed;
  observed.reserve(results.size());
  for (const at::Tensor& t : results) {
    observed.push_back(t.defined() ? t.sizes().vec() : std::vector<std::int64_t>{});
  }
  const ops::Call::Site site{.graph = session_.graph(),
                             .dims = session_.dims(),
                             .place = {place_.where, place_.module_path},
                             .observed = observed,
                             .result_count = results.size()};
  return ops::infer(*facts_.row, args, site);
}

void Recorder::check_rule(const std::vector<ir::Type>& types,
                          const std::vector<at::Tensor>& results) {
  bool right = types.size() == results.size();
  for (std::size_t i = 0; right && i < types.size(); ++i) {
    if (!results[i].defined()) continue;
    const auto& type = std::get<ir::TensorType>(types[i]);
    right = type.dtype == from_torch(results[i].scalar_type()) &&
            type.shape.size() == static_cast<std::size_t>(results[i].dim());
    for (std::size_t d = 0; right && d < type.shape.size(); ++d) {
      right = session_.dims().hint(type.shape[d]) == results[i].size(static_cast<std::int64_t>(d));
    }
  }
  if (right) return;
  session_.fail(
      Code::capture_failed,
      "the shape rule of " + facts_.name + " does not give the shape that torch gives",
      {"please report it: the rule is in the operator table (docs/adding-an-operator.md)"});
}

std::optional<std::size_t> Recorder::viewed_operand(const std::vector<c10::IValue>& real,
                                                    const at::Tensor& result) const {
  for (std::size_t i = 0; i < real.size(); ++i) {
    if (real[i].isTensor() && shares_memory(real[i].toTensor(), result)) return i;
  }
  return std::nullopt;
}

void Recorder::push_results(std::vector<c10::IValue> results) {
  for (c10::IValue& result : results) stack_.push_back(std::move(result));
}

std::optional<at::Tensor> Recorder::result_without_data(const std::vector<ir::NamedArg>& args,
                                                        const std::vector<c10::IValue>& real) {
  const bool on_meta = std::any_of(real.begin(), real.end(), [](const c10::IValue& v) {
    return (v.isTensor() && v.toTensor().defined() && v.toTensor().is_meta()) ||
           (v.isTensorList() && !v.toTensorList().empty() && v.toTensorVector().front().is_meta());
  });
  if (!on_meta || op_.schema().returns().size() != 1 || !has_known_layout(facts_, real))
    return std::nullopt;
  std::vector<ir::Type> types = infer(args, {});
  const auto& type = std::get<ir::TensorType>(types[0]);
  std::vector<std::int64_t> sizes;
  for (const shape::Int& size : type.shape) sizes.push_back(session_.dims().hint(size));
  const at::Tensor result = shape_only_result(facts_, real, sizes, to_torch(type.dtype));
  const bool strided = facts_.recording() == ops::Recording::strides;
  const ir::NodeId node = session_.graph().add_node(
      facts_.name, strided ? in_memory_order(args, real[0].toTensor()) : args, std::move(types),
      session_.graph().add_place(place_.where, place_.module_path));
  return session_.wrap(result, session_.graph().node(node).results[0]);
}

void Recorder::record() {
  std::vector<ir::NamedArg> args;
  place_ = session_.surroundings().place();
  for (const std::size_t index : facts_.written) {
    const at::Tensor& target = tensor_operand(index);
    if (as_traced(target) == nullptr && !session_.knows(target)) session_.promote(target);
  }
  args = node_arguments(session_, facts_, op_.schema(), operands_);
  if (facts_.recording() == ops::Recording::bounds) count_from_front(args);
  if (facts_.recording() == ops::Recording::strides) pin_read_strides(args);
  const std::vector<c10::IValue> real = real_operands(session_, facts_, operands_);
  for (const std::size_t index : facts_.written) session_.before_write(real[index].toTensor());
  if (const auto shortcut = result_without_data(args, real)) return push_results({*shortcut});
  const std::vector<c10::IValue> results = run_for_real(real);
  const std::vector<at::Tensor> flat = flat_tensors(results);
  if (flat.empty()) {
    // The rule says what it takes for a list to be empty: a loop over no rows is one more.
    if (results.size() == 1 && results[0].isTensorList()) infer(args, flat);
    refuse_unseen_numbers(results);
    return push_results(results);
  }
  if (!facts_.writes && flat.size() == 1 && facts_.recording() != ops::Recording::dense_or_copy) {
    // An operator that had nothing to do (dropout in eval mode) gives its operand back; not
    // `contiguous`, which has nothing to do at some sizes only.
    for (std::size_t i = 0; i < real.size(); ++i) {
      if (real[i].isTensor() && real[i].toTensor().is_same(flat[0]))
        return push_results({operands_[i]});
    }
  }
  std::vector<ir::Type> types = infer(args, flat);
  if (!facts_.writes) check_rule(types, flat);
  const bool strided = facts_.recording() == ops::Recording::strides;
  const ir::NodeId node = session_.graph().add_node(
      facts_.name, strided ? in_memory_order(args, real[0].toTensor()) : args, std::move(types),
      session_.graph().add_place(place_.where, place_.module_path));
  if (facts_.writes) return finish_writes(real, session_.graph().node(node).results);

  std::size_t next = 0;
  const auto wrapped = [&](const at::Tensor& result) {
    return wrap_result(args, real, node, next++, result);
  };
  std::vector<c10::IValue> outputs;
  for (const c10::IValue& v : results) {
    if (v.isTensor()) {
      outputs.emplace_back(wrapped(v.toTensor()));
    } else if (v.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& t : v.toTensorVector()) list.push_back(wrapped(t));
      outputs.emplace_back(std::move(list));
    } else {
      outputs.push_back(v);
    }
  }
  push_results(std::move(outputs));
}

std::shared_ptr<const CopiedWhere> Recorder::copied_where(const Trace& from, bool copied) const {
  using shape::Bool;
  using shape::Compare;
  const auto where = std::make_shared<CopiedWhere>();
  bool dense = true;  // at all sizes
  for (const ViewStep* step = from.view.get(); step != nullptr; step = step->before.get()) {
    const ops::OpDef* row = ops::find_op(step->op);
    dense = dense && row != nullptr && row->put_back.how == ops::PutBack::How::reshape;
    const auto& to = std::get<ir::TensorType>(step->results[step->result]).shape;
    if (!copied || to.size() != step->from.shape.size()) continue;
    for (std::size_t axis = 0; axis < to.size(); ++axis) {  // a slice may be the whole elsewhere
      const Bool cut = Bool::compare(Compare::ne, to[axis], step->from.shape[axis]);
      if (!cut.constant() && session_.dims().hint(cut)) where->push_back(cut);
    }
  }
  if (!copied && dense) return nullptr;
  for (const shape::Int& size : session_.graph().value(from.value).tensor().shape) {
    if (!size.is_constant()) where->push_back(Bool::compare(Compare::ge, size, 2));
  }
  return where->empty() ? nullptr : where;
}

at::Tensor Recorder::wrap_own(const at::Tensor& result, ir::ValueId value) {
  const at::Tensor wrapped = session_.wrap(result, value);
  if (!ops::may_share_memory(facts_.name) || operands_.empty() || !operands_[0].isTensor())
    return wrapped;
  const std::optional<Trace> from = session_.trace_of(operands_[0].toTensor());
  const auto where = from ? copied_where(*from, true) : nullptr;
  if (where == nullptr) return wrapped;
  const std::shared_ptr<Memory>& own = as_traced(wrapped)->trace().memory;
  own->copies.push_back({from->memory, where});
  from->memory->copies.push_back({own, where});
  return wrapped;
}

at::Tensor Recorder::wrap_result(const std::vector<ir::NamedArg>& args,
                                 const std::vector<c10::IValue>& real, ir::NodeId node,
                                 std::size_t index, const at::Tensor& result) {
  if (!result.defined()) return result;
  const std::vector<ir::ValueId> values = session_.graph().node(node).results;
  const auto viewed = viewed_operand(real, result);
  if (!viewed || result.is_conj()) return wrap_own(result, values[index]);
  std::optional<Trace> from = session_.trace_of(tensor_operand(*viewed));
  if (!from) from = session_.trace_of_plain(tensor_operand(*viewed));
  if (!from) return session_.wrap(result, values[index]);
  auto step = std::make_shared<ViewStep>();
  step->before = from->view;
  step->op = facts_.name;
  step->self_name = facts_.args[*viewed].name;
  for (const ir::NamedArg& arg : args) {
    if (arg.name != step->self_name) step->args.push_back(arg);
  }
  for (const ir::ValueId value : values)
    step->results.push_back(session_.graph().value(value).type);
  step->result = index;
  step->from = session_.graph().value(from->value).tensor();
  // torch's own view operators have kernels; what copies where it must calls them, or `clone`.
  const bool may_copy = op_.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  if (may_copy && facts_.row != nullptr && facts_.row->put_back.how == ops::PutBack::How::reshape)
    step->copied_where = copied_where(*from, false);
  return session_.wrap(result, Trace{from->memory, step, from->memory->version, values[index]});
}

void Recorder::finish_writes(const std::vector<c10::IValue>& real,
                             std::vector<ir::ValueId> values) {
  std::vector<c10::IValue> outputs;
  for (std::size_t i = 0; i < facts_.written.size(); ++i) {
    const std::size_t index = facts_.written[i];
    const at::Tensor& target = tensor_operand(index);
    const ir::TensorType was = session_.graph().value(session_.trace_of(target)->value).tensor();
    ir::ValueId value = values[i];
    if (session_.graph().value(value).tensor().dtype != was.dtype) {
      value = session_.add_node(ops::names::kToDtype, {{"self", {value}}, {"dtype", {was.dtype}}},
                                {was.dtype, session_.graph().value(value).tensor().shape});
    }
    session_.write(target, value);
    if (real[index].toTensor().is_meta()) session_.trace_of(target)->memory->lost_data = true;
    outputs.emplace_back(target);
  }
  if (op_.schema().returns().empty()) outputs.clear();
  push_results(std::move(outputs));
}

}  // namespace modelport::capture
