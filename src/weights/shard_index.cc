#include "weights/shard_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace modelport::weights {
namespace {

/// An index comes from the network: it must not lead out of its folder.
bool stays_below(const std::string& file) {
  if (file.empty() || file.find('\0') != file.npos) return false;
  const std::filesystem::path path(file);
  return path.is_relative() && path.has_filename() &&
         std::none_of(path.begin(), path.end(), [](const auto& part) { return part == ".."; });
}

}  // namespace

std::map<std::string, std::string> parse_shard_index(std::string_view text, std::string_view name) {
  constexpr std::size_t kMostProblems = 50;
  Diagnostics found;
  const auto refuse = [&](const std::string& what) {
    if (found.all().size() >= kMostProblems) return;
    Diagnostic d;
    d.code = Code::bad_file;
    d.what = fmt::format("{}: {}", name, what);
    d.ways_out = {"download the file again"};
    found.add(std::move(d));
  };
  const Json json = parse_json(text, {.name = std::string(name), .max_depth = 16});
  std::map<std::string, std::string> files;
  const auto weight_map = json.is_object() ? json.find("weight_map") : json.end();
  if (weight_map == json.end() || !weight_map->is_object()) {
    refuse("it has no object \"weight_map\" that says which file holds which tensor");
    found.throw_if_any();
  }
  for (const auto& [tensor, file] : weight_map->items()) {
    if (!file.is_string()) {
      refuse(fmt::format("tensor {} is not mapped to a file name", quote_text(tensor)));
    } else if (!stays_below(file.get_ref<const std::string&>())) {
      refuse(fmt::format("tensor {} is mapped to {}, which is not a file in the same folder",
                         quote_text(tensor), quote_text(file.get_ref<const std::string&>())));
    } else {
      files.emplace(tensor,
                    std::filesystem::path(file.get_ref<const std::string&>()).lexically_normal());
    }
  }
  if (files.empty() && found.empty()) refuse("its \"weight_map\" names no tensor");
  found.throw_if_any();
  return files;
}

}  // namespace modelport::weights
