// Checked conversions.
#include "backends/pt2/json_read.h"

#include <cmath>

#include "base/error.h"

namespace modelport::pt2 {

void damaged(std::string what) {
  throw ExportError(Diagnostic{.code = Code::bad_file,
                               .what = std::move(what),
                               .where = {},
                               .module_path = {},
                               .notes = {},
                               .ways_out = {"save the program again with torch.export.save"}});
}

std::int64_t read_integer(const Json& json) {
  const std::optional<std::int64_t> number = integer_in(json);
  if (!number) damaged("the program has " + quote_text(json.dump()) + " where an integer belongs");
  return *number;
}

double read_float(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json == "Infinity") return HUGE_VAL;
  if (json == "-Infinity") return -HUGE_VAL;
  if (json == "NaN") return std::nan("");
  damaged("the program has " + quote_text(json.dump()) + " where a number belongs");
}

}  // namespace modelport::pt2
