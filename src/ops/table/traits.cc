// Traits of operators by name: of rows, and of operators that cannot have a row because they change
// memory or metadata in place.
#include <algorithm>
#include <array>

#include "ops/table/op.h"
#include "ops/table/schema.h"

namespace modelport::ops {
namespace {

struct Special {
  std::string_view name;
  Handling handling;
};
constexpr std::array kWithoutRow{
    Special{"aten.copy_", Handling::copy},
    Special{"aten.detach_", Handling::reshape_self},
    Special{"aten.lift", Handling::identity},
    Special{"aten.resize_", Handling::refuse},
    Special{"aten.set_", Handling::refuse},
    Special{"aten.set_.source_Tensor", Handling::refuse},
    Special{"aten.size.int", Handling::size},
    Special{"aten.squeeze_", Handling::reshape_self},
    Special{"aten.squeeze_.dim", Handling::reshape_self},
    Special{"aten.sym_size.int", Handling::size},
    Special{"aten.t_", Handling::reshape_self},
    Special{"aten.transpose_", Handling::reshape_self},
    Special{"aten.unsqueeze_", Handling::reshape_self},
};

struct Renamed {
  std::string_view in_place;
  std::string_view functional;
};
constexpr std::array kRenamed{
    Renamed{"aten.bernoulli_.float", "aten.bernoulli.p"},
    Renamed{"aten.normal_", "aten.normal_functional"},
    Renamed{"aten.squeeze_", "aten.squeeze"},
    Renamed{"aten.transpose_", "aten.transpose.int"},
    Renamed{"aten.unsqueeze_", "aten.unsqueeze"},
    Renamed{"aten.zero_", "aten.zeros_like"},
};

bool shares_memory(const OpDef& op) {
  return op.may_give_back || schema_of(op).viewed() != nullptr;
}

}  // namespace

std::string_view base_name(std::string_view name) {
  const std::size_t begin = name.find('.') + 1;
  return name.substr(begin, name.find('.', begin) - begin);
}

bool writes_in_place(std::string_view name) {
  const std::string_view base = base_name(name);
  return base.size() > 1 && base.ends_with('_') && !base.ends_with("__");
}

bool may_share_memory(std::string_view name) {
  if (const OpDef* op = find_op(name)) return shares_memory(*op);
  const std::string_view base = base_name(name);
  return std::ranges::any_of(all_ops(), [&](const OpDef* other) {
    return base_name(other->name) == base && shares_memory(*other);
  });
}

bool takes_shape(std::string_view name) {
  const OpDef* op = find_op(name);
  if (op == nullptr || op->put_back.how != PutBack::How::reshape) return false;
  const std::vector<Parameter>& parameters = schema_of(*op).parameters;
  return parameters.size() > 1 && (parameters[1].name == "size" || parameters[1].name == "shape");
}

Handling handling_of(std::string_view name) {
  if (const OpDef* op = find_op(name)) return op->handling;
  const auto* found = std::ranges::find(kWithoutRow, name, &Special::name);
  return found == kWithoutRow.end() ? Handling::record : found->handling;
}

std::string_view functional_name(std::string_view name) {
  const auto* found = std::ranges::find(kRenamed, name, &Renamed::in_place);
  return found == kRenamed.end() ? std::string_view() : found->functional;
}

}  // namespace modelport::ops
