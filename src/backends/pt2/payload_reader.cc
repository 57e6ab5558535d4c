// Weights by torch's configuration: a record of raw bytes, and sizes and strides into it.
#include "backends/pt2/payload_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "backends/pt2/json_read.h"
#include "backends/pt2/torch_numbers.h"
#include "base/error.h"

namespace modelport::pt2 {
namespace {

constexpr std::size_t kMostAxes = 64;

std::int64_t plain_number(const Json& json) { return read_integer(json.at("as_int")); }

/// Row-major strides; axes of one element or none may have any.
bool is_dense(const weights::Shape& shape, const std::vector<std::int64_t>& strides) {
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] > 1 && strides[i] != expected) return false;
    expected *= std::max<std::int64_t>(shape[i], 1);
  }
  return true;
}

/// The last element of a tensor that is not empty; nothing when that overflows.
std::optional<std::uint64_t> last_element(const weights::Shape& shape,
                                          const std::vector<std::int64_t>& strides,
                                          std::int64_t offset) {
  std::uint64_t last = static_cast<std::uint64_t>(offset);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    std::uint64_t step = 0;
    const bool overflows = strides[i] < 0 ||
                           __builtin_mul_overflow(static_cast<std::uint64_t>(shape[i] - 1),
                                                  static_cast<std::uint64_t>(strides[i]), &step) ||
                           __builtin_add_overflow(last, step, &last);
    if (overflows) return std::nullopt;
  }
  return last;
}

/// A dense copy of a strided tensor.
std::vector<std::byte> gather(std::span<const std::byte> bytes, std::size_t width,
                              const weights::Shape& shape, const std::vector<std::int64_t>& strides,
                              std::uint64_t total) {
  std::vector<std::byte> result(total);
  std::vector<std::int64_t> index(shape.size(), 0);
  std::uint64_t from = 0;
  for (std::uint64_t to = 0; to < total; to += width) {
    std::memcpy(result.data() + to, bytes.data() + from * width, width);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      from += static_cast<std::uint64_t>(strides[axis]);
      if (++index[axis] < shape[axis]) break;
      from -= static_cast<std::uint64_t>(strides[axis]) * static_cast<std::uint64_t>(shape[axis]);
      index[axis] = 0;
    }
  }
  return result;
}

}  // namespace

PayloadReader::PayloadReader(const ZipArchive& archive, std::string root,
                             std::shared_ptr<const MappedFile> file)
    : archive_(archive), root_(std::move(root)), file_(std::move(file)) {}

Json PayloadReader::config(const std::string& name, const std::string& legacy) const {
  if (archive_.find(root_ + legacy) != nullptr && archive_.find(root_ + name) == nullptr) {
    archive_.fail(
        "its weights are pickled, as torch before 2.9 wrote them; load and save it with torch 2.9 "
        "or later");
  }
  const Json json =
      parse_json(archive_.text(archive_.at(root_ + name)), {.name = archive_.name() + ", " + name});
  if (!json.is_object() || !json.contains("config") || !json["config"].is_object()) {
    archive_.fail(name + " lists no weights");
  }
  return json["config"];
}

PayloadReader::Record PayloadReader::record(const Json& config, const std::string& folder,
                                            const std::string& name) const {
  const auto found = config.find(name);
  if (found == config.end()) archive_.fail(fmt::format("it has no weight {}", quote_text(name)));
  try {
    const Json& entry = *found;
    if (entry.at("use_pickle").get<bool>()) {
      archive_.fail(fmt::format("weight {} is pickled, which only a tensor subclass needs",
                                quote_text(name)));
    }
    const Json& meta = entry.at("tensor_meta");
    Record record;
    record.path = root_ + folder + entry.at("path_name").get<std::string>();
    const auto dtype = dtype_of_scalar_type(read_integer(meta.at("dtype")));
    if (!dtype)
      archive_.fail(fmt::format("weight {} has a dtype that is not known here", quote_text(name)));
    record.dtype = *dtype;
    for (const Json& size : meta.at("sizes")) record.shape.push_back(plain_number(size));
    for (const Json& stride : meta.at("strides")) record.strides.push_back(plain_number(stride));
    record.offset = plain_number(meta.at("storage_offset"));
    const bool sound = record.shape.size() == record.strides.size() &&
                       record.shape.size() <= kMostAxes && record.offset >= 0 &&
                       weights::dense_bytes(record.dtype, record.shape).has_value();
    if (!sound)
      archive_.fail(fmt::format("the sizes of weight {} make no sense", quote_text(name)));
    return record;
  } catch (const Json::exception& error) {
    archive_.fail(fmt::format("weight {}: {}", quote_text(name), error.what()));
  }
}

const ZipArchive::Contents& PayloadReader::contents(const ZipArchive::Entry& entry) {
  const auto found = contents_.find(entry.name);
  if (found != contents_.end()) return found->second;
  return contents_.emplace(entry.name, archive_.read(entry)).first->second;
}

void PayloadReader::take_room(const std::string& name, std::uint64_t bytes) {
  copied_ += bytes;
  if (copied_ > archive_.room()) {
    archive_.fail(
        fmt::format("with weight {}, its weights are much larger than the file", quote_text(name)));
  }
}

weights::Weight PayloadReader::load(const std::string& name, const Record& record) {
  const ZipArchive::Entry& entry = archive_.at(record.path);
  const std::size_t width = byte_size(record.dtype);
  const std::uint64_t total = *weights::dense_bytes(record.dtype, record.shape);
  weights::Weight weight;
  weight.name = name;
  weight.dtype = record.dtype;
  weight.shape = record.shape;
  if (total == 0) return weight;
  const auto last = last_element(record.shape, record.strides, record.offset);
  if (!last || *last >= entry.size / width) {
    archive_.fail(fmt::format("weight {} reaches beyond its record", quote_text(name)));
  }
  const std::uint64_t begin = static_cast<std::uint64_t>(record.offset) * width;
  auto [bytes, owned] = contents(entry);
  bytes = bytes.subspan(begin);
  if (!is_dense(record.shape, record.strides)) {
    // Repeated elements (stride 0) could make a small record into a huge weight.
    if (total > entry.size)
      archive_.fail(fmt::format("weight {} is larger than its record", quote_text(name)));
    take_room(name, total);
    owned = std::make_shared<const std::vector<std::byte>>(
        gather(bytes, width, record.shape, record.strides, total));
    bytes = *owned;
  }
  weight.bytes = bytes.first(total);
  weight.keep_alive = owned;
  if (owned == nullptr && file_ != nullptr) {
    weight.file = file_;
    weight.keep_alive = file_;
    weight.file_offset = static_cast<std::uint64_t>(weight.bytes.data() - file_->bytes().data());
  }
  return weight;
}

void PayloadReader::check(const std::string& name, const Record& record,
                          const ir::TensorType& type) const {
  const std::vector<shape::Int> shape(record.shape.begin(), record.shape.end());
  if (record.dtype != type.dtype || shape != type.shape) {
    archive_.fail(
        fmt::format("weight {} has another type than the program says", quote_text(name)));
  }
}

void PayloadReader::read(const ir::Graph& graph, weights::WeightStore& store) {
  const Json saved = config("data/weights/model_weights_config.json", "data/weights/model.pt");
  const Json constants =
      config("data/constants/model_constants_config.json", "data/constants/model.pt");
  std::vector<std::pair<Record, std::string>> known;
  std::unordered_map<std::string, std::vector<std::size_t>> by_path;
  for (const ir::ValueId id : graph.weights) {
    const ir::Value& value = graph.value(id);
    const bool in_checkpoint = value.weight_kind == ir::WeightKind::parameter ||
                               value.weight_kind == ir::WeightKind::buffer;
    const Record found = in_checkpoint ? record(saved, "data/weights/", value.name)
                                       : record(constants, "data/constants/", value.name);
    check(value.name, found, value.tensor());
    std::vector<std::size_t>& same_path = by_path[found.path];
    const auto tied =
        std::ranges::find_if(same_path, [&](std::size_t i) { return known[i].first == found; });
    if (tied != same_path.end()) {
      store.add_alias(value.name, known[*tied].second);
      continue;
    }
    store.add_borrowed(load(value.name, found));
    same_path.push_back(known.size());
    known.emplace_back(found, value.name);
  }
}

}  // namespace modelport::pt2
