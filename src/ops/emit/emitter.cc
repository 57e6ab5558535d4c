// The call that is being lowered: its operands, its results, what it refuses, what it calls.
#include "ops/emit/emitter.h"

#include <fmt/format.h>

#include <utility>

#include "ops/rules/rules.h"

namespace modelport::ops::emit {

ir::Arg int_list(const std::vector<std::int64_t>& numbers) {
  ir::ArgList list;
  for (const std::int64_t number : numbers) list.push_back({Int(number)});
  return {std::move(list)};
}

Values Emitter::lower(const OpDef& op, std::span<const ir::NamedArg> args,
                      std::span<const ir::Type> results, ir::PlaceId place) {
  const ir::Place& where = graph_.place(place);
  Call call(op, args,
            {.graph = graph_,
             .dims = dims_,
             .place = {where.where, where.module_path},
             .result_count = results.size()});
  struct Restore {
    Emitter& self;
    Call* call;
    std::span<const ir::Type> results;
    ir::PlaceId place;
    ~Restore() {
      self.call_ = call;
      self.results_ = results;
      self.place_ = place;
    }
  } restore{*this, std::exchange(call_, &call), std::exchange(results_, results),
            std::exchange(place_, place)};

  Values values = lower_row(op);
  if (values.size() != results.size())
    throw InternalError(fmt::format("the {} cell of {} gives {} values for {} results",
                                    target_.name, op.name, values.size(), results.size()));
  return values;
}

Values Emitter::calls(std::string_view name, std::initializer_list<Operand> operands,
                      std::initializer_list<NamedOperand> named) {
  const OpDef* op = find_op(name);
  if (op == nullptr) throw InternalError(fmt::format("there is no row for {}", name));
  const std::vector<Parameter>& parameters = schema_of(*op).parameters;
  if (operands.size() > parameters.size())
    throw InternalError(
        fmt::format("{} takes {} operands, not {}", name, parameters.size(), operands.size()));
  std::vector<ir::NamedArg> args;
  for (const Operand& operand : operands)
    args.push_back({parameters[args.size()].name, operand.arg});
  for (const NamedOperand& one : named) {
    if (schema_of(*op).find(one.name) == nullptr)
      throw InternalError(fmt::format("{} takes no {}", name, one.name));
    args.push_back({std::string(one.name), one.operand.arg});
  }
  return calls(*op, args);
}

Values Emitter::calls(const OpDef& op, const std::vector<ir::NamedArg>& args) {
  const ir::Place& where = graph_.place(place_);
  const std::vector<ir::Type> types =
      infer(op, args, {.graph = graph_, .dims = dims_, .place = {where.where, where.module_path}});
  return lower(op, args, types, place_);
}

Value Emitter::as_pairs(Value x) {
  if (const auto known = pairs_of_.find(x.index); known != pairs_of_.end()) return known->second;
  Shape pairs = shape(x);
  pairs.push_back(2);
  const ir::TensorType made{to_real(dtype(x)), std::move(pairs)};
  return graph_.node(graph_.add_node(std::string(kAsPairs), {{"self", {x}}}, {made}, place_))
      .results[0];
}

Value Emitter::from_pairs(Value pairs) {
  const ir::TensorType made{to_complex(dtype(pairs)),
                            Shape(shape(pairs).begin(), shape(pairs).end() - 1)};
  const Value x =
      graph_.node(graph_.add_node(std::string(kFromPairs), {{"self", {pairs}}}, {made}, place_))
          .results[0];
  pairs_of_.emplace(x.index, pairs);
  return x;
}

Values Emitter::transform(const Values&, const Int&, bool) {
  throw InternalError(fmt::format("{} has no Fourier transform of its own", target_.name));
}

Value Emitter::tensor(std::string_view name) const {
  const Value* value = call_->arg(name).get<Value>();
  return value == nullptr ? kNoValue : *value;
}

Values Emitter::ins(std::string_view name) {
  Values values;
  if (const ir::ArgList* list = call_->arg(name).get<ir::ArgList>()) {
    for (const ir::Arg& item : *list) {
      const Value* value = item.get<Value>();
      values.push_back(value == nullptr ? kNoValue : *value);
    }
  }
  return values;
}

double Emitter::real_number(std::string_view name) {
  const ir::Arg& arg = call_->arg(name);
  if (const bool* truth = arg.get<bool>()) return *truth ? 1 : 0;
  if (const double* real = arg.get<double>()) return *real;
  if (const Int* x = arg.get<Int>(); x != nullptr && x->constant())
    return static_cast<double>(*x->constant());
  refuse(fmt::format("{} must be a number that is known before the program runs", name));
}

const ir::TensorType& Emitter::result(std::size_t index) const {
  return std::get<ir::TensorType>(results_[index]);
}

std::int64_t Emitter::axis(std::string_view name, std::int64_t rank) {
  return axis_of(*call_, name, rank);
}

void Emitter::refuse(std::string_view why) const {
  const ir::Place& place = graph_.place(place_);
  throw ExportError(
      {.code = Code::unsupported_op,
       .what = fmt::format("{} has no rule for {}: {}", target_.name, call_->op().name, why),
       .where = place.where,
       .module_path = place.module_path,
       .ways_out = target_.ways_out});
}

bool Emitter::surely_at_least(const Int& size, std::int64_t least) const {
  return dims_.decide(shape::Bool::compare(shape::Compare::ge, size, least)).value_or(false);
}

Value Emitter::constant(Dtype dtype, const std::vector<std::int64_t>& shape,
                        const std::vector<double>& values) {
  ir::ArgList list;
  std::string key = fmt::format("{}[{}]", name(dtype), fmt::join(shape, ","));
  for (const double value : values) {
    key += fmt::format(" {}", value);
    list.push_back({value});
  }
  if (const auto known = constants_.find(key); known != constants_.end()) return known->second;
  const Value result =
      add_constant({dtype, Shape(shape.begin(), shape.end())},
                   {{"dtype", {dtype}}, {"shape", int_list(shape)}, {"values", {std::move(list)}}});
  return constants_.emplace(std::move(key), result).first->second;
}

Value Emitter::constant_ints(Dtype dtype, const std::vector<std::int64_t>& shape,
                             const std::vector<std::int64_t>& values) {
  std::string key =
      fmt::format("{}[{}]: {}", name(dtype), fmt::join(shape, ","), fmt::join(values, " "));
  if (const auto known = constants_.find(key); known != constants_.end()) return known->second;
  const Value result =
      add_constant({dtype, Shape(shape.begin(), shape.end())},
                   {{"dtype", {dtype}}, {"shape", int_list(shape)}, {"values", int_list(values)}});
  return constants_.emplace(std::move(key), result).first->second;
}

Value Emitter::ints(const std::vector<std::int64_t>& numbers) {
  return constant_ints(Dtype::i64, {static_cast<std::int64_t>(numbers.size())}, numbers);
}

std::int64_t wrapped(std::int64_t value, Dtype dtype) {
  switch (dtype) {
    case Dtype::boolean:
      return value != 0 ? 1 : 0;
    case Dtype::u8:
      return static_cast<std::uint8_t>(value);
    case Dtype::i8:
      return static_cast<std::int8_t>(value);
    case Dtype::i16:
      return static_cast<std::int16_t>(value);
    case Dtype::i32:
      return static_cast<std::int32_t>(value);
    case Dtype::u16:
      return static_cast<std::uint16_t>(value);
    case Dtype::u32:
      return static_cast<std::uint32_t>(value);
    default:
      return value;
  }
}

Value Emitter::number(double value, Dtype dtype) {
  if (is_complex(dtype)) return from_pairs(constant(to_real(dtype), {2}, {value, 0}));
  if (is_floating(dtype)) return constant(dtype, {}, {value});
  if (dtype == Dtype::boolean) return constant_ints(dtype, {}, {value != 0 ? 1 : 0});
  return constant_ints(dtype, {}, {wrapped(static_cast<std::int64_t>(value), dtype)});
}

Value Emitter::number(std::int64_t value, Dtype dtype) {
  if (is_floating(dtype) || is_complex(dtype)) return number(static_cast<double>(value), dtype);
  return constant_ints(dtype, {}, {wrapped(value, dtype)});
}

}  // namespace modelport::ops::emit
