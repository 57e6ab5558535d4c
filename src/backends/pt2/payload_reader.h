// The weights of an archive: where each lies, and their bytes, in place where the archive stores
// them so.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "backends/pt2/zip_reader.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "ir/graph.h"
#include "weights/store.h"

namespace modelport::pt2 {

class PayloadReader {
 public:
  /// `root` is the archive's folder with a slash; `file` holds the archive's bytes, if a file does.
  PayloadReader(const ZipArchive& archive, std::string root,
                std::shared_ptr<const MappedFile> file);

  /// Adds the weights of the graph to the store. Throws ExportError with all that are missing or
  /// cannot be read.
  void read(const ir::Graph& graph, weights::WeightStore& store);

 private:
  struct Record {
    std::string path;
    Dtype dtype = Dtype::f32;
    weights::Shape shape;
    std::vector<std::int64_t> strides;
    std::int64_t offset = 0;  // in elements
    bool operator==(const Record&) const = default;
  };
  Json config(const std::string& name, const std::string& legacy) const;
  Record record(const Json& config, const std::string& folder, const std::string& name) const;
  weights::Weight load(const std::string& name, const Record& record);
  const ZipArchive::Contents& contents(const ZipArchive::Entry& entry);
  void take_room(const std::string& name, std::uint64_t bytes);
  void check(const std::string& name, const Record& record, const ir::TensorType& type) const;

  const ZipArchive& archive_;
  std::string root_;
  std::shared_ptr<const MappedFile> file_;
  // Many weights may lie in one entry: each is unpacked and checked once.
  std::unordered_map<std::string, ZipArchive::Contents> contents_;
  std::uint64_t copied_ = 0;  // bytes of weights that lie otherwise than a store has them
};

}  // namespace modelport::pt2
