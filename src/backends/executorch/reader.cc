#include "backends/executorch/reader.h"

#include <executorch_schema/program_generated.h>
#include <fmt/format.h>

#include <cstring>
#include <set>

#include "backends/executorch/emit.h"
#include "backends/executorch/file_parts.h"
#include "backends/executorch/xnnpack/summary.h"

namespace modelport::executorch {
namespace {

namespace fb = executorch_flatbuffer;
using Ints = flatbuffers::Vector<std::int32_t>;

constexpr std::size_t kLongestRank = 16;
constexpr std::size_t kLongestName = 512;

std::string dtype_name(fb::ScalarType type) {
  for (const DtypeFacts& row : kDtypes) {
    if (!is_complex(row.dtype) && scalar_type(row.dtype) == static_cast<std::int64_t>(type))
      return std::string(row.name);
  }
  return fmt::format("type {}", static_cast<int>(type));
}

std::size_t bytes_each(fb::ScalarType type) {
  for (const DtypeFacts& row : kDtypes) {
    if (!is_complex(row.dtype) && scalar_type(row.dtype) == static_cast<std::int64_t>(type))
      return row.bytes;
  }
  return 1;
}

template <class T>
std::size_t count(const flatbuffers::Vector<T>* items) {
  return items == nullptr ? 0 : items->size();
}

class Reader {
 public:
  Reader(const fb::Program& program, const FileParts& parts, ReadingBudget& budget)
      : program_(program), parts_(parts), budget_(budget) {}

  ProgramSummary run() {
    summary_.version = program_.version();
    segments();
    constants();
    for (std::size_t i = 0; i < count(program_.execution_plan()); ++i)
      method(*program_.execution_plan()->Get(static_cast<flatbuffers::uoffset_t>(i)));
    if (summary_.methods.empty()) refuse("it has no methods");
    summary_.external.assign(external_.begin(), external_.end());
    return std::move(summary_);
  }

 private:
  [[noreturn]] void refuse(std::string why) const { refuse_file(budget_.name(), std::move(why)); }
  void require(bool holds, std::string_view what) const {
    if (!holds) refuse(std::string(what));
  }

  /// The verifier looks at where a vector begins, not at its items, which may be wider.
  template <class T>
  void require_aligned(const flatbuffers::Vector<T>* items) const {
    if (count(items) == 0) return;  // writers do not align what is not there
    require(reinterpret_cast<std::uintptr_t>(items->Data()) % sizeof(T) == 0,
            "a list of numbers in it is not aligned");
  }

  std::string text(const flatbuffers::String* text, std::size_t longest = kLongestName) {
    if (text == nullptr) return "";
    require(text->size() <= longest, "a name in it is too long");
    budget_.spend(text->size());
    return text->str();
  }

  std::uint64_t segment(std::uint64_t index) const {
    require(index < count(program_.segments()), "it names a segment that it does not have");
    return program_.segments()->Get(static_cast<flatbuffers::uoffset_t>(index))->size();
  }

  void segments() {
    budget_.spend(count(program_.segments()));
    for (std::size_t i = 0; i < count(program_.segments()); ++i) {
      const auto* one = program_.segments()->Get(static_cast<flatbuffers::uoffset_t>(i));
      require(one->offset() <= parts_.segment_bytes &&
                  one->size() <= parts_.segment_bytes - one->offset(),
              "a segment lies outside of the file");
    }
    for (std::size_t i = 0; i < count(program_.named_data()); ++i) {
      const auto* one = program_.named_data()->Get(static_cast<flatbuffers::uoffset_t>(i));
      summary_.named_data.push_back({text(one->key()), segment(one->segment_index())});
    }
  }

  void constants() {
    if (const auto* table = program_.constant_segment(); table != nullptr && table->offsets()) {
      // Slot 0 stands for no constant.
      summary_.constants = table->offsets()->size() == 0 ? 0 : table->offsets()->size() - 1;
      if (summary_.constants != 0 || count(program_.segments()) != 0)
        summary_.constant_bytes = segment(table->segment_index());
    }
    for (std::size_t i = 0; i < count(program_.mutable_data_segments()); ++i)
      summary_.initial_bytes += segment(program_.mutable_data_segments()
                                            ->Get(static_cast<flatbuffers::uoffset_t>(i))
                                            ->segment_index());
  }

  void slot(const fb::SubsegmentOffsets* table, std::uint64_t slot, std::uint64_t bytes) const {
    require(table != nullptr && slot < count(table->offsets()),
            "a tensor names data that is not there");
    require_aligned(table->offsets());
    const std::uint64_t size = segment(table->segment_index());
    const std::uint64_t offset = table->offsets()->Get(static_cast<flatbuffers::uoffset_t>(slot));
    require(offset <= size && bytes <= size - offset,
            "a tensor's data lies outside of its segment");
  }

  std::uint64_t bytes_of(const fb::Tensor& tensor) const {
    std::uint64_t bytes = bytes_each(tensor.scalar_type());
    for (const std::int32_t size : *tensor.sizes())
      require(size >= 0 && !__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes),
              "a tensor has sizes that no memory holds");
    return bytes;
  }

  TensorSummary tensor(const fb::Tensor& tensor) {
    require(tensor.sizes() != nullptr && tensor.sizes()->size() <= kLongestRank &&
                count(tensor.dim_order()) == tensor.sizes()->size(),
            "a tensor has no sizes, or too many axes");
    budget_.spend(tensor.sizes()->size());
    return {.dtype = dtype_name(tensor.scalar_type()),
            .sizes = {tensor.sizes()->begin(), tensor.sizes()->end()},
            .is_dynamic = tensor.shape_dynamism() != fb::TensorShapeDynamism_STATIC};
  }

  /// Where the tensor's bytes are has to be in the file, or in the arenas.
  void check_tensor(const fb::ExecutionPlan& plan, const fb::Tensor& one) {
    tensor(one);
    const std::uint64_t bytes = bytes_of(one);
    const fb::ExtraTensorInfo* extra = one.extra_tensor_info();
    const bool is_external =
        extra != nullptr && extra->location() == fb::TensorDataLocation_EXTERNAL;
    if (is_external) external_.insert(text(extra->fully_qualified_name()));
    const fb::AllocationDetails* place = one.allocation_info();
    if (place == nullptr) {
      if (!is_external && one.data_buffer_idx() > 0)
        slot(program_.constant_segment(), one.data_buffer_idx(), bytes);
      return;
    }
    const auto* arenas = plan.non_const_buffer_sizes();
    require(place->memory_id() > 0 && place->memory_id() < count(arenas),
            "a tensor lies in an arena that is not there");
    const auto size = arenas->Get(place->memory_id());
    const std::uint64_t offset =
        place->memory_offset_low() | (std::uint64_t{place->memory_offset_high()} << 32U);
    require(size >= 0 && offset <= static_cast<std::uint64_t>(size) &&
                bytes <= static_cast<std::uint64_t>(size) - offset,
            "a tensor lies outside of its arena");
    if (is_external || one.data_buffer_idx() == 0) return;
    const std::uint64_t table = extra == nullptr ? 0 : extra->mutable_data_segments_idx();
    require(table < count(program_.mutable_data_segments()), "state names data that is not there");
    slot(program_.mutable_data_segments()->Get(static_cast<flatbuffers::uoffset_t>(table)),
         one.data_buffer_idx(), bytes);
  }

  const fb::EValue& value(const fb::ExecutionPlan& plan, std::int64_t index) const {
    require(index >= 0 && static_cast<std::uint64_t>(index) < count(plan.values()),
            "it names a value that is not there");
    return *plan.values()->Get(static_cast<flatbuffers::uoffset_t>(index));
  }

  template <class T>
  void check_items(const fb::ExecutionPlan& plan, const flatbuffers::Vector<T>* items,
                   fb::KernelTypes kind, bool may_be_none) {
    require(items != nullptr, "a list has no items");
    require_aligned(items);
    budget_.spend(items->size());
    for (const T index : *items) {
      if (may_be_none && index == -1) continue;
      const fb::KernelTypes found = value(plan, index).val_type();
      require(found == kind || (may_be_none && found == fb::KernelTypes_Null),
              "a list names values of another kind");
    }
  }

  void check_value(const fb::ExecutionPlan& plan, const fb::EValue& value) {
    require(value.val() != nullptr, "a value is missing");
    switch (value.val_type()) {
      case fb::KernelTypes_Tensor:
        return check_tensor(plan, *value.val_as_Tensor());
      case fb::KernelTypes_IntList:
        return check_items(plan, value.val_as_IntList()->items(), fb::KernelTypes_Int, false);
      case fb::KernelTypes_TensorList:
        return check_items(plan, value.val_as_TensorList()->items(), fb::KernelTypes_Tensor, false);
      case fb::KernelTypes_OptionalTensorList:
        return check_items(plan, value.val_as_OptionalTensorList()->items(), fb::KernelTypes_Tensor,
                           true);
      case fb::KernelTypes_NONE:
        refuse("a value has no kind");
      default:
        require(value.val_type() <= fb::KernelTypes_MAX,
                "a value is of a kind that is unknown here");
    }
  }

  ItemSummary item(const fb::ExecutionPlan& plan, std::int32_t index) {
    const fb::EValue& one = value(plan, index);
    switch (one.val_type()) {
      case fb::KernelTypes_Int:
        return one.val_as_Int()->int_val();
      case fb::KernelTypes_Bool:
        return one.val_as_Bool()->bool_val();
      case fb::KernelTypes_Double:
        return one.val_as_Double()->double_val();
      case fb::KernelTypes_String:
        return text(one.val_as_String()->string_val(), SIZE_MAX);
      case fb::KernelTypes_Tensor:
        return tensor(*one.val_as_Tensor());
      default:
        return {};
    }
  }

  std::vector<ItemSummary> items(const fb::ExecutionPlan& plan, const Ints* indices) {
    std::vector<ItemSummary> found;
    budget_.spend(count(indices));
    for (std::size_t i = 0; i < count(indices); ++i)
      found.push_back(item(plan, indices->Get(static_cast<flatbuffers::uoffset_t>(i))));
    return found;
  }

  void arguments(const fb::ExecutionPlan& plan, const Ints* args) {
    budget_.spend(count(args));
    for (std::size_t i = 0; i < count(args); ++i)
      value(plan, args->Get(static_cast<flatbuffers::uoffset_t>(i)));
  }

  void instruction(const fb::ExecutionPlan& plan, const fb::Instruction& one, std::size_t length,
                   std::vector<std::size_t>& calls) {
    require(one.instr_args() != nullptr, "an instruction is missing");
    if (const auto* call = one.instr_args_as_KernelCall()) {
      require(call->op_index() >= 0 && static_cast<std::size_t>(call->op_index()) < calls.size(),
              "an instruction names an operator that is not there");
      ++calls[static_cast<std::size_t>(call->op_index())];
      arguments(plan, call->args());
    } else if (const auto* call = one.instr_args_as_DelegateCall()) {
      require(call->delegate_index() >= 0 &&
                  static_cast<std::size_t>(call->delegate_index()) < count(plan.delegates()),
              "an instruction names a delegate that is not there");
      arguments(plan, call->args());
    } else if (const auto* move = one.instr_args_as_MoveCall()) {
      value(plan, move->move_from());
      value(plan, move->move_to());
    } else if (const auto* jump = one.instr_args_as_JumpFalseCall()) {
      value(plan, jump->cond_value_index());
      require(jump->destination_instruction() >= 0 &&
                  static_cast<std::size_t>(jump->destination_instruction()) <= length,
              "a jump leaves the program");
    } else if (const auto* free = one.instr_args_as_FreeCall()) {
      value(plan, free->value_index());
    } else {
      refuse("an instruction is of a kind that is unknown here");
    }
  }

  void instructions(const fb::ExecutionPlan& plan, ProgramMethod& method) {
    std::vector<std::size_t> calls(count(plan.operators()), 0);
    for (std::size_t c = 0; c < count(plan.chains()); ++c) {
      const auto* chain =
          plan.chains()->Get(static_cast<flatbuffers::uoffset_t>(c))->instructions();
      for (std::size_t i = 0; i < count(chain); ++i)
        instruction(plan, *chain->Get(static_cast<flatbuffers::uoffset_t>(i)), count(chain), calls);
      method.instructions += count(chain);
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto* one = plan.operators()->Get(static_cast<flatbuffers::uoffset_t>(i));
      const std::string overload = text(one->overload());
      method.operators[text(one->name()) + (overload.empty() ? "" : "." + overload)] += calls[i];
    }
  }

  std::optional<std::size_t> nodes_of(const fb::BackendDelegateDataReference& where) {
    if (where.location() != fb::DataLocation_SEGMENT) return std::nullopt;
    const auto* segment = program_.segments()->Get(where.index());
    const auto tables =
        xnnpack::tables_of(parts_.segments.subspan(segment->offset(), segment->size()));
    if (!tables) return std::nullopt;
    payloads_.spend(tables->size());
    return xnnpack::count_nodes(*tables);
  }

  void delegates(const fb::ExecutionPlan& plan, ProgramMethod& method) {
    for (std::size_t i = 0; i < count(plan.delegates()); ++i) {
      const auto* one = plan.delegates()->Get(static_cast<flatbuffers::uoffset_t>(i));
      const auto* where = one->processed();
      require(where != nullptr, "a delegate has no payload");
      std::uint64_t bytes = 0;
      if (where->location() == fb::DataLocation_SEGMENT) {
        bytes = segment(where->index());
      } else {
        require(where->index() < count(program_.backend_delegate_data()), "a payload is missing");
        bytes = count(program_.backend_delegate_data()->Get(where->index())->data());
      }
      summary_.delegate_bytes += bytes;
      method.delegates.push_back({text(one->id()), bytes, nodes_of(*where)});
    }
  }

  void method(const fb::ExecutionPlan& plan) {
    ProgramMethod& method = summary_.methods.emplace_back();
    require_aligned(plan.non_const_buffer_sizes());
    method.name = text(plan.name());
    for (std::size_t i = 0; i < count(plan.values()); ++i)
      check_value(plan, *plan.values()->Get(static_cast<flatbuffers::uoffset_t>(i)));
    method.inputs = items(plan, plan.inputs());
    method.outputs = items(plan, plan.outputs());
    instructions(plan, method);
    delegates(plan, method);
    budget_.spend(count(plan.non_const_buffer_sizes()));
    // The first entry stands for no arena.
    for (std::size_t i = 1; i < count(plan.non_const_buffer_sizes()); ++i)
      method.arenas.push_back(
          plan.non_const_buffer_sizes()->Get(static_cast<flatbuffers::uoffset_t>(i)));
  }

  const fb::Program& program_;
  const FileParts& parts_;
  ReadingBudget& budget_;
  ReadingBudget payloads_{budget_.name(), parts_.segments.size()};
  std::set<std::string> external_;
  ProgramSummary summary_;
};

}  // namespace

ProgramSummary summarize_program(std::span<const std::byte> bytes, const std::string& name) {
  const FileParts parts = file_parts(bytes, name);
  // A table takes eight bytes at least, with the offset that leads to it.
  const auto tables = static_cast<flatbuffers::uoffset_t>(parts.tables.size() / 8 + 1);
  const auto* data = reinterpret_cast<const std::uint8_t*>(parts.tables.data());
  flatbuffers::Verifier verifier(data, parts.tables.size(), 32, tables);
  if (!fb::VerifyProgramBuffer(verifier))
    refuse_file(name, "its tables are damaged, or nested deeper than any program");
  ReadingBudget budget(name, parts.tables.size());
  return Reader(*fb::GetProgram(data), parts, budget).run();
}

}  // namespace modelport::executorch
