// model.safetensors.index.json: which shard of a checkpoint holds which tensor.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace modelport::weights {

/// Tensor name -> file name, which is a plain path below the index's own folder. Throws ExportError
/// (Code::bad_file) with every problem.
std::map<std::string, std::string> parse_shard_index(std::string_view text, std::string_view name);

}  // namespace modelport::weights
