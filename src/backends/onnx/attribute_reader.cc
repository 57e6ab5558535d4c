#include "backends/onnx/attribute_reader.h"

#include <fmt/format.h>

#include <vector>

#include "backends/onnx/proto.h"
#include "backends/onnx/tensor_reader.h"

namespace modelport::onnx {
namespace {

using proto::Attribute;
using protozero::data_view;
using protozero::pbf_wire_type;

constexpr std::size_t kMostItems = 16;
constexpr std::size_t kMostBytes = 80;

class AttributeReader {
 public:
  explicit AttributeReader(const data_view& data) : reader_(data) {
    while (reader_.next()) take();
  }

  std::string text() const {
    if (!is_list_) return name_ + "=" + (items_.empty() ? other_ : items_.front());
    return fmt::format("{}=[{}{}]", name_, fmt::join(items_, ", "), left_out_ ? ", …" : "");
  }

 private:
  void take() {
    switch (reader_.tag()) {
      case Attribute::name:
        name_ = of_text();
        break;
      case Attribute::f:
        floats();
        break;
      case Attribute::i:
        integers();
        break;
      case Attribute::s:
        add(fmt::format("\"{}\"", of_text()));
        break;
      case Attribute::floats:
        is_list_ = true, floats();
        break;
      case Attribute::ints:
        is_list_ = true, integers();
        break;
      case Attribute::strings:
        is_list_ = true, add(fmt::format("\"{}\"", of_text()));
        break;
      case Attribute::g:
        other_ = "graph", reader_.skip();
        break;
      default:
        reader_.skip();
        break;
    }
  }

  void add(std::string item) {
    left_out_ = items_.size() == kMostItems;
    if (!left_out_) items_.push_back(std::move(item));
  }

  std::string of_text() {
    if (reader_.wire_type() != pbf_wire_type::length_delimited) return reader_.skip(), "";
    const data_view view = reader_.get_view();
    if (view.size() <= kMostBytes) return onnx::text(view);
    return std::string(view.data(), kMostBytes) + "…";
  }

  // Lists come one by one, or packed.
  void integers() {
    if (reader_.wire_type() == pbf_wire_type::varint) {
      add(std::to_string(reader_.get_int64()));
    } else if (reader_.wire_type() == pbf_wire_type::length_delimited) {
      for (const std::int64_t item : reader_.get_packed_int64()) add(std::to_string(item));
    } else {
      reader_.skip();
    }
  }

  void floats() {
    if (reader_.wire_type() == pbf_wire_type::fixed32) {
      add(fmt::format("{}", reader_.get_float()));
    } else if (reader_.wire_type() == pbf_wire_type::length_delimited) {
      for (const float item : reader_.get_packed_float()) add(fmt::format("{}", item));
    } else {
      reader_.skip();
    }
  }

  protozero::pbf_message<Attribute> reader_;
  std::string name_;
  std::string other_ = "tensor";
  std::vector<std::string> items_;
  bool is_list_ = false;
  bool left_out_ = false;
};

}  // namespace

std::string attribute_text(const data_view& attribute) { return AttributeReader(attribute).text(); }

}  // namespace modelport::onnx
