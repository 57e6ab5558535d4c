#include "backends/executorch/literal.h"

#include <fmt/format.h>

#include <span>

#include "weights/convert.h"

namespace modelport::executorch {
namespace {

template <class Number>
void append(std::string& raw, Number number) {
  raw.append(reinterpret_cast<const char*>(&number), sizeof(Number));
}

void append_integer(std::string& raw, Dtype dtype, std::int64_t value) {
  raw.append(reinterpret_cast<const char*>(&value), byte_size(dtype));  // little-endian
}

std::string bytes_of(const ir::ArgList& values, Dtype dtype) {
  std::string raw;
  for (const ir::Arg& item : values) {
    if (const double* real = item.get<double>()) {
      if (!is_floating(dtype)) throw InternalError("et.constant has a fraction among integers");
      append(raw, *real);
    } else if (const bool* truth = item.get<bool>()) {
      append_integer(raw, dtype, *truth ? 1 : 0);
    } else {
      const shape::Int* number = item.get<shape::Int>();
      if (number == nullptr || !number->constant())
        throw InternalError("et.constant has something other than numbers");
      if (is_floating(dtype)) {
        append(raw, static_cast<double>(*number->constant()));
      } else {
        append_integer(raw, dtype, *number->constant());
      }
    }
  }
  if (!is_floating(dtype) || dtype == Dtype::f64) return raw;
  std::string converted(values.size() * byte_size(dtype), '\0');
  weights::convert(Dtype::f64, std::as_bytes(std::span(raw)), dtype,
                   std::as_writable_bytes(std::span(converted)));
  return converted;
}

std::int64_t integer(const ir::Node& node, std::string_view name) {
  const ir::Arg* arg = node.find(name);
  const shape::Int* number = arg == nullptr ? nullptr : arg->get<shape::Int>();
  if (number == nullptr || !number->constant())
    throw InternalError(fmt::format("{} needs {}", node.op, name));
  return *number->constant();
}

}  // namespace

std::string literal_bytes(const ir::Graph& graph, const ir::Node& node) {
  const ir::Arg* values = node.find("values");
  if (values == nullptr || values->get<ir::ArgList>() == nullptr)
    throw InternalError("et.constant needs values");
  const ir::TensorType& type = graph.value(node.results[0]).tensor();
  std::string bytes = bytes_of(*values->get<ir::ArgList>(), type.dtype);
  std::uint64_t count = byte_size(type.dtype);
  for (const shape::Int& size : type.shape)
    count *= static_cast<std::uint64_t>(size.constant().value_or(0));
  if (bytes.size() != count)
    throw InternalError("et.constant has other values than its type wants");
  return bytes;
}

weights::Scheme scheme_of(const ir::Node& quantize) {
  const ir::Arg* layout = quantize.find("layout");
  const std::string* name = layout == nullptr ? nullptr : layout->get<std::string>();
  const auto known = name == nullptr ? std::nullopt : weights::parse_layout(*name);
  if (!known) throw InternalError("et.quantize needs a layout");
  return {.layout = *known,
          .bits = static_cast<int>(integer(quantize, "bits")),
          .group = integer(quantize, "group")};
}

}  // namespace modelport::executorch
