#include "backends/executorch/xnnpack/payload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/executorch/layout.h"
#include "backends/executorch/xnnpack/values.h"

namespace modelport::executorch::xnnpack {
namespace {

/// The fields of a node, read by name.
class Fields {
 public:
  explicit Fields(const ir::Node& node) : node_(node) {}

  bool has(std::string_view name) const { return node_.find(name) != nullptr; }
  ir::ValueId value(std::string_view name) const { return get<ir::ValueId>(name); }
  float real(std::string_view name) const { return static_cast<float>(get<double>(name)); }
  bool flag(std::string_view name) const { return has(name) && get<bool>(name); }
  std::uint32_t number(std::string_view name) const {
    return static_cast<std::uint32_t>(*get<shape::Int>(name).constant());
  }
  std::vector<std::uint32_t> numbers(std::string_view name) const {
    std::vector<std::uint32_t> all;
    for (const ir::Arg& item : get<ir::ArgList>(name))
      all.push_back(static_cast<std::uint32_t>(*item.get<shape::Int>()->constant()));
    return all;
  }
  std::vector<ir::ValueId> values(std::string_view name) const {
    std::vector<ir::ValueId> all;
    for (const ir::Arg& item : get<ir::ArgList>(name)) all.push_back(*item.get<ir::ValueId>());
    return all;
  }

 private:
  template <class T>
  const T& get(std::string_view name) const {
    const ir::Arg* arg = node_.find(name);
    const T* found = arg == nullptr ? nullptr : arg->get<T>();
    if (found == nullptr) throw InternalError(fmt::format("{} needs {}", node_.op, name));
    return *found;
  }

  const ir::Node& node_;
};

class Nodes {
 public:
  Nodes(FlatBufferBuilder& builder, Values& values) : builder_(builder), values_(values) {}

  void add(const ir::Node& node);
  const std::vector<Offset<fb::XNode>>& all() const { return nodes_; }

 private:
  Offset<void> fields_of(std::string_view name, const ir::Node& node);
  Offset<void> connected(const Fields& f, std::uint32_t out);
  Offset<void> row_sum(const Fields& f, std::uint32_t out);
  Offset<void> joined(const Fields& f, std::uint32_t out);
  Offset<void> convolved(const Fields& f, std::uint32_t out, bool depthwise);
  Offset<void> pooled(const Fields& f, std::uint32_t out);
  Offset<void> reshaped(std::string_view name, const Fields& f, std::uint32_t out);

  FlatBufferBuilder& builder_;
  Values& values_;
  std::vector<Offset<fb::XNode>> nodes_;
};

/// The node's kind by its name in the schema.
fb::XNodeUnion kind_of(const std::string& name) {
  for (int i = fb::XNodeUnion_MIN; i <= fb::XNodeUnion_MAX; ++i) {
    const auto kind = static_cast<fb::XNodeUnion>(i);
    if (name == fb::EnumNameXNodeUnion(kind)) return kind;
  }
  throw InternalError(fmt::format("XNNPACK has no node {}", name));
}

void Nodes::add(const ir::Node& node) {
  std::string name = node.op.substr(std::strlen("xnn."));
  const Offset<void> fields = fields_of(name, node);
  if (name == "RowSum") name = "FullyConnected";
  if (name == "Concatenate") name += std::to_string(Fields(node).values("inputs").size());
  Offset<fb::OutputMinMax> limits = 0;
  if (name == "Clamp")
    limits = fb::CreateOutputMinMax(builder_, Fields(node).real("min"), Fields(node).real("max"));
  nodes_.push_back(fb::CreateXNode(builder_, kind_of("XNN" + name), fields,
                                   static_cast<std::uint32_t>(nodes_.size()), limits));
}

Offset<void> Nodes::fields_of(std::string_view name, const ir::Node& node) {
  const Fields f(node);
  // Operands come before results, so that each value has its number when it is given.
  std::vector<std::uint32_t> operands;
  for (const char* operand : {"input", "input1", "input2"}) {
    if (f.has(operand)) operands.push_back(values_.id(f.value(operand)));
  }
  const std::uint32_t out = values_.id(node.results[0]);
  if (name == "FullyConnected") return connected(f, out);
  if (name == "RowSum") return row_sum(f, out);
  if (name == "Concatenate") return joined(f, out);
  if (name == "Conv2d" || name == "DepthwiseConv2d")
    return convolved(f, out, name == "DepthwiseConv2d");
  if (name == "MaxPooling2d" || name == "AvgPooling2d") return pooled(f, out);
  if (name.starts_with("Static")) return reshaped(name, f, out);
  if (name == "ELU") return fb::CreateXNNELU(builder_, f.real("alpha"), operands[0], out).Union();
  if (name == "LeakyReLU")
    return fb::CreateXNNLeakyReLU(builder_, f.real("negative_slope"), operands[0], out).Union();
  if (operands.size() == 2)
    return fb::Create_XNNNode2x1(builder_, operands[0], operands[1], out,
                                 f.flag("transposed") ? 1 : 0)
        .Union();
  // Pooling over a whole image keeps its two axes.
  constexpr std::uint32_t kKeepAxes = 0x40;
  return fb::Create_XNNNode1x1(builder_, operands.at(0), out,
                               name == "GlobalAvgPooling2d" ? kKeepAxes : 0)
      .Union();
}

Offset<void> Nodes::connected(const Fields& f, std::uint32_t out) {
  const std::uint32_t filter =
      f.has("scales") ? values_.quantized(f.value("filter")) : values_.id(f.value("filter"));
  const std::uint32_t bias = f.has("bias") ? values_.id(f.value("bias")) : kNone;
  return fb::CreateXNNFullyConnected(builder_, values_.id(f.value("input")), filter, bias, out,
                                     f.flag("transposed") ? 1 : 0)
      .Union();
}

Offset<void> Nodes::row_sum(const Fields& f, std::uint32_t out) {
  const std::uint32_t length = values_.dims(f.value("input")).back();
  const std::uint32_t filter =
      values_.literal(std::vector<float>(length, f.real("factor")), {1, length});
  return fb::CreateXNNFullyConnected(builder_, values_.id(f.value("input")), filter, kNone, out)
      .Union();
}

Offset<void> Nodes::joined(const Fields& f, std::uint32_t out) {
  std::array<std::uint32_t, 5> ids{};
  ids.fill(kNone);
  const std::vector<ir::ValueId> inputs = f.values("inputs");
  for (std::size_t i = 0; i < inputs.size(); ++i) ids.at(i) = values_.id(inputs[i]);
  return fb::Create_XNNCat(builder_, f.number("axis"), ids[0], ids[1], ids[2], ids[3], out, 0,
                           ids[4])
      .Union();
}

Offset<void> Nodes::convolved(const Fields& f, std::uint32_t out, bool depthwise) {
  const std::vector<std::uint32_t> pad = f.numbers("padding");
  const std::vector<std::uint32_t> stride = f.numbers("stride");
  const std::vector<std::uint32_t> dilation = f.numbers("dilation");
  const std::uint32_t groups = f.number("groups");
  // [out, in of a group, rows, columns], of one row where it has one axis less.
  std::vector<std::uint32_t> own = values_.dims(f.value("filter"));
  std::vector<std::size_t> order{0, 2, 3, 1};
  if (depthwise) order = {1, 2, 3, 0};
  if (own.size() == 3) {
    own.insert(own.begin() + 2, 1);
    order = depthwise ? std::vector<std::size_t>{1, 2, 0} : std::vector<std::size_t>{0, 2, 1};
  }
  const std::vector<std::uint32_t> dims =
      depthwise ? std::vector<std::uint32_t>{1, own[2], own[3], own[0]}
                : std::vector<std::uint32_t>{own[0], own[2], own[3], own[1]};
  const std::uint32_t filter = values_.moved(f.value("filter"), order, dims);
  const std::uint32_t bias = f.has("bias") ? values_.id(f.value("bias")) : kNone;
  return fb::Create_XNNNodeConv(builder_, pad[0], pad[1], pad[0], pad[1], own[2], own[3], stride[0],
                                stride[1], dilation[0], dilation[1], own[1], own[0] / groups,
                                groups, 0, 0, values_.id(f.value("input")), filter, bias, out)
      .Union();
}

Offset<void> Nodes::pooled(const Fields& f, std::uint32_t out) {
  const std::vector<std::uint32_t> pad = f.numbers("padding");
  const std::vector<std::uint32_t> stride = f.numbers("stride");
  const std::vector<std::uint32_t> dilation = f.numbers("dilation");
  const std::vector<std::uint32_t> size = f.numbers("size");
  return fb::Create_XNNPooling2D(builder_, pad[0], pad[1], pad[0], pad[1], size[0], size[1],
                                 stride[0], stride[1], dilation[0], dilation[1],
                                 values_.id(f.value("input")), out)
      .Union();
}

Offset<void> Nodes::reshaped(std::string_view name, const Fields& f, std::uint32_t out) {
  const std::uint32_t in = values_.id(f.value("input"));
  const auto count = [](const std::vector<std::uint32_t>& list) {
    return static_cast<std::uint32_t>(list.size());
  };
  if (name == "StaticTranspose") {
    const std::vector<std::uint32_t> perm = f.numbers("perm");
    return fb::CreateXNNStaticTransposeDirect(builder_, count(perm), &perm, in, out).Union();
  }
  if (name == "StaticReshape") {
    const std::vector<std::uint32_t> shape = f.numbers("new_shape");
    return fb::CreateXNNStaticReshapeDirect(builder_, count(shape), &shape, in, out).Union();
  }
  if (name == "StaticSlice") {
    const std::vector<std::uint32_t> offsets = f.numbers("offsets"), sizes = f.numbers("sizes");
    return fb::CreateXNNStaticSliceDirect(builder_, count(sizes), &offsets, &sizes, in, out)
        .Union();
  }
  if (name == "StaticConstantPad") {
    const std::vector<std::uint32_t> before = f.numbers("pre_paddings");
    const std::vector<std::uint32_t> after = f.numbers("post_paddings");
    return fb::CreateXNNStaticConstantPadDirect(builder_, &before, &after, f.real("padding_value"),
                                                in, out)
        .Union();
  }
  constexpr std::uint32_t kAlignCorners = 8;
  const std::vector<std::uint32_t> size = f.numbers("size");
  return fb::CreateXNNStaticResizeBilinear2D(builder_, size[0], size[1], in, out,
                                             f.flag("align_corners") ? kAlignCorners : 0)
      .Union();
}

void put(std::string& bytes, std::uint64_t number, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(number >> (8 * i));
}

/// A header and the tables. There could be constants behind them.
std::string with_header(const FlatBufferBuilder& tables) {
  constexpr std::uint64_t kHeader = 32;
  const std::uint64_t begin = aligned(kHeader + tables.GetSize(), kTensorAlignment);
  std::string bytes;
  put(bytes, 0, 4);
  bytes += "XH00";
  put(bytes, 30, 2);  // the length of this header, but for what fills it up
  put(bytes, kHeader, 4);
  put(bytes, tables.GetSize(), 4);
  put(bytes, begin, 4);
  put(bytes, 0, 8);
  bytes.resize(kHeader, '\0');
  bytes.append(reinterpret_cast<const char*>(tables.GetBufferPointer()), tables.GetSize());
  bytes.resize(begin, '\0');
  return bytes;
}

}  // namespace

Payload payload_of(const Run& run, Bounds& bounds, ProgramData& data) {
  FlatBufferBuilder builder;
  Values values(builder, run, bounds, data);
  Nodes nodes(builder, values);
  for (std::size_t i = run.begin; i < run.end; ++i) nodes.add(run.graph.nodes()[i]);
  Payload payload{.bytes = {}, .inputs = values.inputs(), .outputs = values.outputs()};
  const auto externals = static_cast<std::uint32_t>(payload.inputs.size() + payload.outputs.size());
  const Values::Finished all = values.finish();
  const auto graph = fb::CreateXNNGraphDirect(builder, "0", &nodes.all(), &all.values, externals,
                                              &all.inputs, &all.outputs, &all.constants);
  fb::FinishXNNGraphBuffer(builder, graph);
  payload.bytes = with_header(builder);
  return payload;
}

}  // namespace modelport::executorch::xnnpack
