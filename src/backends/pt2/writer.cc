// The archive: the program, its weights, and the small records that torch's reader looks for.
#include "backends/pt2/writer.h"

#include <fmt/format.h>

#include <unordered_map>

#include "backends/pt2/json_text.h"
#include "backends/pt2/program_writer.h"
#include "backends/pt2/zip_writer.h"
#include "base/error.h"
#include "weights/stream.h"

namespace modelport::pt2 {
namespace {

/// Torch takes the folder of the first entry for the archive's name.
constexpr std::string_view kRoot = "model/";

/// One folder of weights: which record holds which name, and the records themselves, each tied
/// weight once.
struct Payload {
  std::string_view folder;
  std::string_view stem;
  std::string config;  // JSON, without the brackets
  struct Record {
    const weights::Weight* weight;
    Dtype dtype;
  };
  std::vector<Record> records;
  std::unordered_map<const weights::Weight*, std::size_t> known;
};

void check_shape(const ir::Value& value, const weights::Weight& weight) {
  std::vector<shape::Int> shape(weight.shape.begin(), weight.shape.end());
  if (shape == value.tensor().shape) return;
  throw ExportError(Diagnostic{
      .code = Code::missing_weight,
      .what =
          fmt::format("weight {} has another shape than the graph was captured with", value.name),
      .where = {},
      .module_path = {},
      .notes = {},
      .ways_out = {"capture the model again with the weights to be written"}});
}

void add_weight(Payload& payload, const ir::Value& value, const weights::Weight& weight,
                std::string_view device) {
  const auto [record, added] = payload.known.try_emplace(&weight, payload.records.size());
  if (added) payload.records.push_back({&weight, value.tensor().dtype});
  if (!payload.config.empty()) payload.config += ", ";
  append_string(payload.config, value.name);
  const bool parameter = value.weight_kind == ir::WeightKind::parameter;
  ir::Graph none;
  Symbols symbols(none);
  payload.config += fmt::format(
      ": {{\"path_name\": \"{}{}\", \"is_param\": {}, \"use_pickle\": false, \"tensor_meta\": {}}}",
      payload.stem, record->second, parameter, tensor_type_json(value.tensor(), symbols, device));
}

void write_payload(const Payload& payload, std::string_view config_name, ZipWriter& zip) {
  zip.add(fmt::format("{}{}{}", kRoot, payload.folder, config_name),
          "{\"config\": {" + payload.config + "}}");
  for (std::size_t i = 0; i < payload.records.size(); ++i) {
    weights::Sink& sink =
        zip.begin(fmt::format("{}{}{}{}", kRoot, payload.folder, payload.stem, i));
    weights::stream(*payload.records[i].weight, payload.records[i].dtype, sink);
  }
}

}  // namespace

bool is_saved(const ir::Value& weight) {
  return weight.weight_kind == ir::WeightKind::parameter ||
         weight.weight_kind == ir::WeightKind::buffer;
}

void write_pt2(const Pt2Request& request, weights::Sink& sink) {
  Payload saved{
      .folder = "data/weights/", .stem = "weight_", .config = {}, .records = {}, .known = {}};
  Payload constants{
      .folder = "data/constants/", .stem = "tensor_", .config = {}, .records = {}, .known = {}};
  for (const ir::ValueId id : request.graph.weights) {
    const ir::Value& value = request.graph.value(id);
    const bool in_checkpoint = is_saved(value);
    const weights::Weight& weight = request.weights.at(value.name);
    check_shape(value, weight);
    add_weight(in_checkpoint ? saved : constants, value, weight, request.device);
  }
  const std::string program = program_json(request);

  ZipWriter zip(sink);
  const auto name = [](std::string_view record) {
    return std::string(kRoot) + std::string(record);
  };
  zip.add(name("archive_format"), "pt2");
  zip.add(name("archive_version"), "0");
  zip.add(name(".data/version"), "6\n");
  zip.add(name("byteorder"), "little");
  zip.add(name("models/model.json"), program);
  zip.begin(name("data/sample_inputs/model.pt")).write(request.sample_inputs);
  write_payload(saved, "model_weights_config.json", zip);
  write_payload(constants, "model_constants_config.json", zip);
  zip.finish();
}

void write_pt2(const Pt2Request& request, const std::filesystem::path& path) {
  weights::AtomicFile file(path);
  write_pt2(request, file);
  file.finish();
  file.commit();
}

}  // namespace modelport::pt2
