#include "base/error.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

namespace modelport {

std::string code_label(Code code) { return fmt::format("E{:04}", static_cast<int>(code)); }

std::string print(const Diagnostic& d, std::size_t same_elsewhere) {
  std::string text = fmt::format("error[{}]: {}", code_label(d.code), d.what);
  if (d.where.known()) {
    text += fmt::format("\n  --> {}:{}", d.where.file, d.where.line);
    if (!d.where.function.empty()) text += " in " + d.where.function;
  }
  if (!d.module_path.empty()) {
    text += "\n   = module  " + d.module_path;
    if (same_elsewhere > 0) text += fmt::format("   (same line in {} more places)", same_elsewhere);
  }
  for (const std::string& note : d.notes) text += "\n   = " + note;
  for (const std::string& way : d.ways_out) text += "\n   way out   " + way;
  return text;
}

namespace {

std::string print_grouped(const std::vector<Diagnostic>& diagnostics) {
  using Key = std::tuple<Code, std::string, int, std::string>;
  std::map<Key, std::size_t> count;
  const auto key = [](const Diagnostic& d) {
    return Key{d.code, d.where.file, d.where.line, d.what};
  };
  for (const Diagnostic& d : diagnostics) ++count[key(d)];
  std::string text;
  for (const Diagnostic& d : diagnostics) {
    const auto found = count.find(key(d));
    if (found == count.end()) continue;  // printed with its group
    if (!text.empty()) text += "\n\n";
    text += print(d, found->second - 1);
    count.erase(found);
  }
  return text;
}

}  // namespace

ExportError::ExportError(std::vector<Diagnostic> diagnostics)
    : std::runtime_error(print_grouped(diagnostics)), diagnostics_(std::move(diagnostics)) {}

ExportError::ExportError(Diagnostic diagnostic)
    : ExportError(std::vector<Diagnostic>{std::move(diagnostic)}) {}

void Diagnostics::throw_if_any() {
  if (!found_.empty()) throw ExportError(std::move(found_));
}

}  // namespace modelport
