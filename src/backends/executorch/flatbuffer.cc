#include "backends/executorch/flatbuffer.h"

#include <executorch_schema/flat_tensor_generated.h>
#include <executorch_schema/program_generated.h>

#include <cstring>
#include <numeric>

#include "backends/executorch/layout.h"
#include "base/error.h"

namespace modelport::executorch {
namespace {

namespace fb = executorch_flatbuffer;
namespace ft = flat_tensor_flatbuffer;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

template <class... F>
struct Match : F... {
  using F::operator()...;
};

std::vector<std::int32_t> sizes_of(const std::vector<std::int64_t>& sizes) {
  return {sizes.begin(), sizes.end()};
}

/// Row-major: the axes in their own order.
std::vector<std::uint8_t> dim_order(std::size_t rank) {
  std::vector<std::uint8_t> order(rank);
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  return order;
}

class ProgramBuilder {
 public:
  ProgramBuilder(const ProgramData& data, const ProgramLayout& layout)
      : data_(data), layout_(layout) {}

  FlatBufferBuilder& build(const std::vector<Method>& methods) {
    std::vector<Offset<fb::ExecutionPlan>> plans;
    for (const Method& method : methods) plans.push_back(plan(method));
    const auto plan_list = builder_.CreateVector(plans);
    const auto no_buffers = builder_.CreateVector(std::vector<Offset<fb::Buffer>>{});
    const auto no_inline =
        builder_.CreateVector(std::vector<Offset<fb::BackendDelegateInlineData>>{});
    std::vector<Offset<fb::DataSegment>> segments;
    for (const Segment& segment : layout_.segments)
      segments.push_back(fb::CreateDataSegment(builder_, segment.offset, segment.bytes));
    const auto segment_list = builder_.CreateVector(segments);
    const auto constants = subsegments(0, layout_.constants);
    std::vector<Offset<fb::SubsegmentOffsets>> initial;
    if (!layout_.initial_values.empty())
      initial.push_back(subsegments(layout_.initial_segment, layout_.initial_values));
    const auto initial_list = builder_.CreateVector(initial);
    std::vector<Offset<fb::NamedData>> named;
    for (std::size_t i = 0; i < data_.named_data().size(); ++i)
      named.push_back(fb::CreateNamedData(builder_, text(data_.named_data()[i].key),
                                          static_cast<std::uint32_t>(layout_.first_named + i)));
    const auto named_list = builder_.CreateVector(named);
    const auto program = fb::CreateProgram(builder_, 0, plan_list, no_buffers, no_inline,
                                           segment_list, constants, initial_list, named_list);
    fb::FinishProgramBuffer(builder_, program);
    return builder_;
  }

 private:
  Offset<flatbuffers::String> text(const std::string& text) { return builder_.CreateString(text); }

  /// Slot 0 means that there are no bytes.
  Offset<fb::SubsegmentOffsets> subsegments(std::size_t segment,
                                            const std::vector<std::uint64_t>& offsets) {
    std::vector<std::uint64_t> slots{0};
    slots.insert(slots.end(), offsets.begin(), offsets.end());
    return fb::CreateSubsegmentOffsets(builder_, static_cast<std::uint32_t>(segment),
                                       builder_.CreateVector(slots));
  }

  Offset<fb::AllocationDetails> allocation(std::uint32_t memory, std::uint64_t offset) {
    return fb::CreateAllocationDetails(builder_, memory, static_cast<std::uint32_t>(offset),
                                       static_cast<std::uint32_t>(offset >> 32U));
  }

  Offset<fb::Tensor> tensor(const Method& method, const Tensor& tensor) {
    const Storage& storage = method.storages[tensor.storage];
    std::uint32_t slot = 0;
    Offset<fb::AllocationDetails> place;
    Offset<fb::ExtraTensorInfo> extra;
    switch (storage.kind) {
      case Storage::Kind::activation:
        if (!tensor.is_moved) place = allocation(kActivations, storage.offset);
        break;
      case Storage::Kind::state: {
        const StateEntry& state = data_.states()[storage.entry];
        place = allocation(kState, state.offset);
        slot = static_cast<std::uint32_t>(state.initial + 1);
        break;
      }
      case Storage::Kind::constant:
        slot = static_cast<std::uint32_t>(storage.entry + 1);
        if (layout_.constants.empty())
          extra = fb::CreateExtraTensorInfo(builder_, 0, text(data_.constants()[storage.entry].key),
                                            fb::TensorDataLocation_EXTERNAL);
        break;
    }
    const auto sizes = builder_.CreateVector(sizes_of(tensor.sizes));
    const auto order = builder_.CreateVector(dim_order(tensor.sizes.size()));
    return fb::CreateTensor(builder_, static_cast<fb::ScalarType>(scalar_type(tensor.dtype)), 0,
                            sizes, order, false, slot, place, 0,
                            tensor.is_dynamic() ? fb::TensorShapeDynamism_DYNAMIC_BOUND
                                                : fb::TensorShapeDynamism_STATIC,
                            extra);
  }

  Offset<fb::EValue> value(const Method& method, const MethodValue& value) {
    const auto made = [&](fb::KernelTypes kind, auto offset) {
      return fb::CreateEValue(builder_, kind, offset.Union());
    };
    const auto ints = [&](const std::vector<Index>& items) { return builder_.CreateVector(items); };
    return std::visit(
        Match{[&](const Null&) { return made(fb::KernelTypes_Null, fb::CreateNull(builder_)); },
              [&](std::int64_t x) { return made(fb::KernelTypes_Int, fb::CreateInt(builder_, x)); },
              [&](bool x) { return made(fb::KernelTypes_Bool, fb::CreateBool(builder_, x)); },
              [&](double x) { return made(fb::KernelTypes_Double, fb::CreateDouble(builder_, x)); },
              [&](const std::string& x) {
                return made(fb::KernelTypes_String, fb::CreateString(builder_, text(x)));
              },
              [&](const Tensor& x) { return made(fb::KernelTypes_Tensor, tensor(method, x)); },
              [&](const IntList& x) {
                const std::vector<std::int64_t> items(x.items.begin(), x.items.end());
                return made(fb::KernelTypes_IntList,
                            fb::CreateIntList(builder_, builder_.CreateVector(items)));
              },
              [&](const DoubleList& x) {
                return made(fb::KernelTypes_DoubleList,
                            fb::CreateDoubleList(builder_, builder_.CreateVector(x.items)));
              },
              [&](const BoolList& x) {
                const std::vector<std::uint8_t> items(x.items.begin(), x.items.end());
                return made(fb::KernelTypes_BoolList,
                            fb::CreateBoolList(builder_, builder_.CreateVector(items)));
              },
              [&](const TensorList& x) {
                return made(fb::KernelTypes_TensorList,
                            fb::CreateTensorList(builder_, ints(x.items)));
              },
              [&](const OptionalTensorList& x) {
                return made(fb::KernelTypes_OptionalTensorList,
                            fb::CreateOptionalTensorList(builder_, ints(x.items)));
              }},
        value);
  }

  Offset<fb::Instruction> instruction(const Instruction& instruction) {
    const auto args = builder_.CreateVector(instruction.args);
    const auto callee = static_cast<std::int32_t>(instruction.callee);
    if (instruction.kind == Instruction::Kind::delegate)
      return fb::CreateInstruction(builder_, fb::InstructionArguments_DelegateCall,
                                   fb::CreateDelegateCall(builder_, callee, args).Union());
    return fb::CreateInstruction(builder_, fb::InstructionArguments_KernelCall,
                                 fb::CreateKernelCall(builder_, callee, args).Union());
  }

  Offset<fb::Operator> kernel(const std::string& name) {
    const std::size_t dot = name.find('.');
    return fb::CreateOperator(builder_, text(name.substr(0, dot)),
                              text(dot == std::string::npos ? "" : name.substr(dot + 1)));
  }

  Offset<fb::BackendDelegate> delegate(std::size_t number) {
    const Delegate& delegate = data_.delegates()[number];
    std::vector<Offset<fb::CompileSpec>> specs;
    for (const auto& [key, bytes] : delegate.compile_specs) {
      const std::vector<std::uint8_t> data(bytes.begin(), bytes.end());
      specs.push_back(fb::CreateCompileSpec(builder_, text(key), builder_.CreateVector(data)));
    }
    const auto where = fb::CreateBackendDelegateDataReference(
        builder_, fb::DataLocation_SEGMENT,
        static_cast<std::uint32_t>(layout_.first_delegate + number));
    return fb::CreateBackendDelegate(builder_, text(delegate.backend), where,
                                     builder_.CreateVector(specs));
  }

  /// Nothing for constant methods, which need no memory.
  std::vector<std::int64_t> arenas(const Method& method) const {
    std::vector<std::int64_t> bytes{0};
    if (method.storages.empty()) return bytes;
    bytes.push_back(static_cast<std::int64_t>(method.arena_bytes));
    for (const Storage& storage : method.storages) {
      if (storage.kind != Storage::Kind::state) continue;
      bytes.push_back(static_cast<std::int64_t>(data_.state_bytes()));
      break;
    }
    return bytes;
  }

  Offset<fb::ExecutionPlan> plan(const Method& method) {
    std::vector<Offset<fb::EValue>> values;
    for (const MethodValue& one : method.values) values.push_back(value(method, one));
    std::vector<Offset<fb::Instruction>> instructions;
    for (const Instruction& one : method.instructions) instructions.push_back(instruction(one));
    std::vector<Offset<fb::Operator>> operators;
    for (const std::string& one : method.operators) operators.push_back(kernel(one));
    std::vector<Offset<fb::BackendDelegate>> delegates;
    for (const std::size_t one : method.delegates) delegates.push_back(delegate(one));
    const std::vector<Index> none;
    const auto chain =
        fb::CreateChain(builder_, builder_.CreateVector(none), builder_.CreateVector(none),
                        builder_.CreateVector(instructions));
    const auto meta = fb::CreateContainerMetadata(builder_, text(""), text(""));
    return fb::CreateExecutionPlan(
        builder_, text(method.name), meta, builder_.CreateVector(values),
        builder_.CreateVector(method.inputs), builder_.CreateVector(method.outputs),
        builder_.CreateVector(std::vector<Offset<fb::Chain>>{chain}),
        builder_.CreateVector(operators), builder_.CreateVector(delegates),
        builder_.CreateVector(arenas(method)));
  }

  const ProgramData& data_;
  const ProgramLayout& layout_;
  FlatBufferBuilder builder_;
};

void put(std::vector<std::byte>& bytes, std::size_t at, std::uint64_t number, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) bytes[at + i] = static_cast<std::byte>(number >> (8 * i));
}

/// The header goes between the identifier and the rest. Only the offset of the root counts from the
/// first byte, so that it alone changes.
std::vector<std::byte> with_room_for_header(const FlatBufferBuilder& builder,
                                            std::uint32_t header) {
  const auto* begin = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  std::vector<std::byte> bytes(begin, begin + 8);
  bytes.resize(8 + header);
  bytes.insert(bytes.end(), begin + 8, begin + builder.GetSize());
  std::uint32_t root = 0;
  std::memcpy(&root, begin, sizeof root);
  put(bytes, 0, root + header, 4);
  return bytes;
}

std::uint64_t end_of(const std::vector<Segment>& segments) {
  std::uint64_t end = 0;
  for (const Segment& segment : segments) end = std::max(end, segment.offset + segment.bytes);
  return end;
}

}  // namespace

std::vector<std::byte> program_tables(const std::vector<Method>& methods, const ProgramData& data,
                                      const ProgramLayout& layout) {
  ProgramBuilder builder(data, layout);
  std::vector<std::byte> bytes = with_room_for_header(builder.build(methods), kHeaderBytes);
  const std::uint64_t base = aligned(bytes.size(), kSegmentAlignment);
  const std::uint64_t end = end_of(layout.segments);
  std::memcpy(bytes.data() + 8, "eh00", 4);
  put(bytes, 12, kHeaderBytes, 4);
  put(bytes, 16, bytes.size(), 8);
  put(bytes, 24, end == 0 ? 0 : base, 8);
  put(bytes, 32, end, 8);
  if (end != 0) bytes.resize(base);
  // The runtime reads this much before it looks at anything.
  if (bytes.size() < 64) bytes.resize(64);
  return bytes;
}

std::vector<std::byte> data_tables(const std::vector<ConstantEntry>& constants,
                                   const std::vector<Segment>& segments) {
  FlatBufferBuilder builder;
  std::vector<Offset<ft::DataSegment>> places;
  for (const Segment& segment : segments)
    places.push_back(ft::CreateDataSegment(builder, segment.offset, segment.bytes));
  std::vector<Offset<ft::NamedData>> named;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const ConstantEntry& constant = constants[i];
    const auto sizes = builder.CreateVector(sizes_of(constant.shape));
    const auto order = builder.CreateVector(dim_order(constant.shape.size()));
    const auto layout = ft::CreateTensorLayout(
        builder, static_cast<fb::ScalarType>(scalar_type(constant.dtype)), sizes, order);
    named.push_back(ft::CreateNamedData(builder, builder.CreateString(constant.key),
                                        static_cast<std::uint32_t>(i), layout));
  }
  const auto place_list = builder.CreateVector(places);
  const auto named_list = builder.CreateVector(named);
  ft::FinishFlatTensorBuffer(builder, ft::CreateFlatTensor(builder, 0, place_list, named_list));
  std::vector<std::byte> bytes = with_room_for_header(builder, kDataHeaderBytes);
  const std::uint64_t begin = 8 + kDataHeaderBytes;
  const std::uint64_t base = aligned(bytes.size(), kSegmentAlignment);
  std::memcpy(bytes.data() + 8, "FH01", 4);
  put(bytes, 12, kDataHeaderBytes, 4);
  put(bytes, 16, begin, 8);
  put(bytes, 24, bytes.size() - begin, 8);
  put(bytes, 32, base, 8);
  put(bytes, 40, end_of(segments), 8);
  bytes.resize(base);
  return bytes;
}

}  // namespace modelport::executorch
