// The values of a payload while it is made.
#pragma once

#include <xnnpack_schema/schema_generated.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/executorch/xnnpack/payload.h"

namespace modelport::executorch::xnnpack {

namespace fb = fb_xnnpack;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

inline constexpr std::uint32_t kNone = UINT32_MAX;

class Values {
 public:
  Values(FlatBufferBuilder& builder, const Run& run, Bounds& bounds, ProgramData& data)
      : builder_(builder), run_(run), bounds_(bounds), data_(data) {}

  /// What nodes call the value. One that is there already keeps its number.
  std::uint32_t id(ir::ValueId value);
  /// The filter of a convolution with its axes in another order, and with this shape then.
  std::uint32_t moved(ir::ValueId filter, const std::vector<std::size_t>& order,
                      const std::vector<std::uint32_t>& dims);
  /// The codes of an et.quantize, with their scales.
  std::uint32_t quantized(ir::ValueId codes);
  std::uint32_t literal(const std::vector<float>& numbers, std::vector<std::uint32_t> dims);
  std::vector<std::uint32_t> dims(ir::ValueId value);

  struct Finished {
    std::vector<Offset<fb::XValue>> values;
    std::vector<Offset<fb::ConstantDataOffset>> constants;
    std::vector<std::uint32_t> inputs, outputs;
  };
  const std::vector<ir::ValueId>& inputs() const { return inputs_; }
  const std::vector<ir::ValueId>& outputs() const { return outputs_; }
  Finished finish();

 private:
  struct Tensor {
    fb::XNNDatatype datatype = fb::XNNDatatype_xnn_datatype_fp32;
    std::vector<std::uint32_t> dims;
    std::uint32_t constant = 0;
    std::uint32_t flags = 0;
    ir::ValueId external = {};
    fb::XNNQuantParams quant_type = fb::XNNQuantParams_NONE;
    Offset<void> quant = 0;
  };
  std::uint32_t add(Tensor tensor);
  std::uint32_t constant(ir::ValueId weight);
  ProgramData::Folded folded(const ir::Node& node) const;
  std::uint32_t given(ir::ValueId value);
  std::uint32_t made(ir::ValueId value);
  std::uint32_t named(std::size_t number);

  FlatBufferBuilder& builder_;
  const Run& run_;
  Bounds& bounds_;
  ProgramData& data_;
  std::vector<Tensor> tensors_;
  std::vector<ir::ValueId> inputs_, outputs_;
  std::vector<Offset<fb::ConstantDataOffset>> constants_;
  std::unordered_map<std::uint32_t, std::uint32_t> ids_;
  std::unordered_map<std::string, std::uint32_t> others_;  // constants that are no value
};

}  // namespace modelport::executorch::xnnpack
