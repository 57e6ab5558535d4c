// Opens an archive and puts program and weights together.
#include "backends/pt2/reader.h"

#include <fmt/format.h>

#include "backends/pt2/payload_reader.h"
#include "backends/pt2/program_reader.h"
#include "backends/pt2/zip_reader.h"
#include "base/json.h"

namespace modelport::pt2 {
namespace {

constexpr std::string_view kProgram = "models/model.json";

/// The folder that everything in the archive lies in, with its slash.
std::string root_of(const ZipArchive& archive) {
  for (const ZipArchive::Entry& entry : archive.entries()) {
    if (!entry.name.ends_with(kProgram)) continue;
    const std::string root = entry.name.substr(0, entry.name.size() - kProgram.size());
    if (root.empty() || root.ends_with('/')) return root;
  }
  archive.fail(
      "it holds no models/model.json; only archives of torch.export.save with one program are "
      "read");
}

Pt2Program read_archive(std::span<const std::byte> bytes, const std::string& name,
                        std::shared_ptr<const MappedFile> file) {
  const ZipArchive archive(bytes, name);
  const std::string root = root_of(archive);
  const std::string text = archive.text(archive.at(root + std::string(kProgram)));
  const Json program =
      parse_json(text, {.name = fmt::format("{}, {}", name, kProgram),
                        .ways_out = {"save the program again with torch.export.save"}});
  try {
    ProgramReader reader(program);
    reader.read();
    Pt2Program result;
    PayloadReader(archive, root, std::move(file)).read(reader.graph, result.weights);
    result.graph = std::move(reader.graph);
    result.signature = std::move(reader.signature);
    return result;
  } catch (const Json::exception& error) {
    archive.fail(fmt::format("its program does not follow torch's schema: {}", error.what()));
  }
}

}  // namespace

Pt2Program read_pt2(const std::filesystem::path& path) {
  auto file = std::make_shared<const MappedFile>(MappedFile::open(path));
  const std::span<const std::byte> bytes = file->bytes();
  return read_archive(bytes, path.string(), std::move(file));
}

Pt2Program read_pt2(std::span<const std::byte> archive, const std::string& name) {
  return read_archive(archive, name, nullptr);
}

}  // namespace modelport::pt2
