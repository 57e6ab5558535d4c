#include "base/json.h"

#include <doctest/doctest.h>

#include <string>

#include "base/error.h"

namespace modelport {
namespace {

std::vector<std::string> errors_of(std::string_view text, std::size_t max_depth = 128) {
  try {
    (void)parse_json(text, {.name = "x.json", .max_depth = max_depth});
  } catch (const ExportError& error) {
    std::vector<std::string> found;
    for (const Diagnostic& d : error.diagnostics()) {
      CHECK(d.code == Code::bad_file);
      CHECK(d.ways_out == std::vector<std::string>{"download the file again"});
      found.push_back(d.what);
    }
    return found;
  }
  return {};
}

TEST_CASE("parse_json builds what the text says") {
  const std::string text = R"({"a":[1,-2,2.5,"x",true,null,{"b":{}},[]],"c":18446744073709551615})";
  const Json json = parse_json(text, {.name = "x.json"});
  CHECK(json.dump() == text);
  CHECK(json["a"][0].is_number_unsigned());
  CHECK(json["a"][1].is_number_integer());
  CHECK(parse_json(" 7 ", {.name = "x"}) == 7);
}

TEST_CASE("broken text is reported with its place and without its bytes") {
  CHECK(errors_of("") == std::vector<std::string>{
                             "x.json: not valid JSON at byte 1: syntax error while parsing "
                             "value - unexpected end of input; expected '[', '{', or a literal"});
  CHECK(errors_of("{\"a\":1} 2").size() == 1);
  CHECK(errors_of("{'a':1}").size() == 1);
  CHECK(errors_of("[1e999]") ==
        std::vector<std::string>{
            "x.json: not valid JSON at byte 6: number overflow parsing '1e999'"});
  CHECK(errors_of("\"\xff\xfe\"").front() ==
        "x.json: not valid JSON at byte 2: syntax error while parsing value - invalid string: "
        "ill-formed UTF-8 byte");
  CHECK(errors_of("[NaN]").size() == 1);
  CHECK(errors_of("// comment\n1").size() == 1);
}

TEST_CASE("every duplicate key of one object is reported, equal keys of two objects are not") {
  CHECK(errors_of(R"({"a":1,"b":{"a":2},"a":3,"b":4})") ==
        std::vector<std::string>{"x.json: the key \"a\" occurs twice in one object",
                                 "x.json: the key \"b\" occurs twice in one object"});
  CHECK(errors_of(R"([{"a":1},{"a":1}])").empty());
}

TEST_CASE("nesting beyond the limit is an error, also when it is hostile") {
  CHECK(errors_of("[[[]]]", 3).empty());
  CHECK(errors_of("[[[[]]]]", 3) ==
        std::vector<std::string>{"x.json: JSON nested deeper than 3 levels"});
  CHECK(errors_of(std::string(5'000'000, '[')).size() == 1);
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += "{\"a\":";
  CHECK(errors_of(objects).size() == 1);
}

TEST_CASE("quoted text is escaped, valid UTF-8 and short") {
  CHECK(quote_text("a.b") == "\"a.b\"");
  CHECK(quote_text("a\"\n\x1b") == "\"a\\\"\\n\\u001b\"");
  CHECK(quote_text("\xff") == "\"\xef\xbf\xbd\"");
  CHECK(quote_text(std::string(10'000, 'x')).size() < 200);
  std::string accents;
  for (int i = 0; i < 1000; ++i) accents += "é";
  for (const std::string& text : {accents, "x" + accents}) {
    CHECK(quote_text(text).find("\xef\xbf\xbd") == std::string::npos);  // no half character
  }
}

}  // namespace
}  // namespace modelport
