#include "weights/safetensors.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "base/error.h"
#include "base/mapped_file.h"

namespace modelport::weights {
namespace {

using Texts = std::vector<std::string>;

std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xFF);
  return bytes;
}

std::string file_of(const std::string& header, std::size_t data_bytes) {
  return length_bytes(header.size()) + header + std::string(data_bytes, '\0');
}

SafetensorsHeader parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file)), "m.safetensors");
}

Texts errors_of(const std::string& file) {
  Texts found;
  try {
    (void)parse(file);
  } catch (const ExportError& error) {
    for (const Diagnostic& d : error.diagnostics()) {
      CHECK(d.code == Code::bad_file);
      CHECK(!d.ways_out.empty());
      found.push_back(d.what);
    }
  }
  return found;
}

/// The only error of a header with one tensor "a" that is described by `fields`.
std::string error_of_tensor(const std::string& fields, std::size_t data_bytes = 4) {
  const Texts found = errors_of(file_of("{\"a\":{" + fields + "}}", data_bytes));
  CHECK(found.size() == 1);
  return found.empty() ? "" : found.front();
}

TEST_CASE("a header gives names, dtypes, shapes and places in the file, in file order") {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]},)"
      R"("b":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
      R"("c":{"dtype":"BOOL","shape":[],"data_offsets":[22,23]}}   )";
  const SafetensorsHeader parsed = parse(file_of(header, 23));
  const std::uint64_t begin = 8 + header.size();
  CHECK(parsed.data_begin == begin);
  CHECK(parsed.metadata == std::map<std::string, std::string>{{"format", "pt"}});
  REQUIRE(parsed.tensors.size() == 3);
  CHECK(parsed.tensors[0] == TensorEntry{"b", Dtype::f32, {2, 2}, begin, 16});
  CHECK(parsed.tensors[1] == TensorEntry{"a", Dtype::bf16, {3}, begin + 16, 6});
  CHECK(parsed.tensors[2] == TensorEntry{"c", Dtype::boolean, {}, begin + 22, 1});
}

TEST_CASE("a header without tensors and tensors without elements are fine") {
  CHECK(parse(file_of("{}", 0)).tensors.empty());
  const SafetensorsHeader parsed =
      parse(file_of(R"({"a":{"dtype":"F64","shape":[0,4],"data_offsets":[0,0]},)"
                    R"("b":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})",
                    1));
  CHECK(parsed.tensors.size() == 2);
}

TEST_CASE("every dtype has a name in the format and comes back from it, but for c128") {
  for (const DtypeFacts& row : kDtypes) {
    const auto name = safetensors_name(row.dtype);
    if (row.dtype == Dtype::c128) {
      CHECK(!name);
      continue;
    }
    REQUIRE(name);
    CHECK(parse_safetensors_dtype(*name) == row.dtype);
  }
  CHECK(!parse_safetensors_dtype("f32"));
}

TEST_CASE("a file that ends inside its length, its header or its weights is called truncated") {
  CHECK(errors_of("") == Texts{"m.safetensors: truncated: 0 bytes, and a safetensors file starts "
                               "with 8 bytes that give the length of its header"});
  CHECK(errors_of("abc").size() == 1);
  CHECK(errors_of(length_bytes(100) + "{}") ==
        Texts{"m.safetensors: truncated: the header has 100 bytes and the file ends after 2 of "
              "them"});
  const std::string two = R"({"a":{"dtype":"I8","shape":[6],"data_offsets":[0,6]},)"
                          R"("b":{"dtype":"I8","shape":[4],"data_offsets":[6,10]},)"
                          R"("c":{"dtype":"I8","shape":[4],"data_offsets":[10,14]}})";
  CHECK(errors_of(file_of(two, 14)).empty());
  CHECK(errors_of(file_of(two, 13)) ==
        Texts{"m.safetensors: truncated: the header describes 14 bytes of weights and the file "
              "holds 13; tensor \"c\" would lie past its end"});
  CHECK(errors_of(file_of(two, 7)) ==
        Texts{"m.safetensors: truncated: the header describes 14 bytes of weights and the file "
              "holds 7; tensor \"b\" and 1 more would lie past its end"});
}

TEST_CASE("a length beyond the format's bound is refused before anything is read") {
  CHECK(errors_of(length_bytes(100'000'001) + "{}").front().find("not a safetensors file") !=
        std::string::npos);
  CHECK(errors_of(length_bytes(~std::uint64_t{0}) + "{}").size() == 1);
}

TEST_CASE("a header that is not a JSON object is refused") {
  CHECK(errors_of(file_of("[1]", 0)) == Texts{"m.safetensors: the header does not start with '{'"});
  CHECK(errors_of(file_of("", 0)) == Texts{"m.safetensors: the header does not start with '{'"});
  CHECK(errors_of(file_of(" {}", 0)).size() == 1);
  CHECK(errors_of(file_of("{\"a\":", 0))
            .front()
            .starts_with("m.safetensors: header: not valid JSON at byte 6: "));
  CHECK(errors_of(file_of("{}{}", 0)).size() == 1);
  CHECK(errors_of(file_of("{\"a\":" + std::string(100'000, '['), 0)) ==
        Texts{"m.safetensors: header: JSON nested deeper than 8 levels"});
}

TEST_CASE("a name that occurs twice is refused") {
  const std::string a = R"("a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]})";
  CHECK(errors_of(file_of("{" + a + "," + a + "}", 1)) ==
        Texts{"m.safetensors: header: the key \"a\" occurs twice in one object"});
}

TEST_CASE("a tensor that is described badly is named with what is wrong") {
  const std::string shape = R"("shape":[1],)";
  const std::string dtype = R"("dtype":"F32",)";
  const std::string offsets = R"("data_offsets":[0,4])";
  const std::string a = "m.safetensors: tensor \"a\" ";
  CHECK(error_of_tensor(shape + offsets) == a + "has no dtype");
  CHECK(error_of_tensor(R"("dtype":"F4",)" + shape + offsets) ==
        a + "has dtype \"F4\", which is not supported");
  CHECK(error_of_tensor(dtype + offsets) == a + "has no shape");
  for (const char* bad : {"-1", "1.0", "\"1\"", "null", "9223372036854775808", "1e3"}) {
    CHECK(error_of_tensor(dtype + "\"shape\":[" + bad + "]," + offsets) ==
          a + "has a shape whose sizes are not all whole numbers from 0 to 2^63-1");
  }
  for (const char* bad : {"", "0", "0,4,8", "0,-4", "0.0,4", "0,\"4\"", "0,1e400"}) {
    CAPTURE(bad);
    CHECK(errors_of(file_of("{\"a\":{" + dtype + shape + "\"data_offsets\":[" + bad + "]}}", 4))
              .size() == 1);
  }
  CHECK(error_of_tensor(dtype + shape + R"("data_offsets":[4,0])") ==
        a + "has data_offsets [4, 0], and the end lies before the begin");
  CHECK(error_of_tensor(dtype + R"("shape":[3],)" + offsets) ==
        a + "is f32[3], 12 bytes, but its data_offsets span 4");
  CHECK(error_of_tensor(dtype + R"("shape":[4611686018427387904,4],)" + offsets) ==
        a + "has shape [4611686018427387904, 4], too many elements for any file");
  CHECK(errors_of(file_of(R"({"a":[]})", 0)) == Texts{a + "is not described by an object"});
}

TEST_CASE("metadata must be an object of strings") {
  CHECK(errors_of(file_of(R"({"__metadata__":1})", 0)) ==
        Texts{"m.safetensors: __metadata__ is not an object of strings"});
  CHECK(errors_of(file_of(R"({"__metadata__":{"k":1}})", 0)) ==
        Texts{"m.safetensors: __metadata__ \"k\" is not a string"});
}

TEST_CASE("overlaps, holes and bytes behind the last tensor are refused, as the format says") {
  const auto tensor = [](const std::string& name, const std::string& offsets) {
    return "\"" + name + R"(":{"dtype":"I32","shape":[1],"data_offsets":[)" + offsets + "]}";
  };
  const auto two = [&](const char* a, const char* b) {
    return "{" + tensor("a", a) + "," + tensor("b", b) + "}";
  };
  CHECK(errors_of(file_of(two("0,4", "4,8"), 8)).empty());
  CHECK(errors_of(file_of(two("0,4", "2,6"), 6)) ==
        Texts{"m.safetensors: tensors \"a\" and \"b\" overlap"});
  CHECK(errors_of(file_of(two("0,4", "0,4"), 4)) ==
        Texts{"m.safetensors: tensors \"a\" and \"b\" overlap"});
  CHECK(errors_of(file_of(two("0,4", "7,11"), 11)) ==
        Texts{"m.safetensors: 3 bytes before tensor \"b\" belong to no tensor"});
  CHECK(errors_of(file_of(two("0,4", "4,8"), 9)) ==
        Texts{"m.safetensors: 1 bytes at the end of the file belong to no tensor"});
}

TEST_CASE("offsets at the end of the number range do not wrap around") {
  const std::string header = R"({"a":{"dtype":"I8","shape":[9223372036854775807],)"
                             R"("data_offsets":[9223372036854775808,18446744073709551615]}})";
  const Texts found = errors_of(file_of(header, 16));
  REQUIRE(found.size() == 2);
  CHECK(found[0].find("belong to no tensor") != std::string::npos);
  CHECK(found[1].find("truncated") != std::string::npos);
}

TEST_CASE("all problems are reported at once, and a flood of them is cut") {
  CHECK(errors_of(file_of(R"({"a":{},"b":{"dtype":"X","shape":[1],"data_offsets":[0,1]}})", 1)) ==
        Texts{"m.safetensors: tensor \"a\" has no dtype",
              "m.safetensors: tensor \"a\" has no shape",
              "m.safetensors: tensor \"a\" has no data_offsets (two whole numbers)",
              "m.safetensors: tensor \"b\" has dtype \"X\", which is not supported"});
  std::string many = "{";
  for (int i = 0; i < 1000; ++i) many += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":1";
  const Texts found = errors_of(file_of(many + "}", 0));
  REQUIRE(found.size() == 51);
  CHECK(found.back() == "m.safetensors: 950 more problems in this header");
}

TEST_CASE("files of another kind are recognised") {
  CHECK(errors_of("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n") ==
        Texts{"m.safetensors: this is a Git LFS pointer, not the weights themselves"});
  CHECK(errors_of(std::string("PK\x03\x04", 4) + std::string(99, '\0')) ==
        Texts{"m.safetensors: this is a PyTorch pickle file under another name"});
  CHECK(errors_of("GGUF" + std::string(99, '\0')) ==
        Texts{"m.safetensors: this is a GGUF file, not safetensors"});
}

TEST_CASE("a good file whose length looks like a pickle's first bytes is read") {
  std::string header = "{}";
  header.resize(0x0280, ' ');
  REQUIRE(length_bytes(header.size()).starts_with("\x80\x02"));
  CHECK(errors_of(file_of(header, 0)).empty());
}

TEST_CASE("a file that the safetensors library wrote is read, with every dtype") {
  const MappedFile file = MappedFile::open("tests/corpus/safetensors/all_dtypes.safetensors");
  const SafetensorsHeader header = parse_safetensors(file.bytes(), "all_dtypes");
  CHECK(header.tensors.size() == 18);
  for (const TensorEntry& tensor : header.tensors) {
    if (tensor.name == "single") {
      CHECK(tensor.shape == Shape{2, 3});
      float last = 0;
      std::memcpy(&last, file.bytes().data() + tensor.offset + 20, 4);
      CHECK(last == 5.0f);
    }
  }
}

}  // namespace
}  // namespace modelport::weights
