#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace modelport {
namespace {

constexpr std::size_t kLongestQuote = 160;
constexpr std::size_t kMostDuplicates = 20;

/// Builds the document from parser events, so that depth and duplicate keys are seen on the way.
class DocumentBuilder final : public nlohmann::json_sax<Json> {
 public:
  explicit DocumentBuilder(const JsonSource& source) : source_(source) {}

  Json finish() {
    if (!error_.empty()) throw ExportError(diagnostic(error_));
    found_.throw_if_any();
    return std::move(root_);
  }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return fail("binary value"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (open_.back()->contains(name)) {
      if (++duplicates_ <= kMostDuplicates) {
        found_.add(diagnostic(fmt::format("{}: the key {} occurs twice in one object", source_.name,
                                          quote_text(name))));
      }
    }
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    // The library's text ends with the bytes it last read, which may be anything: leave them out.
    std::string_view reason = error.what();
    if (const auto at = reason.find(": "); at != reason.npos) reason.remove_prefix(at + 2);
    reason = reason.substr(0, reason.find("; last read"));
    if (reason.starts_with("["))
      reason.remove_prefix(std::min(reason.find("] ") + 2, reason.size()));
    return fail(fmt::format("at byte {}: {}", position, reason.substr(0, kLongestQuote)));
  }

 private:
  Diagnostic diagnostic(std::string what) const {
    Diagnostic result;
    result.code = Code::bad_file;
    result.what = std::move(what);
    result.ways_out = source_.ways_out;
    return result;
  }

  bool fail(const std::string& reason) {
    error_ = fmt::format("{}: not valid JSON {}", source_.name, reason);
    return false;
  }

  Json* place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_object()) return &(parent[key_] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  bool put(Json value) {
    place(std::move(value));
    return true;
  }

  bool open(Json value) {
    if (open_.size() >= source_.max_depth) {
      error_ =
          fmt::format("{}: JSON nested deeper than {} levels", source_.name, source_.max_depth);
      return false;
    }
    open_.push_back(place(std::move(value)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const JsonSource& source_;
  Json root_;
  std::vector<Json*> open_;  // a container grows only when it is the last one, so pointers hold
  std::string key_;
  std::string error_;
  Diagnostics found_;
  std::size_t duplicates_ = 0;
};

}  // namespace

Json parse_json(std::string_view text, const JsonSource& source) {
  DocumentBuilder builder(source);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.finish();
}

std::optional<std::int64_t> integer_in(const Json& json) {
  constexpr auto kLargest = static_cast<std::uint64_t>(INT64_MAX);
  const bool too_large = json.is_number_unsigned() && json.get<std::uint64_t>() > kLargest;
  if (!json.is_number_integer() || too_large) return std::nullopt;
  return json.get<std::int64_t>();
}

std::string quote_text(std::string_view text) {
  std::string cut(text.substr(0, kLongestQuote));
  if (cut.size() < text.size()) {
    // Do not leave half of a UTF-8 sequence at the end.
    std::size_t last = cut.size();
    while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    cut.resize(last);
    cut += "…";
  }
  return Json(std::move(cut)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace modelport
