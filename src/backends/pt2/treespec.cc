// Reads torch.utils._pytree.treespec_dumps: [1, {"type": ..., "context": ..., "children_spec":
// [...]}].
#include "backends/pt2/treespec.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"

namespace modelport::pt2 {
namespace {

/// Of a dotted path. Every leaf has one, so long ones would make a small file large.
constexpr std::size_t kLongestPath = 1024;

const JsonSource kSource{.name = "the structure of the program's call",
                         .ways_out = {"save the program again with torch.export.save"}};

[[noreturn]] void fail(std::string_view why) {
  throw ExportError(
      Diagnostic{.code = Code::bad_file,
                 .what = fmt::format("the structure of the program's call is damaged: {}", why),
                 .where = {},
                 .module_path = {},
                 .notes = {},
                 .ways_out = kSource.ways_out});
}

/// torch writes the context as JSON inside a text, but for the name of a named tuple.
bool is_json_text(const std::string& type, const Json& context) {
  return context.is_string() && type != "collections.namedtuple";
}

/// The keys of a dictionary or the fields of a class, where the context lists them; else numbers.
std::vector<std::string> child_names(const Json& keys, std::size_t count) {
  const bool listed = keys.is_array() && keys.size() == count &&
                      std::ranges::all_of(keys, [](const Json& key) { return key.is_primitive(); });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    if (!listed)
      names.push_back(std::to_string(i));
    else
      names.push_back(keys[i].is_string() ? keys[i].get<std::string>() : keys[i].dump());
  }
  return names;
}

/// `json` is a parsed document, so its depth is limited.
Structure structure_of(const Json& json) {
  const Json& type = json.at("type");
  const Json& children = json.at("children_spec");
  if (!children.is_array()) fail("children are no list");
  Structure structure;
  if (type.is_null()) {
    if (!json.at("context").is_null() || !children.empty()) fail("a leaf has no parts");
    return structure;
  }
  structure.type = type.get<std::string>();
  if (structure.type.empty()) fail("a type has no name");
  const Json& context = json.at("context");
  const bool is_text = is_json_text(structure.type, context);
  structure.context = is_text ? context.get<std::string>() : context.dump();
  const Json parsed = is_text ? parse_json(structure.context, kSource) : context;
  structure.names = child_names(parsed, children.size());
  for (const Json& child : children) structure.children.push_back(structure_of(child));
  return structure;
}

void collect(const Structure& structure, const std::string& path, std::vector<std::string>& into) {
  if (path.size() > kLongestPath) fail("names in it are too long");
  if (structure.is_leaf()) {
    into.push_back(path);
    return;
  }
  const std::vector<std::string>& names = structure.names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    collect(structure.children[i], path.empty() ? names[i] : path + "." + names[i], into);
  }
}

}  // namespace

Structure parse_structure(std::string_view treespec) {
  const Json json = parse_json(treespec, kSource);
  if (!json.is_array() || json.size() != 2 || json[0] != 1 || !json[1].is_object())
    fail("it is no pytree");
  try {
    return structure_of(json[1]);
  } catch (const Json::exception& error) {
    fail(error.what());
  }
}

std::vector<std::string> output_names(const Structure& result) {
  std::vector<std::string> names;
  collect(result, "", names);
  for (std::string& name : names) {
    if (name.empty()) name = "output";
  }
  return names;
}

CallNames input_names(const Structure& call, const std::vector<std::string>& positional) {
  CallNames names;
  if (call.children.size() != 2) fail("a call has positional and keyword arguments");
  const std::vector<Structure>& args = call.children[0].children;
  for (std::size_t i = 0; i < args.size(); ++i) {
    names.arguments.push_back(i < positional.size() ? positional[i] : fmt::format("arg_{}", i));
    collect(args[i], names.arguments.back(), names.leaves);
  }
  const std::vector<std::string>& keys = call.children[1].names;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    names.arguments.push_back(keys[i]);
    collect(call.children[1].children[i], keys[i], names.leaves);
  }
  return names;
}

}  // namespace modelport::pt2
