#include "backends/onnx/writer.h"

#include <fmt/format.h>

#include <deque>
#include <protozero/pbf_builder.hpp>
#include <set>

#include "backends/onnx/initializers.h"
#include "backends/onnx/model_text.h"
#include "backends/onnx/proto.h"

namespace modelport::onnx {
namespace {

using protozero::pbf_builder;

/// Where the bytes of an initializer are, outside the model file.
struct Location {
  std::string file;
  std::uint64_t offset = 0;
};

/// Constants and small weights stay in the model file: runtimes read sizes and axes from them.
constexpr std::uint64_t kSmall = 1024;
/// A page, so that runtimes can map large tensors in place.
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kLarge = std::uint64_t{1} << 20;

class FileParts {
 public:
  FileParts(const OnnxRequest& request)
      : request_(request),
        names_(request.graph),
        initializers_(initializers_of(request, names_)),
        locations_(initializers_.all.size()) {}

  const std::vector<Initializer>& initializers() const { return initializers_.all; }
  /// Whether its bytes are still to be written, to a file of their own.
  bool goes_outside(std::size_t index) const;
  void place(std::size_t initializer, Location location) {
    locations_[initializer] = std::move(location);
  }
  /// The model file, weights without a place outside streamed into it.
  void write(weights::Sink& sink, std::vector<weights::ConversionLoss>& losses) const;
  void stream(const Initializer& initializer, weights::Sink& sink,
              std::vector<weights::ConversionLoss>& losses) const;

 private:
  std::string graph_fields() const;
  std::string tensor_head(std::size_t index) const;

  const OnnxRequest& request_;
  ValueNames names_;
  Initializers initializers_;
  std::vector<std::optional<Location>> locations_;
};

bool FileParts::goes_outside(std::size_t index) const {
  const Initializer& initializer = initializers_.all[index];
  if (initializer.is_constant() || locations_[index]) return false;
  const WeightLayout layout = request_.options.weights;
  // Beside linked files only what is worth a file more. Large ones in the model file are copied and
  // freed when onnxruntime loads it, after which glibc takes weights out of its heap.
  if (layout == WeightLayout::linked) return initializer.bytes >= kLarge;
  return layout == WeightLayout::beside && initializer.bytes > kSmall;
}

void FileParts::stream(const Initializer& initializer, weights::Sink& sink,
                       std::vector<weights::ConversionLoss>& losses) const {
  for (const Initializer& part : initializer.parts) stream(part, sink, losses);
  if (!initializer.parts.empty()) return;
  const weights::ConversionCounts counts = initializer.stream(sink);
  if (counts == weights::ConversionCounts{}) return;
  losses.push_back(
      {initializer.weight->name, initializer.weight->dtype, initializer.dtype, counts});
}

/// Everything of GraphProto but the initializers.
std::string FileParts::graph_fields() const {
  const ir::Graph& graph = request_.graph;
  std::string data;
  pbf_builder<proto::Graph> builder(data);
  builder.add_string(proto::Graph::name, graph.name);
  for (std::uint32_t i = 0; i < graph.nodes().size(); ++i) {
    if (initializers_.stored[i]) continue;
    builder.add_message(proto::Graph::node, node_message(graph, {i}, names_));
  }
  for (const ir::ValueId id : graph.inputs)
    builder.add_message(proto::Graph::input,
                        value_message(names_.of(id), graph.value(id).tensor()));
  for (const Initializer& initializer : initializers_.all) {
    // A state is an input with a value to begin with.
    const bool listed =
        initializer.is_state || (request_.options.weights_as_inputs && !initializer.is_constant());
    if (!listed && !initializer.left_out) continue;
    const ir::TensorType type{initializer.dtype,
                              {initializer.shape.begin(), initializer.shape.end()}};
    builder.add_message(proto::Graph::input, value_message(initializer.name, type));
  }
  for (const ir::Output& output : graph.outputs) {
    const ir::ValueId id = *output.value.get<ir::ValueId>();
    builder.add_message(proto::Graph::output,
                        value_message(names_.of(id), graph.value(id).tensor()));
  }
  return data;
}

/// TensorProto up to the bytes, which follow where they are inside.
std::string FileParts::tensor_head(std::size_t index) const {
  const Initializer& initializer = initializers_.all[index];
  std::string data;
  pbf_builder<proto::Tensor> tensor(data);
  tensor.add_packed_int64(proto::Tensor::dims, initializer.shape.begin(), initializer.shape.end());
  tensor.add_int32(proto::Tensor::data_type, proto::data_type(initializer.dtype));
  tensor.add_string(proto::Tensor::name, initializer.name);
  if (const auto& location = locations_[index]) {
    const auto entry = [&](std::string_view key, const std::string& value) {
      pbf_builder<proto::Entry> pair(tensor, proto::Tensor::external_data);
      pair.add_string(proto::Entry::key, key.data(), key.size());
      pair.add_string(proto::Entry::value, value);
    };
    entry("location", location->file);
    entry("offset", std::to_string(location->offset));
    entry("length", std::to_string(initializer.bytes));
    tensor.add_enum(proto::Tensor::data_location, 1);
  }
  return data;
}

std::string field_head(std::uint32_t field, std::uint64_t length) {
  std::string data;
  protozero::add_varint_to_buffer(&data, (field << 3U) | 2U);
  protozero::add_varint_to_buffer(&data, length);
  return data;
}

void FileParts::write(weights::Sink& sink, std::vector<weights::ConversionLoss>& losses) const {
  const std::string model = model_fields(request_);
  const std::string graph = graph_fields();
  // The heads of all tensors first: protobuf wants the length of the graph before its bytes.
  std::vector<std::string> heads(initializers_.all.size());
  std::uint64_t length = graph.size();
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const Initializer& initializer = initializers_.all[i];
    if (initializer.left_out) continue;
    const std::string fields = tensor_head(i);
    const std::string raw = locations_[i] ? "" : field_head(9, initializer.bytes);
    const std::uint64_t inside = locations_[i] ? 0 : initializer.bytes;
    heads[i] = field_head(5, fields.size() + raw.size() + inside) + fields + raw;
    length += heads[i].size() + inside;
  }
  if (length + model.size() >= (std::uint64_t{1} << 31))
    throw ExportError(
        {.code = Code::bad_graph,
         .what = fmt::format("the model file would take {:.1f} GB, and protobuf ends at 2",
                             static_cast<double>(length) / 1e9),
         .ways_out = {request_.options.weights == WeightLayout::linked
                          ? "copy the weights, most of which are not stored as they are used: "
                            "weights='copy'"
                          : "keep the weights outside: external_data=True"}});
  sink.write(model);
  sink.write(field_head(static_cast<std::uint32_t>(proto::Model::graph), length));
  sink.write(graph);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const Initializer& initializer = initializers_.all[i];
    if (initializer.left_out) continue;
    sink.write(heads[i]);
    if (locations_[i]) continue;
    if (initializer.is_constant()) {
      sink.write(initializer.raw);
    } else {
      stream(initializer, sink, losses);
    }
  }
}

void pad_to(weights::Sink& sink, std::uint64_t alignment) {
  static constexpr std::array<std::byte, kPage> kZeros{};
  const std::uint64_t beyond = sink.written() % alignment;
  if (beyond != 0) sink.write(std::span(kZeros).first(alignment - beyond));
}

/// Names for files beside the model that no file has which it points into.
class DataNames {
 public:
  DataNames(const OnnxRequest& request, std::filesystem::path path)
      : first_(std::move(path += request.options.data_suffix)) {
    if (request.options.weights != WeightLayout::linked) return;
    for (const weights::Weight& weight : request.weights.weights())
      if (weight.file) taken_.insert(weight.file->path().filename());
  }

  std::filesystem::path next() {
    for (;;) {
      std::filesystem::path name = first_;
      if (count_ != 0) name += fmt::format("_{}", count_);
      ++count_;
      if (!taken_.contains(name.filename())) return name;
    }
  }

 private:
  std::filesystem::path first_;
  std::set<std::filesystem::path> taken_;
  std::size_t count_ = 0;
};

/// Streams weights into files beside the model, and says where they went.
std::deque<weights::AtomicFile> write_beside(FileParts& parts, const OnnxRequest& request,
                                             const std::filesystem::path& path,
                                             std::vector<weights::ConversionLoss>& losses) {
  const std::uint64_t most = request.options.shard_bytes;
  DataNames names(request, path);
  std::deque<weights::AtomicFile> files;
  for (std::size_t i = 0; i < parts.initializers().size(); ++i) {
    const Initializer& initializer = parts.initializers()[i];
    if (!parts.goes_outside(i)) continue;
    const bool full = most != 0 && !files.empty() && files.back().written() != 0 &&
                      files.back().written() + initializer.bytes > most;
    if (files.empty() || full) files.emplace_back(names.next());
    weights::AtomicFile& file = files.back();
    pad_to(file, initializer.bytes >= kLarge ? kPage : 64);
    parts.place(i, {file.path().filename().string(), file.written()});
    parts.stream(initializer, file, losses);
  }
  for (weights::AtomicFile& file : files) file.finish();
  return files;
}

/// As the model will see them: files beside it move with it, others stay.
std::string seen_from(const std::filesystem::path& folder, const std::filesystem::path& home,
                      const std::filesystem::path& file) {
  const std::filesystem::path beside = file.lexically_relative(folder);
  const bool moves = !beside.empty() && *beside.begin() != "..";
  return (moves ? beside : std::filesystem::proximate(file, home)).generic_string();
}

void link_weights(FileParts& parts, const OnnxOptions& options,
                  const std::filesystem::path& folder) {
  const std::filesystem::path& home = options.home.empty() ? folder : options.home;
  for (std::size_t i = 0; i < parts.initializers().size(); ++i) {
    const Initializer& initializer = parts.initializers()[i];
    const weights::Weight* weight = initializer.weight;
    const bool as_it_is = weight != nullptr && weight->file && !initializer.transposed &&
                          initializer.quantized == nullptr && initializer.parts.empty() &&
                          weight->dtype == initializer.dtype;
    if (!as_it_is) continue;
    parts.place(i, {seen_from(folder, home, weight->file->path()), weight->file_offset});
  }
}

}  // namespace

OnnxWritten write_onnx(const OnnxRequest& request, const std::filesystem::path& path) {
  OnnxWritten written;
  FileParts parts(request);
  if (request.options.weights == WeightLayout::linked)
    link_weights(parts, request.options, std::filesystem::absolute(path).parent_path());
  std::deque<weights::AtomicFile> files = write_beside(parts, request, path, written.losses);
  weights::AtomicFile model(path);
  parts.write(model, written.losses);
  model.finish();
  // All of them are whole: now they take their places, the model last.
  for (weights::AtomicFile& file : files) file.commit();
  model.commit();
  written.files.push_back(path);
  for (const weights::AtomicFile& file : files) written.files.push_back(file.path());
  return written;
}

std::string onnx_bytes(const OnnxRequest& request) {
  std::vector<weights::ConversionLoss> losses;
  weights::MemorySink sink;
  FileParts(request).write(sink, losses);
  return {reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size()};
}

}  // namespace modelport::onnx
