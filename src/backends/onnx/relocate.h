// A model whose weights lie in files of other names.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace modelport::onnx {

/// The model with these names of weight files, old to new, and otherwise the same. Inner graphs
/// keep theirs: weights of ours are in the main graph. `name` is for the message.
std::string relocate(std::span<const std::byte> model,
                     const std::map<std::string, std::string>& files, const std::string& name);

}  // namespace modelport::onnx
