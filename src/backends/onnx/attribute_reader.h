// Attributes of ONNX nodes as people read them.
#pragma once

#include <protozero/pbf_message.hpp>
#include <string>

namespace modelport::onnx {

/// "perm=[0, 2, 1, 3]". Long lists and texts are cut; a graph or a tensor is named as what it is.
std::string attribute_text(const protozero::data_view& attribute);

}  // namespace modelport::onnx
