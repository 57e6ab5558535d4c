#include "backends/onnx/relocate.h"

#include <fmt/format.h>

#include <protozero/pbf_builder.hpp>
#include <protozero/pbf_message.hpp>

#include "backends/onnx/proto.h"
#include "base/error.h"

namespace modelport::onnx {
namespace {

using protozero::data_view;
using protozero::pbf_reader;
using protozero::pbf_writer;
using Files = std::map<std::string, std::string>;

template <typename Tag>
constexpr protozero::pbf_tag_type number(Tag tag) {
  return static_cast<protozero::pbf_tag_type>(tag);
}

/// A field as it is. The tag is read first: compilers evaluate arguments in either order, and a
/// value that was read ends its field.
void copy_field(pbf_reader& from, pbf_writer& to) {
  const protozero::pbf_tag_type tag = from.tag();
  switch (from.wire_type()) {
    case protozero::pbf_wire_type::varint:
      to.add_uint64(tag, from.get_uint64());
      break;
    case protozero::pbf_wire_type::fixed64:
      to.add_fixed64(tag, from.get_fixed64());
      break;
    case protozero::pbf_wire_type::fixed32:
      to.add_fixed32(tag, from.get_fixed32());
      break;
    case protozero::pbf_wire_type::length_delimited:
      to.add_bytes(tag, from.get_view());
      break;
    default:
      throw protozero::unknown_pbf_wire_type_exception();
  }
}

std::string entry(data_view given, const Files& files) {
  std::string key;
  std::string value;
  for (pbf_reader reader(given); reader.next();) {
    if (reader.tag() == number(proto::Entry::key)) {
      key = reader.get_string();
    } else if (reader.tag() == number(proto::Entry::value)) {
      value = reader.get_string();
    } else {
      reader.skip();
    }
  }
  if (const auto other = files.find(value); key == "location" && other != files.end())
    value = other->second;
  std::string data;
  pbf_writer writer(data);
  writer.add_string(number(proto::Entry::key), key);
  writer.add_string(number(proto::Entry::value), value);
  return data;
}

/// The message with one of its kinds of field rewritten.
template <typename Tag, typename Rewrite>
std::string with_field(data_view given, Tag field, const Rewrite& rewrite) {
  std::string data;
  data.reserve(given.size());
  pbf_writer writer(data);
  for (pbf_reader reader(given); reader.next();) {
    if (reader.tag() == number(field)) {
      writer.add_message(number(field), rewrite(reader.get_view()));
    } else {
      copy_field(reader, writer);
    }
  }
  return data;
}

}  // namespace

std::string relocate(std::span<const std::byte> model, const Files& files,
                     const std::string& name) {
  const auto tensor = [&](data_view given) {
    return with_field(given, proto::Tensor::external_data,
                      [&](data_view pair) { return entry(pair, files); });
  };
  const auto graph = [&](data_view given) {
    return with_field(given, proto::Graph::initializer, tensor);
  };
  try {
    return with_field({reinterpret_cast<const char*>(model.data()), model.size()},
                      proto::Model::graph, graph);
  } catch (const protozero::exception&) {
    throw ExportError(Diagnostic{.code = Code::bad_file,
                                 .what = fmt::format("{} is no ONNX model", name),
                                 .where = {},
                                 .module_path = {},
                                 .notes = {},
                                 .ways_out = {"export the model again"}});
  }
}

}  // namespace modelport::onnx
