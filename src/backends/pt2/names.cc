// Chooses identifiers; the words that Python and its builtins take are listed as far as operators
// and arguments of models are called so.
#include "backends/pt2/names.h"

#include <algorithm>
#include <array>

namespace modelport::pt2 {
namespace {

constexpr std::array kKeywords{
    std::string_view("False"),  std::string_view("None"),     std::string_view("True"),
    std::string_view("and"),    std::string_view("as"),       std::string_view("assert"),
    std::string_view("async"),  std::string_view("await"),    std::string_view("break"),
    std::string_view("class"),  std::string_view("continue"), std::string_view("def"),
    std::string_view("del"),    std::string_view("elif"),     std::string_view("else"),
    std::string_view("except"), std::string_view("finally"),  std::string_view("for"),
    std::string_view("from"),   std::string_view("global"),   std::string_view("if"),
    std::string_view("import"), std::string_view("in"),       std::string_view("is"),
    std::string_view("lambda"), std::string_view("nonlocal"), std::string_view("not"),
    std::string_view("or"),     std::string_view("pass"),     std::string_view("raise"),
    std::string_view("return"), std::string_view("self"),     std::string_view("try"),
    std::string_view("while"),  std::string_view("with"),     std::string_view("yield"),
};
constexpr std::array kBuiltins{
    std::string_view("abs"),      std::string_view("all"),     std::string_view("any"),
    std::string_view("bool"),     std::string_view("complex"), std::string_view("device"),
    std::string_view("divmod"),   std::string_view("dtype"),   std::string_view("filter"),
    std::string_view("float"),    std::string_view("format"),  std::string_view("hash"),
    std::string_view("inf"),      std::string_view("input"),   std::string_view("int"),
    std::string_view("len"),      std::string_view("list"),    std::string_view("map"),
    std::string_view("max"),      std::string_view("min"),     std::string_view("nan"),
    std::string_view("pow"),      std::string_view("range"),   std::string_view("repr"),
    std::string_view("reversed"), std::string_view("round"),   std::string_view("set"),
    std::string_view("slice"),    std::string_view("sorted"),  std::string_view("str"),
    std::string_view("sum"),      std::string_view("torch"),   std::string_view("tuple"),
    std::string_view("type"),     std::string_view("vars"),    std::string_view("zip"),
};
static_assert(std::ranges::is_sorted(kKeywords) && std::ranges::is_sorted(kBuiltins));

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

std::string identifier(std::string_view text) {
  std::string name;
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) name += '_';
  for (const char c : text) name += is_letter(c) ? c : '_';
  return name;
}

std::string NameScope::claim(std::string_view wanted) {
  std::string name = identifier(wanted);
  if (!std::ranges::binary_search(kKeywords, name) && used_.insert(name).second) return name;
  return next(std::move(name));
}

std::string NameScope::fresh(std::string_view wanted) {
  std::string name = identifier(wanted);
  const bool taken =
      std::ranges::binary_search(kKeywords, name) || std::ranges::binary_search(kBuiltins, name);
  if (!taken && used_.insert(name).second) return name;
  return next(std::move(name));
}

std::string NameScope::next(std::string base) {
  int& count = counts_[base];
  while (true) {
    std::string name = base + "_" + std::to_string(++count);
    if (used_.insert(name).second) return name;
  }
}

}  // namespace modelport::pt2
