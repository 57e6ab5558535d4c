#include "capture/op_facts.h"

#include <ATen/core/jit_type.h>
#include <ATen/core/type_factory.h>

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace modelport::capture {

namespace {

ArgKind kind_of(const c10::Argument& argument) {
  const c10::Type* type = argument.real_type().get();
  if (const auto* optional = type->castRaw<c10::OptionalType>())
    type = optional->getElementType().get();
  if (argument.name() == "pin_memory") return ArgKind::pin_memory;
  switch (type->kind()) {
    case c10::TypeKind::ScalarTypeType:
      return ArgKind::dtype;
    case c10::TypeKind::LayoutType:
      return ArgKind::layout;
    case c10::TypeKind::MemoryFormatType:
      return ArgKind::memory_format;
    case c10::TypeKind::DeviceObjType:
      return ArgKind::device;
    case c10::TypeKind::GeneratorType:
      return ArgKind::generator;
    default:
      return ArgKind::plain;
  }
}

bool is_tensor_type(const c10::Argument& argument) {
  const c10::Type* type = argument.real_type().get();
  if (const auto* optional = type->castRaw<c10::OptionalType>())
    type = optional->getElementType().get();
  return type->kind() == c10::TypeKind::TensorType;
}

/// Whether the operator takes the same as `op` takes besides what it only writes to.
bool takes_the_same(const c10::OperatorName& name, const c10::OperatorHandle& op,
                    const OpFacts& facts) {
  const auto handle = c10::Dispatcher::singleton().findSchema(name);
  if (!handle) return false;
  const auto& theirs = handle->schema().arguments();
  const auto& ours = op.schema().arguments();
  std::size_t at = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (facts.args[i].out_only) continue;
    if (at >= theirs.size() || *theirs[at].type() != *ours[i].type()) return false;
    ++at;
  }
  return std::all_of(theirs.begin() + static_cast<std::ptrdiff_t>(at), theirs.end(),
                     [](const c10::Argument& a) { return !a.is_out() && a.default_value(); });
}

/// The functional operator with the same arguments but those that are only written to. Most have
/// the overload's name, too; "add.out" is the out= form of "add.Tensor", and "pow_.Scalar" that of
/// "pow.Tensor_Scalar", while "pow.Scalar" is another operator.
std::string functional_name(const c10::OperatorHandle& op, const OpFacts& facts) {
  const std::string own = dotted_name(op.operator_name());
  if (const std::string_view other = ops::functional_name(own); !other.empty())
    return std::string(other);
  c10::OperatorName wanted = op.operator_name();
  const bool in_place = wanted.name.ends_with("_") && !wanted.name.ends_with("__");
  if (in_place) {
    wanted.name.pop_back();
  } else if (const auto ior = wanted.name.find("::__i");
             ior != std::string::npos && wanted.name.ends_with("__")) {
    wanted.name.erase(ior + 4, 1);  // __ior__ -> __or__
  }
  const bool is_itself = wanted == op.operator_name();
  if (!is_itself && takes_the_same(wanted, op, facts)) return dotted_name(wanted);
  for (const auto& other : c10::Dispatcher::singleton().getAllOpNames()) {
    if (other.name != wanted.name || other == op.operator_name()) continue;
    if (takes_the_same(other, op, facts)) return dotted_name(other);
  }
  return dotted_name(wanted);
}

/// `dropout_(self, ...)` is recorded as `dropout(input, ...)`: by position, under the functional
/// operator's names.
void use_names_of(const std::string& functional, OpFacts& facts) {
  const std::size_t first = functional.find('.');
  const std::size_t second = functional.find('.', first + 1);
  const std::string base = functional.substr(first + 1, second - first - 1);
  const std::string overload = second == std::string::npos ? "" : functional.substr(second + 1);
  const auto handle = c10::Dispatcher::singleton().findSchema(
      {functional.substr(0, first) + "::" + base, overload});
  if (!handle) return;
  const auto& theirs = handle->schema().arguments();
  for (std::size_t i = 0; i < facts.args.size() && i < theirs.size(); ++i) {
    if (!facts.args[i].out_only) facts.args[i].name = theirs[i].name();
  }
}

OpFacts read_facts(const c10::OperatorHandle& op) {
  OpFacts facts;
  for (const c10::Argument& argument : op.schema().arguments()) {
    const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    facts.args.push_back({.name = argument.name(),
                          .kind = kind_of(argument),
                          .is_tensor = is_tensor_type(argument),
                          .written = written,
                          .out_only = written && argument.is_out()});
    if (written) facts.written.push_back(facts.args.size() - 1);
  }
  facts.writes = !facts.written.empty();
  facts.random = op.hasTag(at::Tag::nondeterministic_seeded);
  const std::string own = dotted_name(op.operator_name());
  facts.name = facts.writes ? functional_name(op, facts) : own;
  facts.row = ops::find_op(facts.name);
  if (facts.writes) use_names_of(facts.name, facts);
  facts.handling = ops::handling_of(own);
  if (facts.handling != Handling::record) return facts;
  const bool composite = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  if (facts.row == nullptr && composite) facts.handling = Handling::decompose;
  return facts;
}

}  // namespace

std::string dotted_name(const c10::OperatorName& name) {
  const auto colons = name.name.find("::");
  std::string text = name.name.substr(0, colons) + "." + name.name.substr(colons + 2);
  return name.overload_name.empty() ? text : text + "." + name.overload_name;
}

c10::OperatorHandle find_operator(std::string_view dotted) {
  const auto first = dotted.find('.');
  const auto second = dotted.find('.', first + 1);
  const std::string space(dotted.substr(0, first));
  const std::string base(
      dotted.substr(first + 1, second == std::string_view::npos ? second : second - first - 1));
  const std::string overload(second == std::string_view::npos ? "" : dotted.substr(second + 1));
  const auto handle =
      first == std::string_view::npos
          ? std::nullopt
          : c10::Dispatcher::singleton().findSchema({space + "::" + base, overload});
  if (!handle) {
    throw ExportError(Diagnostic{.code = Code::unknown_op,
                                 .what = "torch has no operator " + std::string(dotted),
                                 .ways_out = {"import the library that defines it"}});
  }
  return *handle;
}

const OpFacts& facts_of(const c10::OperatorHandle& op) {
  // Facts never change; a shared lock keeps captures of several threads apart. A library that is
  // unloaded takes its schemas with it, and one of another library may come to lie in their place.
  struct Known {
    c10::OperatorName name;
    std::unique_ptr<OpFacts> facts;
  };
  static std::shared_mutex mutex;
  static std::unordered_map<const void*, Known> known;
  static std::vector<std::unique_ptr<OpFacts>> outdated;  // somebody may still hold them
  const void* key = &op.schema();
  {
    const std::shared_lock lock(mutex);
    const auto found = known.find(key);
    if (found != known.end() && found->second.name == op.operator_name())
      return *found->second.facts;
  }
  auto facts = std::make_unique<OpFacts>(read_facts(op));
  const std::unique_lock lock(mutex);
  Known& entry = known.try_emplace(key, Known{op.operator_name(), nullptr}).first->second;
  if (entry.facts != nullptr && !(entry.name == op.operator_name())) {
    outdated.push_back(std::move(entry.facts));
    entry.name = op.operator_name();
  }
  if (entry.facts == nullptr) entry.facts = std::move(facts);
  return *entry.facts;
}

}  // namespace modelport::capture
