#include "weights/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace modelport::weights {
namespace {

/// The order in which the safetensors library lays tensors out: wide types first, so that each
/// tensor is aligned to its element size without padding between tensors.
constexpr std::array kLayoutOrder{
    Dtype::u64,    Dtype::i64,  Dtype::f64, Dtype::c64,     Dtype::f32, Dtype::u32,
    Dtype::i32,    Dtype::bf16, Dtype::f16, Dtype::u16,     Dtype::i16, Dtype::f8e4m3,
    Dtype::f8e5m2, Dtype::i8,   Dtype::u8,  Dtype::boolean,
};

std::size_t layout_rank(Dtype dtype) {
  return static_cast<std::size_t>(std::find(kLayoutOrder.begin(), kLayoutOrder.end(), dtype) -
                                  kLayoutOrder.begin());
}

bool is_utf8(const std::string& text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

void check_tensors(std::span<const TensorSource> tensors, const Metadata& metadata) {
  Diagnostics found;
  const auto refuse = [&](const std::string& what, std::string way_out) {
    Diagnostic d;
    d.code = Code::bad_file;
    d.what = "cannot write safetensors: " + what;
    d.ways_out = {std::move(way_out)};
    found.add(std::move(d));
  };
  for (const auto& [key, value] : metadata) {
    if (!is_utf8(key) || !is_utf8(value)) {
      refuse(fmt::format("the metadata {} is not valid UTF-8", quote_text(key)),
             "change or drop it");
    }
  }
  std::set<std::string_view> names;
  for (const TensorSource& tensor : tensors) {
    const std::string quote = quote_text(tensor.name);
    if (!names.insert(tensor.name).second) {
      refuse(fmt::format("two tensors are named {}", quote), "give each tensor a name of its own");
    }
    if (tensor.name == "__metadata__") {
      refuse("the format reserves the name \"__metadata__\"", "rename that tensor");
    }
    if (!is_utf8(tensor.name)) {
      refuse(fmt::format("the name {} is not valid UTF-8", quote), "rename that tensor");
    }
    if (!safetensors_name(tensor.dtype)) {
      refuse(
          fmt::format("tensor {} has dtype {}, which the format lacks", quote, name(tensor.dtype)),
          "store it as torch.view_as_real(tensor)");
    }
    if (!dense_bytes(tensor.dtype, tensor.shape)) {
      refuse(fmt::format("tensor {} has shape [{}]", quote, fmt::join(tensor.shape, ", ")),
             "give it sizes that are not negative and whose product is below 2^64 bytes");
    }
  }
  found.throw_if_any();
}

std::uint64_t bytes_of(const TensorSource& tensor) {
  return dense_bytes(tensor.dtype, tensor.shape).value();
}

std::string header_text(std::span<const TensorSource* const> tensors, const Metadata& metadata) {
  std::string text = "{";
  if (!metadata.empty()) text += "\"__metadata__\":" + Json(metadata).dump();
  std::uint64_t offset = 0;
  for (const TensorSource* tensor : tensors) {
    const std::uint64_t end = offset + bytes_of(*tensor);
    if (text.size() > 1) text += ',';
    text += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        Json(tensor->name).dump(), *safetensors_name(tensor->dtype),
                        fmt::join(tensor->shape, ","), offset, end);
    offset = end;
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the weights start at a multiple of 8
  return text;
}

void write_file(std::vector<const TensorSource*> tensors, const Metadata& metadata, Sink& sink) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorSource* a, const TensorSource* b) {
    const auto ranks = std::pair(layout_rank(a->dtype), layout_rank(b->dtype));
    return ranks.first != ranks.second ? ranks.first < ranks.second : a->name < b->name;
  });
  const std::string header = header_text(tensors, metadata);
  if (header.size() > kLongestHeader) {
    Diagnostic d;
    d.code = Code::bad_file;
    d.what = fmt::format("cannot write safetensors: a header of {} bytes, and the format allows {}",
                         header.size(), kLongestHeader);
    d.ways_out = {"write smaller files (max_shard_bytes)"};
    throw ExportError(std::move(d));
  }
  std::array<std::byte, 8> length{};
  for (std::size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<std::byte>(header.size() >> (8 * i) & 0xFF);
  }
  sink.write(length);
  sink.write(header);
  for (const TensorSource* tensor : tensors) {
    const std::uint64_t before = sink.written();
    tensor->stream(sink);
    if (sink.written() - before != bytes_of(*tensor)) {
      throw InternalError(fmt::format("tensor {} streamed {} bytes where {} were due", tensor->name,
                                      sink.written() - before, bytes_of(*tensor)));
    }
  }
}

using Shard = std::vector<const TensorSource*>;

std::vector<Shard> split(std::span<const TensorSource> tensors,
                         std::optional<std::uint64_t> max_bytes) {
  std::vector<Shard> shards(1);
  std::uint64_t filled = 0;
  for (const TensorSource& tensor : tensors) {
    const std::uint64_t bytes = bytes_of(tensor);
    if (max_bytes && !shards.back().empty() &&
        (bytes > *max_bytes || filled > *max_bytes - bytes)) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(&tensor);
    filled += bytes;
  }
  return shards;
}

std::string index_text(std::span<const Shard> shards, std::span<const std::string> names) {
  Json weight_map = Json::object();
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (const TensorSource* tensor : shards[i]) {
      weight_map[tensor->name] = names[i];
      total += bytes_of(*tensor);
    }
  }
  const Json index{{"metadata", {{"total_size", total}}}, {"weight_map", std::move(weight_map)}};
  return index.dump(2) + '\n';
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return;
  Diagnostic d;
  d.code = Code::bad_file;
  d.what = fmt::format("cannot make the folder {}: {}", folder.string(), error.message());
  d.ways_out = {"write to a folder that you may write to"};
  throw ExportError(std::move(d));
}

}  // namespace

void write_safetensors(std::span<const TensorSource> tensors, const Metadata& metadata,
                       Sink& sink) {
  check_tensors(tensors, metadata);
  Shard all;
  for (const TensorSource& tensor : tensors) all.push_back(&tensor);
  write_file(std::move(all), metadata, sink);
}

std::vector<std::string> save_safetensors(std::span<const TensorSource> tensors,
                                          const std::filesystem::path& folder,
                                          const SafetensorsOptions& options) {
  check_tensors(tensors, options.metadata);
  make_folder(folder);
  const std::vector<Shard> shards = split(tensors, options.max_shard_bytes);
  const bool single = shards.size() == 1;
  std::vector<std::string> names;
  std::vector<std::unique_ptr<AtomicFile>> files;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    names.push_back(single ? std::string(kSingleFile)
                           : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size()));
    files.push_back(std::make_unique<AtomicFile>(folder / names.back()));
    write_file(shards[i], options.metadata, *files.back());
    files.back()->finish();
  }
  if (!single) {
    files.push_back(std::make_unique<AtomicFile>(folder / kIndexFile));
    files.back()->write(index_text(shards, names));
    files.back()->finish();
    names.emplace_back(kIndexFile);
  }
  for (const auto& file : files) file->commit();
  // Readers prefer the single file, so a killed process leaves the old model whole until here.
  std::error_code ignored;
  std::filesystem::remove(folder / (single ? kIndexFile : kSingleFile), ignored);
  return names;
}

}  // namespace modelport::weights
