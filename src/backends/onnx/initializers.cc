#include "backends/onnx/initializers.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "weights/quantize/quantize.h"
#include "weights/transpose.h"

namespace modelport::onnx {
namespace {

std::vector<std::int64_t> numbers_of(const ir::Arg& arg) {
  std::vector<std::int64_t> numbers;
  for (const ir::Arg& item : *arg.get<ir::ArgList>())
    numbers.push_back(*item.get<shape::Int>()->constant());
  return numbers;
}

std::vector<std::int64_t> shape_of(const ir::TensorType& type) {
  std::vector<std::int64_t> sizes;
  for (const shape::Int& size : type.shape) sizes.push_back(size.constant().value_or(0));
  return sizes;
}

template <class Number>
void append(std::string& raw, Number number) {
  char bytes[sizeof(Number)];
  std::memcpy(bytes, &number, sizeof(Number));
  raw.append(bytes, sizeof(Number));
}

void append_integer(std::string& raw, Dtype dtype, std::int64_t value) {
  switch (byte_size(dtype)) {
    case 1:
      return append(raw, static_cast<std::int8_t>(value));
    case 2:
      return append(raw, static_cast<std::int16_t>(value));
    case 4:
      return append(raw, static_cast<std::int32_t>(value));
    default:
      return append(raw, value);
  }
}

/// The bytes of a Constant node: little-endian, as raw_data has them.
std::string bytes_of(const ir::Node& node, Dtype dtype) {
  std::string raw;
  std::vector<double> reals;
  for (const ir::Arg& item : *node.find("values")->get<ir::ArgList>()) {
    if (const double* real = item.get<double>()) {
      reals.push_back(*real);
    } else {
      append_integer(raw, dtype, *item.get<shape::Int>()->constant());
    }
  }
  if (reals.empty()) return raw;
  const auto given = std::as_bytes(std::span(reals));
  raw.resize(reals.size() * byte_size(dtype));
  if (dtype == Dtype::f64) {
    std::memcpy(raw.data(), given.data(), raw.size());
  } else {
    weights::convert(Dtype::f64, given, dtype, std::as_writable_bytes(std::span(raw)));
  }
  return raw;
}

/// Its results are tensors of the file: codes, scales, and zero points where there are any.
constexpr std::string_view kQuantized = "modelport.quantized";
/// Its result is one tensor of the file: rows of several, one after the other.
constexpr std::string_view kJoined = "modelport.joined";

std::vector<ir::ValueId> inputs_of(const ir::Node& node) {
  std::vector<ir::ValueId> inputs;
  ir::for_each_value(*node.find("inputs"), [&](ir::ValueId id) { inputs.push_back(id); });
  return inputs;
}

/// "a.q+k.weight" of "a.q.weight" and "a.k.weight".
std::string joined_name(const std::vector<std::string>& names) {
  const std::string& first = names[0];
  std::size_t before = first.size();
  std::size_t after = first.size();
  for (const std::string& name : names) {
    const std::size_t most = std::min(first.size(), name.size());
    std::size_t same = 0;
    while (same < most && first[same] == name[same]) ++same;
    before = std::min(before, same);
    same = 0;
    while (same < most && first[first.size() - 1 - same] == name[name.size() - 1 - same]) ++same;
    after = std::min(after, same);
  }
  // Whole words between dots.
  before = first.rfind('.', before == 0 ? 0 : before - 1) + 1;
  const std::size_t end = first.find('.', first.size() - after);
  after = end == std::string::npos ? 0 : first.size() - end;
  std::string joined = first.substr(0, first.size() - after);
  for (std::size_t i = 1; i < names.size(); ++i)
    joined += "+" + names[i].substr(before, names[i].size() - before - after);
  return joined + first.substr(first.size() - after);
}

weights::Scheme scheme_of(const ir::Graph& graph, const ir::Node& node) {
  const auto integer = [&](std::string_view name) {
    return node.find(name)->get<shape::Int>()->constant().value();
  };
  return {.layout = *weights::parse_layout(*node.find("layout")->get<std::string>()),
          .bits = static_cast<int>(integer("bits")),
          .group = integer("block"),
          .zero_points = node.results.size() > 2,
          .scales = graph.value(node.results[1]).tensor().dtype,
          .choice = *node.find("search")->get<bool>() ? weights::ScaleChoice::search
                                                      : weights::ScaleChoice::range};
}

bool says(const ir::Node& node, std::string_view name) {
  const ir::Arg* arg = node.find(name);
  return arg != nullptr && *arg->get<bool>();
}

QuantizedTensors::Order order_of(const ir::Node& node) {
  return says(node, "transposed")    ? QuantizedTensors::Order::transposed
         : says(node, "interleaved") ? QuantizedTensors::Order::interleaved
                                     : QuantizedTensors::Order::plain;
}

/// The matrix with its axes swapped, in memory while it is read.
weights::Weight turned(const weights::Weight& matrix) {
  weights::Weight made{
      .name = matrix.name, .dtype = matrix.dtype, .shape = {matrix.shape[1], matrix.shape[0]}};
  made.read = [matrix] {
    weights::MemorySink sink;
    weights::stream_transposed(matrix, matrix.dtype, sink);
    const auto bytes = std::make_shared<const std::vector<std::byte>>(sink.take());
    return weights::Contents{*bytes, bytes};
  };
  return made;
}

bool swaps_a_matrix(const ir::Node& node) {
  if (node.op != "onnx.Transpose") return false;
  const ir::Arg* order = node.find("perm");
  return order != nullptr && numbers_of(*order) == std::vector<std::int64_t>{1, 0};
}

class Collector {
 public:
  Collector(const OnnxRequest& request, ValueNames& names)
      : graph_(request.graph), request_(request), names_(names) {
    result_.stored.resize(graph_.nodes().size(), false);
    weight_of_.resize(graph_.values().size(), nullptr);
    for (const ir::Mutation& mutation : graph_.mutations) state_.insert(mutation.buffer.index);
  }

  Initializers run() {
    for (const ir::ValueId id : graph_.weights)
      weight_of_[id.index] = request_.weights.find(graph_.value(id).name);
    const std::vector<bool> plain = used_as_they_are();
    for (const ir::ValueId id : graph_.weights) {
      if (is_state(id)) {
        add_weight(id, weight_of_[id.index], false);
      } else if (plain[id.index] && !is_known(id)) {
        add_weight(id, weight_of_[id.index], false);
      }
    }
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      const ir::Node& node = graph_.nodes()[i];
      if (node.op == kQuantized) {
        store_quantized(node);
      } else if (node.op == kJoined) {
        store_joined(node);
      } else if (result_.stored[i]) {
        store_transposed(node);
      }
      if (node.op == "onnx.Constant") add_constant(i, node);
    }
    return std::move(result_);
  }

 private:
  /// Which weights some node or output uses without transposing them; marks transpositions of the
  /// others as stored. One that is used both ways would be there twice, so that its transposition
  /// stays a node, which runtimes compute when they load the file.
  std::vector<bool> used_as_they_are() {
    std::vector<bool> plain(graph_.values().size(), false);
    std::vector<std::pair<std::size_t, ir::ValueId>> transposed;
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      const ir::Node& node = graph_.nodes()[i];
      if (const auto weight = weight_transposed_by(node)) {
        transposed.emplace_back(i, *weight);
      } else if (node.op == kQuantized || node.op == kJoined) {
        result_.stored[i] = true;
        if (node.op == kJoined)
          for (const ir::ValueId id : inputs_of(node)) is_part_.insert(id.index);
      } else {
        ir::for_each_operand(node, [&](ir::ValueId id) { plain[id.index] = true; });
      }
    }
    for (const ir::Output& output : graph_.outputs)
      plain[output.value.get<ir::ValueId>()->index] = true;
    for (const auto& [node, weight] : transposed) result_.stored[node] = !plain[weight.index];
    return plain;
  }

  std::optional<ir::ValueId> weight_transposed_by(const ir::Node& node) const {
    if (!request_.options.transpose_weights || !swaps_a_matrix(node)) return std::nullopt;
    const ir::ValueId id = *(*node.find("inputs")->get<ir::ArgList>())[0].get<ir::ValueId>();
    const weights::Weight* weight = weight_of_[id.index];
    const bool is_matrix = weight != nullptr && !is_state(id) && weight->shape.size() == 2 &&
                           byte_size(weight->dtype) <= 8;
    return is_matrix ? std::optional(id) : std::nullopt;
  }

  /// Whether another weight has the same bytes: the same memory, or contents that are quickly
  /// compared.
  bool is_known(ir::ValueId id) {
    const weights::Weight* weight = weight_of_[id.index];
    constexpr std::uint64_t kCompared = std::uint64_t{1} << 16;
    if (weight == nullptr || weight->byte_count() == 0) return false;
    if (weight->read && weight->byte_count() > kCompared) return false;
    const ir::TensorType& type = graph_.value(id).tensor();
    std::string key = fmt::format("{} {} {} ", name(type.dtype), name(weight->dtype),
                                  fmt::join(weight->shape, ","));
    if (weight->byte_count() <= kCompared) {
      const weights::Contents held = weight->contents();
      key.append(reinterpret_cast<const char*>(held.bytes.data()), held.bytes.size());
    } else {
      key += fmt::format("{}", static_cast<const void*>(weight->bytes.data()));
    }
    const auto [known, added] = by_contents_.emplace(std::move(key), id);
    if (added) return false;
    names_.unite(id, known->second);
    return true;
  }

  /// What a run changes is a tensor of its own, whatever it holds at first.
  bool is_state(ir::ValueId id) const { return state_.contains(id.index); }

  void add_weight(ir::ValueId id, const weights::Weight* weight, bool transposed) {
    result_.all.push_back(initializer_of(id, weight, transposed));
  }

  Initializer initializer_of(ir::ValueId id, const weights::Weight* weight, bool transposed) const {
    Initializer initializer;
    initializer.name = names_.of(id);
    const ir::TensorType& type = graph_.value(id).tensor();
    initializer.shape = shape_of(type);
    initializer.dtype = type.dtype;
    initializer.transposed = transposed;
    initializer.weight = weight;
    initializer.is_state = is_state(id);
    // Of constants, which no module names, callers have none.
    const bool is_named = graph_.value(id).weight_kind != ir::WeightKind::constant;
    initializer.left_out =
        request_.options.weights == WeightLayout::left_out && (is_named || weight == nullptr);
    if (weight == nullptr && !initializer.left_out) {
      throw ExportError({.code = Code::missing_weight,
                         .what = fmt::format("weight {} has no values", graph_.value(id).name),
                         .ways_out = {"export from the model with its weights",
                                      "export_params=False writes the graph alone"}});
    }
    initializer.bytes = byte_size(initializer.dtype);
    for (const std::int64_t size : initializer.shape)
      initializer.bytes *= static_cast<std::uint64_t>(size);
    return initializer;
  }

  void store_transposed(const ir::Node& node) {
    const ir::ValueId source = *(*node.find("inputs")->get<ir::ArgList>())[0].get<ir::ValueId>();
    const weights::Weight* weight = weight_of_[source.index];
    names_.rename(node.results[0], graph_.value(source).name + ".transposed");
    add_weight(node.results[0], weight, true);
  }

  void store_quantized(const ir::Node& node) {
    using Part = QuantizedTensors::Part;
    static constexpr std::array kParts{std::pair{Part::codes, ".codes"},
                                       std::pair{Part::scales, ".scales"},
                                       std::pair{Part::zero_points, ".zero_points"}};
    const ir::ValueId source = *(*node.find("inputs")->get<ir::ArgList>())[0].get<ir::ValueId>();
    const weights::Weight* weight = weight_of_[source.index];
    std::shared_ptr<QuantizedTensors> tensors;
    const bool is_turned = says(node, "turned");
    const std::string name = graph_.value(source).name + (is_turned ? ".transposed" : "");
    const auto measured = request_.inputs.find(graph_.value(source).name);
    if (weight != nullptr)
      tensors = std::make_shared<QuantizedTensors>(
          is_turned ? turned(*weight) : *weight, scheme_of(graph_, node), order_of(node),
          measured == request_.inputs.end() ? nullptr : &measured->second);
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      const ir::ValueId id = node.results[i];
      names_.rename(id, name + kParts[i].second);
      Initializer made = initializer_of(id, weight, false);
      made.quantized = tensors;
      made.part = kParts[i].first;
      if (is_part_.contains(id.index)) {
        parts_.emplace(id.index, std::move(made));
      } else {
        result_.all.push_back(std::move(made));
      }
    }
  }

  void store_joined(const ir::Node& node) {
    std::vector<std::string> names;
    std::vector<Initializer> parts;
    for (const ir::ValueId id : inputs_of(node)) {
      names.push_back(names_.of(id));
      const auto made = parts_.find(id.index);
      parts.push_back(made != parts_.end() ? std::move(made->second)
                                           : initializer_of(id, weight_of_[id.index], false));
    }
    names_.rename(node.results[0], joined_name(names));
    add_weight(node.results[0], parts[0].weight, false);
    result_.all.back().parts = std::move(parts);
  }

  void add_constant(std::size_t index, const ir::Node& node) {
    const ir::TensorType& type = graph_.value(node.results[0]).tensor();
    if (const ir::Arg* given = node.find("name"))  // a client may set another
      names_.rename(node.results[0], *given->get<std::string>());
    Initializer initializer{.name = names_.of(node.results[0]),
                            .dtype = type.dtype,
                            .shape = numbers_of(*node.find("shape")),
                            .raw = bytes_of(node, type.dtype)};
    initializer.bytes = initializer.raw.size();
    result_.stored[index] = true;
    result_.all.push_back(std::move(initializer));
  }

  const ir::Graph& graph_;
  const OnnxRequest& request_;
  ValueNames& names_;
  std::vector<const weights::Weight*> weight_of_;
  std::unordered_map<std::string, ir::ValueId> by_contents_;
  std::unordered_set<std::uint32_t> state_;
  std::unordered_set<std::uint32_t> is_part_;             // values of a joined tensor
  std::unordered_map<std::uint32_t, Initializer> parts_;  // those that are made
  Initializers result_;
};

}  // namespace

/// In the order that is wanted; a part is in memory for that, where it is another one.
void QuantizedTensors::write(std::span<const std::byte> bytes, weights::Sink& sink) const {
  if (order_ != Order::interleaved) return sink.write(bytes);
  const auto size = [&](std::size_t axis) { return static_cast<std::size_t>(weight_.shape[axis]); };
  const std::size_t rows = size(1), row = bytes.size() / (size(0) * rows);
  for (std::size_t matrix = 0; matrix < size(0); ++matrix) {
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t from = i / 2 + (i % 2) * (rows / 2);
      sink.write(bytes.subspan((matrix * rows + from) * row, row));
    }
  }
}

void QuantizedTensors::stream(Part part, weights::Sink& sink) {
  auto& kept = part == Part::scales ? scales_ : zero_points_;
  if (part != Part::codes && kept) {
    write(*kept, sink);
    kept.reset();
    return;
  }
  weights::MemorySink scales;
  weights::MemorySink zero_points;
  weights::MemorySink rows;
  weights::QuantizedSinks sinks{.scales = &scales};
  if (part == Part::codes)
    sinks.codes = order_ == Order::plain ? &sink : static_cast<weights::Sink*>(&rows);
  if (scheme_.zero_points) sinks.zero_points = &zero_points;
  weights::quantize(weight_, scheme_, sinks, {.inputs = inputs_, .measures_error = false});
  if (part != Part::codes)
    return write(part == Part::scales ? scales.bytes() : zero_points.bytes(), sink);
  if (order_ == Order::interleaved) write(rows.bytes(), sink);
  if (order_ == Order::transposed)
    weights::stream_transposed(
        {.name = weight_.name, .dtype = Dtype::i8, .shape = weight_.shape, .bytes = rows.bytes()},
        Dtype::i8, sink);
  scales_ = scales.take();
  if (scheme_.zero_points) zero_points_ = zero_points.take();
}

weights::ConversionCounts Initializer::stream(weights::Sink& sink) const {
  if (quantized != nullptr) {
    quantized->stream(part, sink);
    return {};
  }
  if (transposed) return weights::stream_transposed(*weight, dtype, sink);
  return weights::stream(*weight, dtype, sink);
}

Initializers initializers_of(const OnnxRequest& request, ValueNames& names) {
  return Collector(request, names).run();
}

}  // namespace modelport::onnx
