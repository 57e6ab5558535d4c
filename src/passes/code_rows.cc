#include "passes/code_rows.h"

namespace modelport::passes {
namespace {

class Rows {
 public:
  Rows(Rebuild& rebuild, const CodeTable& table, ir::ValueId indices, const ir::TensorType& type,
       ir::PlaceId place)
      : rebuild_(rebuild),
        table_(table),
        indices_(indices),
        type_(type),
        place_(place),
        lead_(type.shape.begin(), type.shape.end() - 1) {}

  ir::ValueId run() {
    const ir::ValueId codes = reshaped(numbers(table_.codes), {table_.blocks, table_.block});
    const ir::ValueId middle = table_.zero_points == ir::ValueId{}
                                   ? rebuild_.number(table_.bits == 4 ? 8 : 128, type_.dtype)
                                   : zero_points();
    const ir::ValueId around = emit("Sub", {codes, middle}, {table_.blocks, table_.block});
    const ir::ValueId scales = apart(gathered(table_.scales), {table_.blocks, 1});
    const ir::ValueId scaled = emit("Mul", {around, scales}, {table_.blocks, table_.block});
    return reshaped(scaled, {table_.blocks * table_.block});
  }

 private:
  /// The axes of the indices, then these.
  ir::TensorType shaped(const std::vector<std::int64_t>& last, Dtype dtype) const {
    ir::TensorType type{dtype, lead_};
    type.shape.insert(type.shape.end(), last.begin(), last.end());
    return type;
  }

  ir::ValueId emit(const std::string& op, const std::vector<ir::ValueId>& inputs,
                   const std::vector<std::int64_t>& last, std::vector<ir::NamedArg> args = {}) {
    return rebuild_.emit("onnx." + op, inputs, std::move(args), shaped(last, type_.dtype), place_);
  }

  ir::ValueId gathered(ir::ValueId of) {
    const ir::TensorType type = rebuild_.type(of);
    return rebuild_.emit("onnx.Gather", {of, indices_}, {{"axis", {shape::Int(0)}}},
                         shaped({*type.shape[1].constant()}, type.dtype), place_);
  }

  ir::ValueId reshaped(ir::ValueId value, const std::vector<std::int64_t>& last) {
    std::vector<std::int64_t> sizes(lead_.size(), 0);  // those that are there
    sizes.insert(sizes.end(), last.begin(), last.end());
    return emit("Reshape", {value, rebuild_.ints(sizes)}, last);
  }

  ir::ValueId apart(ir::ValueId value, const std::vector<std::int64_t>& last) {
    return emit("Unsqueeze", {value, rebuild_.ints({-1})}, last);
  }

  /// The codes of the rows one after the other. Bytes are small enough for any floating type.
  ir::ValueId numbers(ir::ValueId of) {
    const ir::ValueId rows = gathered(of);
    const std::int64_t bytes = *rebuild_.type(rows).shape.back().constant();
    const ir::ValueId whole = emit("Cast", {rows}, {bytes}, {{"to", {type_.dtype}}});
    if (table_.bits == 8) return whole;
    const ir::ValueId shifted =
        emit("Mul", {whole, rebuild_.number(1.0 / 16, type_.dtype)}, {bytes});
    const ir::ValueId high = emit("Floor", {shifted}, {bytes});
    const ir::ValueId sixteen = rebuild_.number(16, type_.dtype);
    const ir::ValueId low = emit("Sub", {whole, emit("Mul", {high, sixteen}, {bytes})}, {bytes});
    const ir::ValueId pairs = emit("Concat", {apart(low, {bytes, 1}), apart(high, {bytes, 1})},
                                   {bytes, 2}, {{"axis", {shape::Int(-1)}}});
    return reshaped(pairs, {bytes * 2});
  }

  ir::ValueId zero_points() {
    ir::ValueId all = numbers(table_.zero_points);
    if (*rebuild_.type(all).shape.back().constant() != table_.blocks)  // the last byte is half used
      all = emit("Slice",
                 {all, rebuild_.ints({0}), rebuild_.ints({table_.blocks}), rebuild_.ints({-1})},
                 {table_.blocks});
    return apart(all, {table_.blocks, 1});
  }

  Rebuild& rebuild_;
  const CodeTable& table_;
  ir::ValueId indices_;
  const ir::TensorType& type_;
  ir::PlaceId place_;
  std::vector<shape::Int> lead_;
};

}  // namespace

ir::ValueId rows_of_codes(Rebuild& rebuild, const CodeTable& table, ir::ValueId indices,
                          const ir::TensorType& type, ir::PlaceId place) {
  return Rows(rebuild, table, indices, type, place).run();
}

}  // namespace modelport::passes
