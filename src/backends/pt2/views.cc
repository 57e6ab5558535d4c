// Operators that give views, by name.
#include "backends/pt2/views.h"

#include <algorithm>
#include <array>

namespace modelport::pt2 {
namespace {

constexpr std::array kViews{
    std::string_view("alias"),
    std::string_view("as_strided"),
    std::string_view("chunk"),
    std::string_view("contiguous"),
    std::string_view("detach"),
    std::string_view("diagonal"),
    std::string_view("expand"),
    std::string_view("expand_as"),
    std::string_view("flatten"),
    std::string_view("movedim"),
    std::string_view("narrow"),
    std::string_view("permute"),
    std::string_view("reshape"),
    std::string_view("select"),
    std::string_view("slice"),
    std::string_view("split"),
    std::string_view("split_with_sizes"),
    std::string_view("squeeze"),
    std::string_view("swapaxes"),
    std::string_view("t"),
    std::string_view("to"),
    std::string_view("transpose"),
    std::string_view("type_as"),
    std::string_view("unbind"),
    std::string_view("unflatten"),
    std::string_view("unfold"),
    std::string_view("unsqueeze"),
    std::string_view("view"),
    std::string_view("view_as"),
};
static_assert(std::ranges::is_sorted(kViews));

}  // namespace

std::string_view base_name(std::string_view op) {
  const std::size_t begin = op.find('.') + 1;
  return op.substr(begin, op.find('.', begin) - begin);
}

bool may_share_memory(std::string_view op) {
  return std::ranges::binary_search(kViews, base_name(op));
}

bool writes_in_place(std::string_view op) {
  const std::string_view base = base_name(op);
  return base.size() > 1 && base.ends_with('_') && !base.ends_with("__");
}

}  // namespace modelport::pt2
