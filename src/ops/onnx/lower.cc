// The call that is being lowered: its operands, its results, what it refuses.
#include "ops/onnx/lower.h"

#include <fmt/format.h>

#include <utility>

#include "ops/onnx/kernels.h"
#include "ops/rules/rules.h"

namespace modelport::ops {

ir::Arg int_list(const std::vector<std::int64_t>& numbers) {
  ir::ArgList list;
  for (const std::int64_t number : numbers) list.push_back({Int(number)});
  return {std::move(list)};
}

Lower::Lower(ir::Graph& graph, shape::Dims& dims, Settings settings)
    : graph_(graph), dims_(dims), settings_(settings), numbers_(*this) {}

Values Lower::lower(const OpDef& op, std::span<const ir::NamedArg> args,
                    std::span<const ir::Type> results, ir::PlaceId place) {
  const ir::Place& where = graph_.place(place);
  Call call(op, args,
            {.graph = graph_,
             .dims = dims_,
             .place = {where.where, where.module_path},
             .result_count = results.size()});
  Call* const outer = std::exchange(call_, &call);
  const auto outer_results = std::exchange(results_, results);
  const ir::PlaceId outer_place = std::exchange(place_, place);
  struct Restore {
    Lower& self;
    Call* call;
    std::span<const ir::Type> results;
    ir::PlaceId place;
    ~Restore() {
      self.call_ = call;
      self.results_ = results;
      self.place_ = place;
    }
  } restore{*this, outer, outer_results, outer_place};

  if (!op.onnx.reason.empty()) refuse(op.onnx.reason);
  if (!op.onnx.filled()) refuse("no rule yet");
  Values values = op.onnx.lower != nullptr ? op.onnx.lower(*this) : direct_call(op.onnx.op);
  if (values.size() != results.size())
    throw InternalError(fmt::format("the ONNX cell of {} gives {} values for {} results", op.name,
                                    values.size(), results.size()));
  return values;
}

Values Lower::lower_as(std::string_view name, std::vector<ir::NamedArg> args) {
  const OpDef* op = find_op(name);
  if (op == nullptr) throw InternalError(fmt::format("there is no row for {}", name));
  const ir::Place& where = graph_.place(place_);
  const std::vector<ir::Type> types =
      infer(*op, args, {.graph = graph_, .dims = dims_, .place = {where.where, where.module_path}});
  return lower(*op, args, types, place_);
}

Values Lower::direct_call(std::string_view onnx_op) {
  const Dtype own = result().dtype;
  if (is_complex(own)) refuse("no rule for complex numbers");
  const Dtype wide = kernel_dtype(onnx_op, own);
  Values inputs;
  for (const Parameter& parameter : schema_of(call_->op()).parameters) {
    if (parameter.type != "Tensor") continue;
    inputs.push_back(in(parameter.name, wide));
  }
  return {cast(emit(onnx_op, inputs, {}, {wide, result().shape}), own)};
}

Value Lower::in(std::string_view name) {
  const ir::Arg& arg = call_->arg(name);
  if (arg.is_none()) return kNoValue;
  if (const Value* value = arg.get<Value>()) return *value;
  return number_of(arg);
}

Value Lower::in(std::string_view name, Dtype dtype) {
  const ir::Arg& arg = call_->arg(name);
  if (arg.is_none()) return kNoValue;
  if (const Value* value = arg.get<Value>()) return cast(*value, dtype);
  return number_of(arg, dtype);
}

Values Lower::ins(std::string_view name) {
  Values values;
  if (const ir::ArgList* list = call_->arg(name).get<ir::ArgList>()) {
    for (const ir::Arg& item : *list) {
      const Value* value = item.get<Value>();
      values.push_back(value == nullptr ? kNoValue : *value);
    }
  }
  return values;
}

Value Lower::number_of(const ir::Arg& arg, std::optional<Dtype> dtype) {
  if (const bool* truth = arg.get<bool>())
    return number(std::int64_t{*truth}, dtype.value_or(Dtype::boolean));
  if (const double* real = arg.get<double>()) return number(*real, dtype.value_or(Dtype::f64));
  if (const Int* x = arg.get<Int>()) {
    const auto constant = x->constant();
    if (constant) return number(*constant, dtype.value_or(Dtype::i64));
    return cast(scalar(*x), dtype.value_or(Dtype::i64));
  }
  if (const auto* real = arg.get<shape::Real>())
    return cast(squeeze(numbers_.real(*real), {0}), dtype.value_or(Dtype::f64));
  if (const auto* truth = arg.get<shape::Bool>())
    return cast(squeeze(numbers_.truth(*truth), {0}), dtype.value_or(Dtype::boolean));
  if (const Value* value = arg.get<Value>()) return dtype ? cast(*value, *dtype) : *value;
  throw InternalError(fmt::format("{}: an argument that is no number", call_->op().name));
}

double Lower::real_number(std::string_view name) {
  const ir::Arg& arg = call_->arg(name);
  if (const bool* truth = arg.get<bool>()) return *truth ? 1 : 0;
  if (const double* real = arg.get<double>()) return *real;
  if (const Int* x = arg.get<Int>(); x != nullptr && x->constant())
    return static_cast<double>(*x->constant());
  refuse(fmt::format("{} must be a number that is known before the program runs", name));
}

const ir::TensorType& Lower::result(std::size_t index) const {
  return std::get<ir::TensorType>(results_[index]);
}

std::int64_t Lower::axis(std::string_view name, std::int64_t rank) {
  return axis_of(*call_, name, rank);
}

void Lower::refuse(std::string_view why) const {
  const ir::Place& place = graph_.place(place_);
  throw ExportError({.code = Code::unsupported_op,
                     .what = fmt::format("onnx has no rule for {}: {}", call_->op().name, why),
                     .where = place.where,
                     .module_path = place.module_path,
                     .ways_out = {"export to pt2", "add a cell: docs/adding-an-operator.md"}});
}

bool Lower::surely_at_least(const Int& size, std::int64_t least) const {
  return dims_.decide(shape::Bool::compare(shape::Compare::ge, size, least)).value_or(false);
}

}  // namespace modelport::ops
