// Walks torch.utils._pytree.treespec_dumps: [1, {"type": ..., "context": ..., "children_spec":
// [...]}].
#include "backends/pt2/treespec.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"

namespace modelport::pt2 {
namespace {

[[noreturn]] void fail(std::string_view why) {
  throw ExportError(
      Diagnostic{.code = Code::bad_file,
                 .what = fmt::format("the structure of the program's call is damaged: {}", why),
                 .where = {},
                 .module_path = {},
                 .notes = {},
                 .ways_out = {"save the program again with torch.export.save"}});
}

Json parse(std::string_view treespec) {
  Json json = parse_json(treespec, {.name = "the structure of the program's call"});
  if (!json.is_array() || json.size() != 2 || !json[1].is_object()) fail("it is no pytree");
  return std::move(json[1]);
}

bool is_leaf(const Json& node) { return node.at("type").is_null(); }

/// The keys of a dictionary or the fields of a class, where the context lists them; else numbers.
std::vector<std::string> child_names(const Json& node) {
  const std::size_t count = node.at("children_spec").size();
  std::vector<std::string> names;
  const Json& context = node.at("context");
  if (context.is_string()) {
    const Json keys = Json::parse(context.get_ref<const std::string&>(), nullptr, false);
    if (keys.is_array() && keys.size() == count) {
      for (const Json& key : keys)
        names.push_back(key.is_string() ? key.get<std::string>() : key.dump());
      return names;
    }
  }
  for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

void collect(const Json& node, const std::string& path, std::vector<std::string>& into) {
  if (is_leaf(node)) {
    into.push_back(path);
    return;
  }
  const std::vector<std::string> names = child_names(node);
  const Json& children = node.at("children_spec");
  for (std::size_t i = 0; i < children.size(); ++i) {
    collect(children[i], path.empty() ? names[i] : path + "." + names[i], into);
  }
}

CallNames call_names(const Json& root, const std::vector<std::string>& positional) {
  CallNames names;
  const Json& parts = root.at("children_spec");
  if (parts.size() != 2) fail("a call has positional and keyword arguments");
  const Json& args = parts[0].at("children_spec");
  for (std::size_t i = 0; i < args.size(); ++i) {
    names.arguments.push_back(i < positional.size() ? positional[i] : fmt::format("arg_{}", i));
    collect(args[i], names.arguments.back(), names.leaves);
  }
  const std::vector<std::string> keys = child_names(parts[1]);
  const Json& kwargs = parts[1].at("children_spec");
  for (std::size_t i = 0; i < kwargs.size(); ++i) {
    names.arguments.push_back(keys[i]);
    collect(kwargs[i], keys[i], names.leaves);
  }
  return names;
}

}  // namespace

std::vector<std::string> output_names(std::string_view treespec) {
  try {
    std::vector<std::string> names;
    collect(parse(treespec), "", names);
    for (std::string& name : names) {
      if (name.empty()) name = "output";
    }
    return names;
  } catch (const Json::exception& error) {
    fail(error.what());
  }
}

CallNames input_names(std::string_view treespec, const std::vector<std::string>& positional) {
  try {
    return call_names(parse(treespec), positional);
  } catch (const Json::exception& error) {
    fail(error.what());
  }
}

}  // namespace modelport::pt2
