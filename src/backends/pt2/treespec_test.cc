// Structures of calls as torch writes them, and texts that are none.
#include "backends/pt2/treespec.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/json.h"

namespace modelport::pt2 {
namespace {

const std::string kLeaf = R"({"type": null, "context": null, "children_spec": []})";

std::string node(const std::string& type, const std::string& context, const std::string& children) {
  return R"({"type": ")" + type + R"(", "context": )" + context + R"(, "children_spec": [)" +
         children + "]}";
}

std::string repeated(std::string_view text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

std::string error_of(const std::string& text) {
  try {
    const Structure structure = parse_structure("[1, " + text + "]");
    output_names(structure);
  } catch (const ExportError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("leaves are named by keys and places") {
  const std::string pair = node("builtins.tuple", "\"null\"", kLeaf + ", " + kLeaf);
  const std::string keys = R"("[\"x\", 7]")";
  const std::string result = node("builtins.dict", keys, kLeaf + ", " + pair);
  const Structure structure = parse_structure("[1, " + result + "]");
  CHECK(structure.type == "builtins.dict");
  CHECK(structure.context == R"(["x", 7])");
  CHECK(output_names(structure) == std::vector<std::string>{"x", "7.0", "7.1"});
}

TEST_CASE("the context keeps the order of the file") {
  const std::string context = R"({"z": 1, "a": 2})";
  const std::string text = Json(context).dump();
  CHECK(parse_structure("[1, " + node("my:Cache", text, kLeaf) + "]").context == context);
}

TEST_CASE("a structure nested too deeply is an error, however it is nested") {
  const std::size_t many = 200'000;
  const std::string brackets = repeated("[", many) + repeated("]", many);
  CHECK(error_of(brackets).find("E0103") != std::string::npos);
  CHECK(error_of(node("builtins.dict", brackets, kLeaf)).find("nested deeper") !=
        std::string::npos);
  CHECK(error_of(node("builtins.dict", "\"" + brackets + "\"", kLeaf)).find("nested deeper") !=
        std::string::npos);
  const std::string open = R"({"type": "builtins.list", "context": null, "children_spec": [)";
  CHECK(error_of(repeated(open, many) + repeated("]}", many)).find("nested deeper") !=
        std::string::npos);
}

TEST_CASE("names that would make a small file large are an error") {
  const std::string key = R"("[\")" + std::string(5000, 'k') + R"(\"]")";
  CHECK(error_of(node("builtins.dict", key, kLeaf)).find("too long") != std::string::npos);
}

TEST_CASE("text that is no structure is an error") {
  CHECK(error_of("7").find("it is no pytree") != std::string::npos);
  CHECK(error_of("{}").find("damaged") != std::string::npos);
  CHECK(error_of(node("", "null", "")).find("no name") != std::string::npos);
  CHECK(error_of(node("builtins.list", "null", "3")).find("damaged") != std::string::npos);
  CHECK(error_of(R"({"type": null, "context": null, "children_spec": [)" + kLeaf + "]}")
            .find("a leaf has no parts") != std::string::npos);
  CHECK(error_of(node("builtins.dict", "\"not json\"", kLeaf)).find("E0103") != std::string::npos);
}

}  // namespace modelport::pt2
