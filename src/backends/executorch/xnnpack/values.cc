#include "backends/executorch/xnnpack/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backends/executorch/literal.h"

namespace modelport::executorch::xnnpack {
namespace {

constexpr std::uint32_t kInput = 1;
constexpr std::uint32_t kOutput = 2;

const ir::Node* producer(const ir::Graph& graph, ir::ValueId id) {
  const ir::Value& value = graph.value(id);
  return value.origin == ir::Origin::node ? &graph.node(value.producer) : nullptr;
}

std::vector<std::size_t> in_order(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

}  // namespace

std::uint32_t Values::add(Tensor tensor) {
  tensors_.push_back(std::move(tensor));
  return static_cast<std::uint32_t>(tensors_.size() - 1);
}

std::vector<std::uint32_t> Values::dims(ir::ValueId value) {
  const ir::Node* node = producer(run_.graph, value);
  const auto sizes = bounds_.sizes(run_.graph.value(value).tensor().shape,
                                   node == nullptr ? ir::PlaceId{} : node->place);
  return {sizes.begin(), sizes.end()};
}

std::uint32_t Values::id(ir::ValueId value) {
  const auto known = ids_.find(value.index);
  if (known != ids_.end()) return known->second;
  const ir::Value& found = run_.graph.value(value);
  const ir::Node* node = producer(run_.graph, value);
  const bool is_inside =
      node != nullptr && found.producer.index >= run_.begin && found.producer.index < run_.end;
  std::uint32_t made_id = 0;
  if (is_inside) {
    made_id = made(value);
  } else if ((found.origin == ir::Origin::weight && run_.is_constant(value)) ||
             (node != nullptr && node->op == "et.constant")) {
    made_id = constant(value);
  } else {
    made_id = given(value);
  }
  return ids_[value.index] = made_id;
}

std::uint32_t Values::given(ir::ValueId value) {
  inputs_.push_back(value);
  return add({.dims = dims(value), .flags = kInput, .external = value});
}

std::uint32_t Values::made(ir::ValueId value) {
  Tensor tensor{.dims = dims(value)};
  if (run_.graph.value(value).tensor().dtype == Dtype::i8) {
    tensor.datatype = fb::XNNDatatype_xnn_datatype_qdint8;
    tensor.quant_type = fb::XNNQuantParams_PerTokenDynamicQuant;
    tensor.quant = fb::CreatePerTokenDynamicQuant(builder_, 1).Union();
  }
  if (run_.is_needed_later(value)) {
    outputs_.push_back(value);
    tensor.flags = kOutput;
    tensor.external = value;
  }
  return add(std::move(tensor));
}

/// A number without axes is a row of one: it is the same beside anything else.
std::uint32_t Values::constant(ir::ValueId value) {
  Tensor tensor{.dims = dims(value)};
  if (tensor.dims.empty()) tensor.dims.push_back(1);
  if (const ir::Node* node = producer(run_.graph, value)) {
    tensor.constant = named(data_.named(literal_bytes(run_.graph, *node)));
  } else {
    const ProgramData::Source source = run_.source(value);
    tensor.constant = named(data_.named(source, in_order(source.shape.size())));
  }
  return add(std::move(tensor));
}

std::uint32_t Values::moved(ir::ValueId filter, const std::vector<std::size_t>& order,
                            const std::vector<std::uint32_t>& dims) {
  const ir::Node* node = producer(run_.graph, filter);
  if (node == nullptr)
    return add({.dims = dims, .constant = named(data_.named(run_.source(filter), order))});
  const auto [folded_filter, bias] = data_.named(folded(*node), order);
  ids_[node->results[1].index] =
      add({.dims = this->dims(node->results[1]), .constant = named(bias)});
  return add({.dims = dims, .constant = named(folded_filter)});
}

ProgramData::Folded Values::folded(const ir::Node& node) const {
  const auto source = [&](std::string_view name) -> std::optional<ProgramData::Source> {
    const ir::Arg* arg = node.find(name);
    const ir::ValueId* id = arg == nullptr ? nullptr : arg->get<ir::ValueId>();
    return id == nullptr ? std::nullopt : std::optional(run_.source(*id));
  };
  if (node.op != "et.fold_norm") throw InternalError("a filter is computed when it runs");
  return {.filter = source("weight").value(),
          .bias = source("bias"),
          .scale = source("scale"),
          .shift = source("shift"),
          .mean = source("mean").value(),
          .variance = source("variance").value(),
          .eps = *node.find("eps")->get<double>()};
}

std::uint32_t Values::literal(const std::vector<float>& numbers, std::vector<std::uint32_t> dims) {
  std::string bytes(numbers.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  const std::string key = fmt::format("{} {}", fmt::join(dims, ","), bytes);
  const auto known = others_.find(key);
  if (known != others_.end()) return known->second;
  return others_[key] =
             add({.dims = std::move(dims), .constant = named(data_.named(std::move(bytes)))});
}

std::uint32_t Values::quantized(ir::ValueId codes) {
  const auto known = ids_.find(codes.index);
  if (known != ids_.end()) return known->second;
  const ir::Node* node = producer(run_.graph, codes);
  if (node == nullptr || node->op != "et.quantize")
    throw InternalError("a filter with scales is no result of et.quantize");
  const weights::Scheme scheme = scheme_of(*node);
  const ProgramData::Source source = run_.source(*node->find("weight")->get<ir::ValueId>());
  const ProgramData::Quantized made = data_.named(source, scheme);
  Tensor tensor{.dims = {source.shape.begin(), source.shape.end()}, .constant = named(made.codes)};
  const std::uint32_t scales = named(made.scales);
  const auto count = static_cast<std::uint32_t>(made.form.rows * made.form.groups_per_row);
  const auto none = builder_.CreateVector(std::vector<float>{});
  if (scheme.layout == weights::QuantizedLayout::xnnpack_qbint4) {
    tensor.datatype = fb::XNNDatatype_xnn_datatype_qbint4;
    tensor.quant_type = fb::XNNQuantParams_PerChannelGroupQuant;
    tensor.quant = fb::CreatePerChannelGroupQuant(
                       builder_, none, 0, static_cast<std::int32_t>(made.form.group), scales, count)
                       .Union();
  } else {
    tensor.datatype = scheme.bits == 4 ? fb::XNNDatatype_xnn_datatype_qcint4
                                       : fb::XNNDatatype_xnn_datatype_qcint8;
    tensor.quant_type = fb::XNNQuantParams_PerChannelQuant;
    tensor.quant = fb::CreatePerChannelQuant(builder_, none, 0, scales, count).Union();
  }
  return ids_[codes.index] = add(std::move(tensor));
}

/// Entry 0 says that a value is no constant. The payload is gone when nodes run, so that constants
/// are data of the program, which stays.
std::uint32_t Values::named(std::size_t number) {
  const NamedBlob& blob = data_.named_data()[number];
  constants_.push_back(fb::CreateConstantDataOffset(builder_, UINT64_MAX, blob.blob.bytes,
                                                    builder_.CreateString(blob.key)));
  return static_cast<std::uint32_t>(constants_.size());
}

/// The call has the inputs first, then the outputs.
Values::Finished Values::finish() {
  Finished finished;
  finished.constants.push_back(fb::CreateConstantDataOffset(builder_, 0, 0));
  finished.constants.insert(finished.constants.end(), constants_.begin(), constants_.end());
  for (std::uint32_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    std::uint32_t external = kNone;
    if (tensor.flags == kInput) {
      external =
          static_cast<std::uint32_t>(std::ranges::find(inputs_, tensor.external) - inputs_.begin());
      finished.inputs.push_back(i);
    } else if (tensor.flags == kOutput) {
      external = static_cast<std::uint32_t>(std::ranges::find(outputs_, tensor.external) -
                                            outputs_.begin() +
                                            static_cast<std::ptrdiff_t>(inputs_.size()));
      finished.outputs.push_back(i);
    }
    const auto dims = builder_.CreateVector(tensor.dims);
    const auto value = fb::CreateXNNTensorValue(builder_, tensor.datatype,
                                                static_cast<std::uint32_t>(tensor.dims.size()),
                                                dims, tensor.constant, external, tensor.flags, i);
    finished.values.push_back(
        tensor.quant_type == fb::XNNQuantParams_NONE
            ? fb::CreateXValue(builder_, fb::XValueUnion_XNNTensorValue, value.Union())
            : fb::CreateXValue(builder_, fb::XValueUnion_XNNQuantizedTensorValue,
                               fb::CreateXNNQuantizedTensorValue(builder_, value, tensor.quant_type,
                                                                 tensor.quant)
                                   .Union()));
  }
  return finished;
}

}  // namespace modelport::executorch::xnnpack
