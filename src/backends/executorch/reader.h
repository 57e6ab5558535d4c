// What a .pte file says of itself: methods, operators, delegates, memory, constants. Every index
// and offset in it is checked; the bytes of weights are not touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace modelport::executorch {

struct TensorSummary {
  std::string dtype;                // "f32"
  std::vector<std::int64_t> sizes;  // the upper bounds, where the sizes are dynamic
  bool is_dynamic = false;
};

/// An input, an output, or what a constant method gives.
using ItemSummary =
    std::variant<std::monostate, std::int64_t, bool, double, std::string, TensorSummary>;

struct DelegateSummary {
  std::string backend;
  std::uint64_t bytes = 0;
  std::optional<std::size_t> nodes;  // of payloads that we can read: XNNPACK's
};

struct ProgramMethod {
  std::string name;
  std::vector<ItemSummary> inputs;
  std::vector<ItemSummary> outputs;
  std::map<std::string, std::size_t> operators;  // "aten::add.out", and how often it is called
  std::vector<DelegateSummary> delegates;
  std::size_t instructions = 0;
  std::vector<std::int64_t> arenas;  // in bytes
  /// Gives what is in the file, without computing anything.
  bool is_constant() const { return inputs.empty() && instructions == 0; }
};

struct NamedSummary {
  std::string key;
  std::uint64_t bytes = 0;
};

struct ProgramSummary {
  std::uint32_t version = 0;
  std::vector<ProgramMethod> methods;
  std::size_t constants = 0;
  std::uint64_t constant_bytes = 0;
  std::uint64_t initial_bytes = 0;  // of state
  std::uint64_t delegate_bytes = 0;
  std::vector<NamedSummary> named_data;
  std::vector<std::string> external;  // keys of tensors that are in a file beside it
};

/// Throws ExportError (bad_file) for bytes that are no program; `name` is for the message.
ProgramSummary summarize_program(std::span<const std::byte> bytes, const std::string& name);

}  // namespace modelport::executorch
