#include "weights/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace modelport::weights {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::size_t kMostProblems = 50;  // a hostile header could hold millions
constexpr std::string_view kAgain = "download the file again";

struct DtypeName {
  std::string_view name;
  Dtype dtype;
};

constexpr std::array kNames{
    DtypeName{"F64", Dtype::f64},        DtypeName{"F32", Dtype::f32},
    DtypeName{"F16", Dtype::f16},        DtypeName{"BF16", Dtype::bf16},
    DtypeName{"F8_E4M3", Dtype::f8e4m3}, DtypeName{"F8_E5M2", Dtype::f8e5m2},
    DtypeName{"I64", Dtype::i64},        DtypeName{"I32", Dtype::i32},
    DtypeName{"I16", Dtype::i16},        DtypeName{"I8", Dtype::i8},
    DtypeName{"U64", Dtype::u64},        DtypeName{"U32", Dtype::u32},
    DtypeName{"U16", Dtype::u16},        DtypeName{"U8", Dtype::u8},
    DtypeName{"BOOL", Dtype::boolean},   DtypeName{"C64", Dtype::c64},
};

class Problems {
 public:
  explicit Problems(std::string_view file) : file_(file) {}

  void add(std::string_view what, std::string_view way_out = kAgain) {
    if (++count_ > kMostProblems) return;
    Diagnostic d;
    d.code = Code::bad_file;
    d.what = fmt::format("{}: {}", file_, what);
    d.ways_out = {std::string(way_out)};
    found_.add(std::move(d));
  }

  bool empty() const { return count_ == 0; }

  void throw_if_any() {
    if (count_ > kMostProblems) {
      const std::size_t more = std::exchange(count_, 0) - kMostProblems;
      add(fmt::format("{} more problems in this header", more));
    }
    found_.throw_if_any();
  }

 private:
  std::string_view file_;
  std::size_t count_ = 0;
  Diagnostics found_;
};

/// Reads one header; every step adds what it finds to `problems_`.
class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> file, std::string_view name)
      : file_(file), name_(name), problems_(name) {}

  SafetensorsHeader read() {
    const Json json = read_json();
    for (const auto& [name, value] : json.items()) {
      if (name == "__metadata__") {
        read_metadata(value);
      } else {
        read_entry(name, value);
      }
    }
    check_layout();
    problems_.throw_if_any();
    return std::move(header_);
  }

 private:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  std::string_view text(std::uint64_t begin, std::uint64_t count) const {
    return {reinterpret_cast<const char*>(file_.data()) + begin, count};
  }

  [[noreturn]] void fail(std::string_view what, std::string_view way_out = kAgain) {
    problems_.add(what, way_out);
    problems_.throw_if_any();
    throw InternalError("a problem was lost");
  }

  /// Files that are something else often enough to be told apart. Asked only when the header is
  /// bad: the first bytes of a good file are a number, which can look like anything.
  void refuse_other_formats() {
    constexpr std::string_view kLfs = "version https://git-lfs";
    const std::string_view start = text(0, std::min<std::uint64_t>(file_.size(), kLfs.size()));
    if (start == kLfs) {
      fail("this is a Git LFS pointer, not the weights themselves",
           "git lfs install && git lfs pull");
    }
    if (start.starts_with("PK\x03\x04") || start.starts_with("\x80\x02")) {
      fail("this is a PyTorch pickle file under another name",
           "load it with torch.load(file, weights_only=True) and write it with "
           "safetensors.torch.save_file");
    }
    if (start.starts_with("GGUF")) {
      fail("this is a GGUF file, not safetensors",
           "use the original checkpoint that the GGUF file was made from");
    }
  }

  Json read_json() {
    if (file_.size() < kLengthBytes) {
      fail(
          fmt::format("truncated: {} bytes, and a safetensors file starts with 8 bytes that give "
                      "the length of its header",
                      file_.size()));
    }
    std::uint64_t length = 0;
    for (std::size_t i = kLengthBytes; i-- > 0;) {
      length = length << 8 | std::to_integer<std::uint64_t>(file_[i]);
    }
    const std::uint64_t rest = file_.size() - kLengthBytes;
    if (rest == 0 || text(kLengthBytes, 1) != "{") refuse_other_formats();
    if (length > kLongestHeader) {
      fail(
          fmt::format("not a safetensors file: it gives {} bytes as the length of its header, and "
                      "the format allows {}",
                      length, kLongestHeader));
    }
    if (length > rest) {
      fail(fmt::format("truncated: the header has {} bytes and the file ends after {} of them",
                       length, rest));
    }
    const std::string_view json = text(kLengthBytes, length);
    if (!json.starts_with('{')) fail("the header does not start with '{'");
    header_.data_begin = kLengthBytes + length;
    data_bytes_ = rest - length;
    return parse_json(json, {.name = std::string(name_) + ": header", .max_depth = 8});
  }

  void read_metadata(const Json& value) {
    if (!value.is_object()) return problems_.add("__metadata__ is not an object of strings");
    for (const auto& [key, entry] : value.items()) {
      if (entry.is_string()) {
        header_.metadata.emplace(key, entry.get<std::string>());
      } else {
        problems_.add(fmt::format("__metadata__ {} is not a string", quote_text(key)));
      }
    }
  }

  void read_entry(const std::string& name, const Json& value) {
    const std::string tensor = "tensor " + quote_text(name);
    if (!value.is_object()) return reject(tensor + " is not described by an object");
    TensorEntry entry;
    entry.name = name;
    const bool dtype_ok = read_dtype(tensor, value, entry);
    const bool shape_ok = read_shape(tensor, value, entry);
    const std::optional<Range> range = read_range(tensor, value);
    if (!dtype_ok || !shape_ok || !range) {
      complete_ = false;
      return;
    }
    const std::optional<std::uint64_t> bytes = dense_bytes(entry.dtype, entry.shape);
    if (!bytes) {
      return reject(fmt::format("{} has shape [{}], too many elements for any file", tensor,
                                fmt::join(entry.shape, ", ")));
    }
    if (range->end - range->begin != *bytes) {
      return reject(fmt::format("{} is {}[{}], {} bytes, but its data_offsets span {}", tensor,
                                modelport::name(entry.dtype), fmt::join(entry.shape, ", "), *bytes,
                                range->end - range->begin));
    }
    entry.offset = range->begin;  // from data_begin until the layout is checked
    entry.bytes = *bytes;
    header_.tensors.push_back(std::move(entry));
  }

  void reject(std::string_view what) {
    problems_.add(what);
    complete_ = false;
  }

  bool read_dtype(const std::string& tensor, const Json& value, TensorEntry& entry) {
    const auto found = value.find("dtype");
    if (found == value.end() || !found->is_string()) {
      problems_.add(tensor + " has no dtype");
      return false;
    }
    const auto& text = found->get_ref<const std::string&>();
    const std::optional<Dtype> dtype = parse_safetensors_dtype(text);
    if (!dtype) {
      std::vector<std::string_view> names;
      for (const DtypeName& row : kNames) names.push_back(row.name);
      problems_.add(
          fmt::format("{} has dtype {}, which is not supported", tensor, quote_text(text)),
          fmt::format("convert the checkpoint to one of {}", fmt::join(names, " ")));
      return false;
    }
    entry.dtype = *dtype;
    return true;
  }

  bool read_shape(const std::string& tensor, const Json& value, TensorEntry& entry) {
    const auto found = value.find("shape");
    if (found == value.end() || !found->is_array()) {
      problems_.add(tensor + " has no shape");
      return false;
    }
    for (const Json& size : *found) {
      constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      if (!size.is_number_unsigned() || size.get<std::uint64_t>() > kMost) {
        problems_.add(tensor +
                      " has a shape whose sizes are not all whole numbers from 0 to 2^63-1");
        return false;
      }
      entry.shape.push_back(size.get<std::int64_t>());
    }
    return true;
  }

  std::optional<Range> read_range(const std::string& tensor, const Json& value) {
    const auto found = value.find("data_offsets");
    const bool pair = found != value.end() && found->is_array() && found->size() == 2 &&
                      (*found)[0].is_number_unsigned() && (*found)[1].is_number_unsigned();
    if (!pair) {
      problems_.add(tensor + " has no data_offsets (two whole numbers)");
      return std::nullopt;
    }
    const Range range{(*found)[0].get<std::uint64_t>(), (*found)[1].get<std::uint64_t>()};
    if (range.begin > range.end) {
      problems_.add(fmt::format("{} has data_offsets [{}, {}], and the end lies before the begin",
                                tensor, range.begin, range.end));
      return std::nullopt;
    }
    return range;
  }

  /// The format wants the tensors back to back: no overlap, no hole, nothing behind the last one.
  void check_layout() {
    std::vector<TensorEntry>& tensors = header_.tensors;
    std::sort(tensors.begin(), tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
      return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
    });
    std::uint64_t end = 0;
    std::size_t past_end = 0;
    const TensorEntry* before = nullptr;
    const TensorEntry* first_past_end = nullptr;
    for (const TensorEntry& tensor : tensors) {
      if (tensor.offset < end) {
        problems_.add(fmt::format("tensors {} and {} overlap", quote_text(before->name),
                                  quote_text(tensor.name)));
      } else if (tensor.offset > end && complete_) {
        problems_.add(fmt::format("{} bytes before tensor {} belong to no tensor",
                                  tensor.offset - end, quote_text(tensor.name)));
      }
      if (tensor.offset + tensor.bytes > data_bytes_ && past_end++ == 0) first_past_end = &tensor;
      if (before == nullptr || tensor.offset + tensor.bytes >= end) {
        end = tensor.offset + tensor.bytes;
        before = &tensor;
      }
    }
    if (first_past_end != nullptr) {
      problems_.add(fmt::format(
          "truncated: the header describes {} bytes of weights and the file holds {}; tensor {}{} "
          "would lie past its end",
          end, data_bytes_, quote_text(first_past_end->name),
          past_end > 1 ? fmt::format(" and {} more", past_end - 1) : ""));
    } else if (end < data_bytes_ && complete_) {
      problems_.add(
          fmt::format("{} bytes at the end of the file belong to no tensor", data_bytes_ - end));
    }
    if (!problems_.empty()) return;
    for (TensorEntry& tensor : tensors) tensor.offset += header_.data_begin;
  }

  std::span<const std::byte> file_;
  std::string_view name_;
  Problems problems_;
  SafetensorsHeader header_;
  std::uint64_t data_bytes_ = 0;
  bool complete_ = true;  // false: some entry was left out, so a hole may be its place
};

}  // namespace

SafetensorsHeader parse_safetensors(std::span<const std::byte> file, std::string_view name) {
  return HeaderReader(file, name).read();
}

std::optional<std::string_view> safetensors_name(Dtype dtype) {
  for (const DtypeName& row : kNames) {
    if (row.dtype == dtype) return row.name;
  }
  return std::nullopt;
}

std::optional<Dtype> parse_safetensors_dtype(std::string_view name) {
  for (const DtypeName& row : kNames) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> dense_bytes(Dtype dtype, std::span<const std::int64_t> shape) {
  std::uint64_t bytes = byte_size(dtype);
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : bytes;
}

}  // namespace modelport::weights
