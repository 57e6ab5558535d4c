// Operators that ask about data, memory or metadata rather than compute: each is answered in its
// own way.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/all.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/isclose.h>
#include <ATen/ops/item.h>

#include <algorithm>
#include <numeric>

#include "capture/recorder.h"
#include "capture/shape_only.h"
#include "capture/torch_dtype.h"
#include "ops/table/names.h"

namespace modelport::capture {

using shape::Int;

void Recorder::identity() {
  const at::Tensor& self = tensor_operand(0);
  const std::optional<Trace> trace = session_.trace_of(self);
  push_results({trace ? session_.wrap(session_.real_of(self), *trace) : self});
}

/// `to` on meta: only the dtype matters, a device means nothing there.
at::Tensor Recorder::cast_without_data(const at::Tensor& before,
                                       const std::vector<c10::IValue>& real) const {
  c10::ScalarType dtype = before.scalar_type();
  for (std::size_t i = 1; i < real.size(); ++i) {
    if (facts_.args[i].kind == ArgKind::dtype && !real[i].isNone())
      dtype = static_cast<c10::ScalarType>(real[i].toInt());
    if (facts_.args[i].name == "other") dtype = real[i].toTensor().scalar_type();
  }
  return dtype == before.scalar_type() && ops::may_share_memory(facts_.name)
             ? before
             : shape_only_cast(before, dtype);
}

void Recorder::cast() {
  const at::Tensor& self = tensor_operand(0);
  std::vector<c10::IValue> real = real_operands(session_, facts_, operands_);
  const at::Tensor before = real[0].toTensor();
  const at::Tensor after =
      before.is_meta() ? cast_without_data(before, real) : run_for_real(real).front().toTensor();
  if (after.is_same(before)) return push_results({self});
  const ir::ValueId value = session_.value_of(self);
  const ir::TensorType type = session_.graph().value(value).tensor();
  const Dtype dtype = from_torch(after.scalar_type());
  const auto result =
      dtype == type.dtype
          ? session_.add_node(ops::names::kClone, {{"self", {value}}}, type)
          : session_.add_node(ops::names::kToDtype, {{"self", {value}}, {"dtype", {dtype}}},
                              {dtype, type.shape});
  push_results({session_.wrap(after, result)});
}

std::vector<ir::NamedArg> Recorder::in_memory_order(std::vector<ir::NamedArg> args,
                                                    const at::Tensor& real) {
  if (real.is_contiguous()) return args;
  std::vector<std::int64_t> order(static_cast<std::size_t>(real.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return real.stride(a) > real.stride(b); });
  if (real.storage_offset() != 0 || !real.permute(order).is_contiguous()) return args;
  for (ir::NamedArg& named : args) {
    if (named.name != "self") continue;
    const ir::ValueId self = *named.arg.get<ir::ValueId>();
    ir::TensorType type = session_.graph().value(self).tensor();
    const std::vector<Int> sizes = type.shape;
    ir::ArgList dims;
    for (std::size_t i = 0; i < order.size(); ++i) {
      type.shape[i] = sizes[static_cast<std::size_t>(order[i])];
      dims.push_back({Int(order[i])});
    }
    named.arg = {session_.add_node(ops::names::kPermute,
                                   {{"self", {self}}, {"dims", {std::move(dims)}}}, type)};
  }
  return args;
}

/// Strides that torch's own code read as plain numbers (fill_diagonal_) are those of the example:
/// one that may come from sizes that are symbols pins them.
void Recorder::pin_read_strides(const std::vector<ir::NamedArg>& args) {
  const auto named = [&](std::string_view name) -> const ir::Arg* {
    const auto found = std::ranges::find(args, name, &ir::NamedArg::name);
    return found == args.end() ? nullptr : &found->arg;
  };
  const ir::Arg* self = named("self");
  const ir::ArgList* strides = named("stride") ? named("stride")->get<ir::ArgList>() : nullptr;
  if (self == nullptr || strides == nullptr) return;
  const std::vector<Int> sizes = session_.graph().value(*self->get<ir::ValueId>()).tensor().shape;
  Int stride = 1;
  std::optional<std::int64_t> least;  // of the strides that are no plain numbers
  for (std::size_t axis = sizes.size(); axis-- > 1;) {
    stride *= sizes[axis];
    if (!stride.is_constant()) least = session_.dims().hint(stride);
    if (least) break;
  }
  const bool read = least && std::ranges::any_of(*strides, [&](const ir::Arg& arg) {
                      const Int* number = arg.get<Int>();
                      return number != nullptr && number->constant().value_or(0) >= *least;
                    });
  for (std::size_t axis = 1; read && axis < sizes.size(); ++axis) session_.pin(sizes[axis]);
}

void Recorder::count_from_front(std::vector<ir::NamedArg>& args) {
  const std::vector<Int>* sizes = nullptr;
  std::int64_t axis = 0;
  const auto is_negative = [&](const Int& number) {
    return session_.settle(shape::Bool::compare(shape::Compare::lt, number, 0));
  };
  for (ir::NamedArg& named : args) {
    if (const auto* self = named.arg.get<ir::ValueId>())
      sizes = &session_.graph().value(*self).tensor().shape;
    const auto* number = named.arg.get<Int>();
    if (number == nullptr || sizes == nullptr || sizes->empty()) continue;
    if (named.name == "dim") {
      axis = number->constant().value_or(0);
      if (axis < 0) axis += static_cast<std::int64_t>(sizes->size());
    } else if (!number->is_constant() && is_negative(*number)) {
      const Int counted = *number + sizes->at(static_cast<std::size_t>(axis));
      named.arg = {is_negative(counted) ? Int(0) : counted};
    }
  }
}

void Recorder::read_number() {
  const at::Tensor& self = tensor_operand(0);
  const at::Tensor real = session_.real_of(self);
  if (real.is_meta()) {
    session_.fail_without_weights("the model reads a number that depends on its weights");
  }
  const at::Scalar now = real.item();
  ir::ScalarType type;
  c10::IValue result;
  if (now.isBoolean()) {
    const shape::Bool symbol = session_.dims().fresh_bool(now.toBool());
    type.symbol = symbol;
    result = to_symbool(session_.shared_from_this(), symbol);
  } else if (now.isIntegral(false)) {
    const Int symbol = session_.dims().fresh("u", now.toLong(), shape::Range{});
    type.symbol = symbol;
    result = to_symint(session_.shared_from_this(), symbol);
  } else if (now.isFloatingPoint()) {
    const shape::Real symbol = session_.dims().fresh_real(now.toDouble());
    type.symbol = symbol;
    result = to_symfloat(session_.shared_from_this(), symbol);
  } else {
    session_.fail(Code::data_dependent, "the model reads a complex number out of a tensor",
                  {"keep it in a tensor"});
  }
  session_.graph().add_node(std::string(ops::names::kItem), {{"self", {session_.value_of(self)}}},
                            {type}, session_.place());
  push_results({result});
}

void Recorder::read_truth() {
  const at::Tensor& self = tensor_operand(0);
  const at::Tensor real = session_.real_of(self);
  if (real.is_meta()) {
    session_.fail_without_weights("the model branches on a value that depends on its weights");
  }
  const bool truth = real.is_nonzero();
  session_.graph().assumptions.push_back({session_.value_of(self), truth, session_.place()});
  push_results({truth});
}

void Recorder::equal() {
  const at::Tensor& a = tensor_operand(0);
  const at::Tensor& b = tensor_operand(1);
  if (a.sym_sizes() != b.sym_sizes()) return push_results({false});
  const Resumed resumed;
  push_results({at::all(at::eq(a, b)).is_nonzero()});
}

void Recorder::all_close() {
  const Resumed resumed;
  const at::Tensor close =
      at::isclose(tensor_operand(0), tensor_operand(1), operands_[2].toDouble(),
                  operands_[3].toDouble(), operands_[4].toBool());
  push_results({at::all(close).is_nonzero()});
}

/// A plain number that an operator made of data is that of the example, and no node stands for it.
void Recorder::refuse_unseen_numbers(const std::vector<c10::IValue>& results) {
  const bool number = std::ranges::any_of(results, [](const c10::IValue& result) {
    return result.isBool() || result.isInt() || result.isDouble() || result.isComplexDouble();
  });
  if (!number) return;
  session_.fail(Code::data_dependent,
                "the model calls " + dotted_name(op_.operator_name()) +
                    ", which gives a plain number that depends on data",
                {"keep it in a tensor", "call .item() on a tensor that holds it"});
}

void Recorder::copy() {
  const at::Tensor& self = tensor_operand(0);
  const at::Tensor& source = tensor_operand(1);
  if (as_traced(self) == nullptr && !session_.knows(self)) session_.promote(self);
  const ir::TensorType was = session_.graph().value(session_.value_of(self)).tensor();
  ir::ValueId value = session_.value_of(source);
  const std::vector<c10::IValue> real = real_operands(session_, facts_, operands_);
  session_.before_write(real[0].toTensor());
  run_for_real(real);
  ir::TensorType type = session_.graph().value(value).tensor();
  if (type.dtype != was.dtype) {
    type.dtype = was.dtype;
    value =
        session_.add_node(ops::names::kToDtype, {{"self", {value}}, {"dtype", {was.dtype}}}, type);
  }
  bool same_shape = type.shape.size() == was.shape.size();
  for (std::size_t i = 0; same_shape && i < was.shape.size(); ++i) {
    // Equal in this run: then equal it has to be, or the source would have been of size one.
    const bool equal_now =
        session_.dims().hint(type.shape[i]) == session_.dims().hint(was.shape[i]);
    same_shape = equal_now && session_.settle(shape::Bool::compare(shape::Compare::eq,
                                                                   type.shape[i], was.shape[i]));
  }
  if (!same_shape) {
    ir::ArgList sizes;
    for (const Int& size : was.shape) sizes.push_back({size});
    value = session_.add_node(ops::names::kExpand,
                              {{"self", {value}}, {"size", {std::move(sizes)}}}, was);
  }
  session_.write(self, value);
  if (real[0].toTensor().is_meta()) session_.trace_of(self)->memory->lost_data = true;
  push_results({self});
}

void Recorder::size() {
  const at::Tensor& self = tensor_operand(0);
  push_results({self.sym_size(operands_[1].toInt())});
}

void Recorder::reshape_self() {
  TracedTensor* self = as_traced(tensor_operand(0));
  if (self == nullptr) refuse();
  if (ops::handling_of(facts_.name) == Handling::identity) return push_results({operands_[0]});
  torch::jit::Stack stack(operands_.begin(), operands_.end());
  const Resumed resumed;
  find_operator(facts_.name).callBoxed(stack);  // recorded as the functional view
  TracedTensor* viewed = as_traced(stack.front().toTensor());
  self->become(viewed->real(), viewed->trace());
  push_results({operands_[0]});
}

void Recorder::refuse() {
  session_.fail(Code::capture_failed,
                "the model calls " + dotted_name(op_.operator_name()) +
                    ", which changes the memory behind a tensor",
                {"make a new tensor instead"});
}

}  // namespace modelport::capture
