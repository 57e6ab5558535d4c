#include "capture/operands.h"

#include <ATen/ops/scalar_tensor.h>

#include <cmath>

#include "capture/memory_format.h"
#include "capture/torch_dtype.h"

namespace modelport::capture {

using shape::Bool;
using shape::Int;
using shape::Real;

namespace {

/// The value that torch's argument parser gives to the tensor that stands for a symbolic number.
bool may_stand_for_symbol(const at::Tensor& t) {
  if (!t.unsafeGetTensorImpl()->is_wrapped_number() || t.dim() != 0) return false;
  switch (t.scalar_type()) {
    case at::kLong:
      return *static_cast<const std::int64_t*>(t.const_data_ptr()) == 7777777;
    case at::kDouble:
      return std::isnan(*static_cast<const double*>(t.const_data_ptr()));
    case at::kBool:
      return true;
    default:
      return false;
  }
}

std::optional<Number> number_behind(Session& session, const at::Tensor& t) {
  if (!t.defined() || as_traced(t) != nullptr || !may_stand_for_symbol(t)) return std::nullopt;
  return session.surroundings().symbolic_number(t);
}

bool tensor_concerns(Session& session, const at::Tensor& t) {
  if (!t.defined()) return false;
  if (as_traced(t) != nullptr) return true;
  return session.knows(t) || number_behind(session, t).has_value();
}

bool concerns(Session& session, const c10::IValue& v) {
  if (v.isTensor()) return tensor_concerns(session, v.toTensor());
  if (v.isSymInt()) return v.toSymInt().is_heap_allocated();
  if (v.isSymFloat()) return v.toSymFloat().is_symbolic();
  if (v.isSymBool()) return v.toSymBool().is_heap_allocated();
  if (v.isList() && !v.isIntList() && !v.isDoubleList() && !v.isBoolList()) {
    for (const c10::IValue& item : v.toListRef()) {
      if (concerns(session, item)) return true;
    }
  }
  return false;
}

c10::IValue real_number(Session& session, const Number& number) {
  if (const Int* i = std::get_if<Int>(&number)) return session.dims().hint(*i);
  if (const Real* r = std::get_if<Real>(&number)) return session.dims().hint(*r);
  return session.dims().hint(std::get<Bool>(number));
}

at::Tensor real_tensor(Session& session, const at::Tensor& t) {
  if (!t.defined()) return t;
  if (const auto number = number_behind(session, t)) {
    const c10::IValue value = real_number(session, *number);
    at::Tensor wrapped = value.isInt()      ? at::scalar_tensor(value.toInt(), at::kLong)
                         : value.isDouble() ? at::scalar_tensor(value.toDouble(), at::kDouble)
                                            : at::scalar_tensor(value.toBool(), at::kBool);
    wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
    return wrapped;
  }
  return session.real_of(t);
}

c10::IValue real_value(Session& session, const c10::IValue& v) {
  if (v.isTensor()) return real_tensor(session, v.toTensor());
  if (v.isSymInt()) return real_number(session, number_of(v.toSymInt()));
  if (v.isSymFloat()) return real_number(session, number_of(v.toSymFloat()));
  if (v.isSymBool()) return real_number(session, number_of(v.toSymBool()));
  if (v.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : v.toTensorVector()) list.push_back(real_tensor(session, t));
    return list;
  }
  if (v.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& t : v.toOptionalTensorVector()) {
      list.push_back(t ? std::optional<at::Tensor>(real_tensor(session, *t)) : t);
    }
    return list;
  }
  if (v.isList() && !v.toListRef().empty() && concerns(session, v)) {
    c10::List<std::int64_t> list;
    for (const c10::IValue& item : v.toListRef()) list.push_back(real_value(session, item).toInt());
    return list;
  }
  if (v.isSymIntList()) {
    c10::List<std::int64_t> list;
    for (const c10::IValue& item : v.toListRef()) list.push_back(item.toInt());
    return list;
  }
  return v;
}

bool on_meta(const c10::IValue& v) {
  if (v.isTensor()) return v.toTensor().defined() && v.toTensor().is_meta();
  if (v.isTensorList() || v.isOptionalTensorList()) {
    for (const c10::IValue& item : v.toListRef()) {
      if (on_meta(item)) return true;
    }
  }
  return false;
}

at::Tensor to_meta(const at::Tensor& t) {
  return t.defined() && !t.is_meta() ? t.to(at::kMeta) : t;
}

c10::IValue moved_to_meta(const ArgFacts& facts, const c10::IValue& v) {
  if (facts.kind == ArgKind::device && !v.isNone()) return c10::Device(at::kMeta);
  if (v.isTensor()) {
    const at::Tensor& t = v.toTensor();
    if (t.defined() && t.unsafeGetTensorImpl()->is_wrapped_number()) return v;
    return to_meta(t);
  }
  if (v.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : v.toTensorVector()) list.push_back(to_meta(t));
    return list;
  }
  if (v.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& t : v.toOptionalTensorVector()) {
      list.push_back(t ? std::optional<at::Tensor>(to_meta(*t)) : t);
    }
    return list;
  }
  return v;
}

ir::Arg number_arg(Session& session, const Number& number) {
  if (const Int* i = std::get_if<Int>(&number)) return {session.dims().simplify(*i)};
  if (const Real* r = std::get_if<Real>(&number)) {
    if (const auto plain = r->constant()) return {*plain};
    return {session.dims().simplify(*r)};
  }
  const Bool& b = std::get<Bool>(number);
  if (const auto plain = b.constant()) return {*plain};
  return {session.dims().simplify(b)};
}

ir::Arg tensor_arg(Session& session, const at::Tensor& t) {
  if (!t.defined()) return {ir::None{}};
  if (const auto number = number_behind(session, t)) return number_arg(session, *number);
  if (as_traced(t) == nullptr && t.dim() == 0 && t.unsafeGetTensorImpl()->is_wrapped_number()) {
    switch (t.scalar_type()) {
      case at::kLong:
        return {Int(*static_cast<const std::int64_t*>(t.const_data_ptr()))};
      case at::kDouble:
        return {*static_cast<const double*>(t.const_data_ptr())};
      case at::kBool:
        return {*static_cast<const bool*>(t.const_data_ptr())};
      default:
        break;
    }
  }
  return {session.value_of(t)};
}

ir::Arg node_arg(Session& session, const c10::IValue& v) {
  if (v.isNone()) return {ir::None{}};
  if (v.isTensor()) return tensor_arg(session, v.toTensor());
  if (v.isBool()) return {v.toBool()};
  if (v.isInt()) return {Int(v.toInt())};
  if (v.isDouble()) return {v.toDouble()};
  if (v.isSymInt()) return number_arg(session, number_of(v.toSymInt()));
  if (v.isSymFloat()) return number_arg(session, number_of(v.toSymFloat()));
  if (v.isSymBool()) return number_arg(session, number_of(v.toSymBool()));
  if (v.isString()) return {v.toStringRef()};
  if (v.isDevice()) return {v.toDevice().str()};
  if (v.isList() || v.isTuple()) {
    ir::ArgList list;
    if (v.isTuple()) {
      for (const c10::IValue& item : v.toTupleRef().elements())
        list.push_back(node_arg(session, item));
    } else {
      for (const c10::IValue& item : v.toList()) list.push_back(node_arg(session, item));
    }
    return {std::move(list)};
  }
  session.fail(Code::capture_failed,
               "an operator argument of type " + v.tagKind() + " cannot be written to a graph",
               {"move the operator out of the model"});
}

bool is_default(const c10::Argument& argument, const c10::IValue& v) {
  // torch's reader of archives wants every argument that has no default, None too.
  if (v.isNone()) return argument.default_value().has_value();
  const auto& fallback = argument.default_value();
  if (!fallback || fallback->isNone()) return false;
  if (v.isInt() && fallback->isInt()) return v.toInt() == fallback->toInt();
  if (v.isBool() && fallback->isBool()) return v.toBool() == fallback->toBool();
  if (v.isDouble() && fallback->isDouble()) return v.toDouble() == fallback->toDouble();
  if (v.isString() && fallback->isString()) return v.toStringRef() == fallback->toStringRef();
  if (v.isIntList() && fallback->isIntList()) return v.toIntVector() == fallback->toIntVector();
  return false;
}

}  // namespace

bool concerns_graph(Session& session, c10::ArrayRef<c10::IValue> operands) {
  for (const c10::IValue& v : operands) {
    if (concerns(session, v)) return true;
  }
  return false;
}

bool has_functorch_wrapper(c10::ArrayRef<c10::IValue> operands) {
  static const c10::DispatchKeySet kWrappers({c10::DispatchKey::FuncTorchBatched,
                                              c10::DispatchKey::FuncTorchGradWrapper,
                                              c10::DispatchKey::Functionalize});
  for (const c10::IValue& v : operands) {
    if (v.isTensor() && v.toTensor().defined() && v.toTensor().key_set().has_any(kWrappers))
      return true;
    if (v.isTensorList()) {
      for (const c10::IValue& t : v.toListRef()) {
        if (t.isTensor() && t.toTensor().key_set().has_any(kWrappers)) return true;
      }
    }
  }
  return false;
}

std::vector<c10::IValue> real_operands(Session& session, const OpFacts& facts,
                                       c10::ArrayRef<c10::IValue> operands) {
  std::vector<c10::IValue> real;
  real.reserve(operands.size());
  bool meta = false;
  for (const c10::IValue& v : operands) {
    real.push_back(real_value(session, v));
    meta = meta || on_meta(real.back());
  }
  if (meta) {
    for (std::size_t i = 0; i < real.size(); ++i) real[i] = moved_to_meta(facts.args[i], real[i]);
  }
  return real;
}

std::vector<ir::NamedArg> node_arguments(Session& session, const OpFacts& facts,
                                         const c10::FunctionSchema& schema,
                                         c10::ArrayRef<c10::IValue> operands) {
  std::vector<ir::NamedArg> args;
  args.reserve(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const ArgFacts& argument = facts.args[i];
    const c10::IValue& v = operands[i];
    if (argument.out_only || is_default(schema.arguments()[i], v)) continue;
    if (v.isNone()) {
      args.push_back({argument.name, {ir::None{}}});
      continue;
    }
    switch (argument.kind) {
      case ArgKind::layout:
      case ArgKind::generator:
      case ArgKind::pin_memory:
        continue;
      case ArgKind::device:
        // A graph runs where its inputs are: only operators that are about a device name one.
        if (schema.arguments()[i].default_value()) continue;
        args.push_back({argument.name, {std::string("cpu")}});
        continue;
      case ArgKind::dtype:
        args.push_back({argument.name, {from_torch(static_cast<c10::ScalarType>(v.toInt()))}});
        continue;
      case ArgKind::memory_format:
        args.push_back(
            {argument.name, {std::string(name(static_cast<at::MemoryFormat>(v.toInt())))}});
        continue;
      case ArgKind::plain:
        break;
    }
    args.push_back({argument.name, node_arg(session, v)});
  }
  return args;
}

}  // namespace modelport::capture
