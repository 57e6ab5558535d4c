// A std::variant whose copies, moves and end are compiled once, not in every file that has one:
// those of one variant with ten types were a tenth of the time of the two files that were measured.
#pragma once

#include <variant>

namespace modelport {

/// Whoever names one says `extern template struct OneOf<...>` below it, and `template struct
/// OneOf<...>` in the file of the header's name.
template <class... Types>
struct OneOf : std::variant<Types...> {
  using std::variant<Types...>::variant;
  OneOf();
  OneOf(const OneOf& other);
  OneOf(OneOf&& other) noexcept;
  OneOf& operator=(const OneOf& other);
  OneOf& operator=(OneOf&& other) noexcept;
  ~OneOf();
};

template <class... Types>
OneOf<Types...>::OneOf() = default;
template <class... Types>
OneOf<Types...>::OneOf(const OneOf& other) = default;
template <class... Types>
OneOf<Types...>::OneOf(OneOf&& other) noexcept = default;
template <class... Types>
OneOf<Types...>& OneOf<Types...>::operator=(const OneOf& other) = default;
template <class... Types>
OneOf<Types...>& OneOf<Types...>::operator=(OneOf&& other) noexcept = default;
template <class... Types>
OneOf<Types...>::~OneOf() = default;

}  // namespace modelport
