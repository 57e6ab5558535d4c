#include "driver/earlier_export.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/json.h"

namespace modelport::driver {
namespace {

constexpr std::string_view kUnfinished = ".partial";
constexpr std::size_t kWord = 8;  // letters of unique_word()

bool is_hex(std::string_view text) {
  return text.size() == kWord && text.find_first_not_of("0123456789abcdef") == text.npos;
}

/// Below the folder, whatever the text says.
bool stays_inside(const Path& path) {
  return !path.empty() && path.is_relative() &&
         std::ranges::none_of(path, [](const Path& part) { return part == ".." || part == "."; });
}

}  // namespace

bool is_data_of(const std::string& name, const std::string& model) {
  const std::string first = model + "_data";
  if (!name.starts_with(first)) return false;
  const std::string_view rest = std::string_view(name).substr(first.size());
  if (rest.empty()) return true;
  const std::string_view number = rest.substr(1);
  if (rest[0] == '-') return is_hex(number);
  if (rest[0] != '_') return false;
  const auto end = std::min(number.find('-'), number.size());
  const bool counted =
      end > 0 && number.substr(0, end).find_first_not_of("0123456789") == number.npos;
  return counted && (end == number.size() || is_hex(number.substr(end + 1)));
}

bool is_unfinished_name(const std::string& name) {
  const std::string_view view = name;
  if (!view.starts_with('.') || !view.ends_with(kUnfinished)) return false;
  const std::string_view stem = view.substr(0, view.size() - kUnfinished.size());
  const auto dot = stem.rfind('.');
  return dot != 0 && is_hex(stem.substr(dot + 1));
}

std::vector<Path> read_list(const Path& folder) {
  const Path path = folder / kList;
  std::ifstream file(path, std::ios::binary);
  if (!file) return {};
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::vector<Path> found;
  try {
    const Json list = parse_json(text, {.name = path.string()});
    const auto files = list.find("files");
    if (files == list.end() || !files->is_array()) return {};
    for (const Json& name : *files)
      if (name.is_string() && stays_inside(name.get<std::string>()))
        found.emplace_back(name.get<std::string>());
  } catch (const ExportError&) {  // a list that cannot be read says nothing
    return {};
  }
  return found;
}

void write_list(const Path& folder, const std::vector<Path>& files) {
  Json list;
  list["files"] = Json::array();
  for (const Path& file : files) list["files"].push_back(file.generic_string());
  write_file(folder / kList, list.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

EarlierExport::EarlierExport(const Path& folder, std::vector<std::string> parts)
    : parts_(std::move(parts)) {
  for (Path& file : read_list(folder)) listed_.insert(std::move(file));
}

bool EarlierExport::wrote(const Path& relative) const {
  if (relative == kList || listed_.contains(relative)) return true;
  // transformers.js has its models one folder below.
  const Path folder = relative.parent_path();
  if (!folder.empty() && folder != "onnx") return false;
  const std::string name = relative.filename().string();
  return std::ranges::any_of(parts_, [&](const std::string& part) {
    const std::string model = part + ".onnx";
    return name == part || name == model || is_data_of(name, model);
  });
}

}  // namespace modelport::driver
