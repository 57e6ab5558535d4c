// Pad, and what has no operator of its own put together from gathering and scattering.
#include "ops/onnx/pad.h"

#include <cstdlib>
#include <numeric>

#include "ops/onnx/pieces.h"
#include "ops/rules/axes.h"

namespace modelport::ops::onnx {
namespace {

/// Amounts for each axis, first to last; torch lists the last axis first.
struct Border {
  Shape starts, ends;
};

Border border_of(Lower& l, std::string_view name, std::size_t rank) {
  Border border{Shape(rank, 0), Shape(rank, 0)};
  const std::vector<Int> amounts = l.call().ints(name);
  for (std::size_t i = 0; i + 1 < amounts.size(); i += 2) {
    border.starts[rank - 1 - i / 2] = amounts[i];
    border.ends[rank - 1 - i / 2] = amounts[i + 1];
  }
  return border;
}

Int positive(Lower& l, const Int& amount) { return clamp_below(l.call(), amount, 0); }

/// Negative amounts cut off.
Value cropped(Lower& l, Value x, const Border& border) {
  for (std::size_t i = 0; i < border.starts.size(); ++i) {
    const Int left = positive(l, -border.starts[i]);
    const Int right = positive(l, -border.ends[i]);
    if (left == Int(0) && right == Int(0)) continue;
    const Int size = l.shape(x)[i];
    const Int end = right == Int(0) ? Int(kToTheEnd) : right.is_constant() ? -right : size - right;
    x = cut(l, x, static_cast<std::int64_t>(i), left, end, size - left - right);
  }
  return x;
}

Value mirrored(Lower& l, Value x, const Border& border, std::string_view mode) {
  if (is_complex(l.dtype(x))) {
    return l.make_complex(mirrored(l, l.real_part(x), border, mode),
                          mirrored(l, l.imaginary_part(x), border, mode));
  }
  const Dtype own = l.dtype(x);
  if (own == Dtype::bf16 || own == Dtype::i16 || own == Dtype::u16) {
    const Dtype wide = own == Dtype::bf16 ? Dtype::f32 : Dtype::i32;
    return l.cast(mirrored(l, l.cast(x, wide), border, mode), own);
  }
  Border grown = border;
  Shape result = l.shape(x);
  for (std::size_t i = 0; i < result.size(); ++i) {
    grown.starts[i] = positive(l, border.starts[i]);
    grown.ends[i] = positive(l, border.ends[i]);
    result[i] += grown.starts[i] + grown.ends[i];
  }
  const Value padded = l.emit("Pad", {x, l.sizes(joined(grown.starts, grown.ends))},
                              {{"mode", {std::string(mode)}}}, {own, std::move(result)});
  return cropped(l, padded, border);
}

/// Pad knows `wrap` from opset 19 on; slices do the same everywhere.
Value wrapped(Lower& l, Value x, const Border& border) {
  x = cropped(l, x, border);
  for (std::size_t i = 0; i < border.starts.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(i);
    const Int left = positive(l, border.starts[i]);
    const Int right = positive(l, border.ends[i]);
    const Int size = l.shape(x)[i];
    Values parts;
    if (!(left == Int(0)))
      parts.push_back(cut(l, x, axis, left.is_constant() ? -left : size - left, kToTheEnd, left));
    parts.push_back(x);
    if (!(right == Int(0))) parts.push_back(cut(l, x, axis, 0, right, right));
    x = l.concat(parts, axis);
  }
  return x;
}

Value padded(Lower& l, std::string_view amounts, std::string_view mode) {
  const Value x = l.in("self");
  const Border border = border_of(l, amounts, l.shape(x).size());
  if (mode == "reflect") return mirrored(l, x, border, "reflect");
  if (mode == "replicate") return mirrored(l, x, border, "edge");
  if (mode == "circular") return wrapped(l, x, border);
  const Dtype dtype = l.dtype(x);
  const Value value = l.has("value") ? l.in("value", dtype) : l.number(std::int64_t{0}, dtype);
  return bordered(l, x, border.starts, border.ends, value);
}

}  // namespace

Values constant_pad(Lower& l) { return {padded(l, "pad", "constant")}; }
Values pad(Lower& l) { return {padded(l, "pad", l.call().string("mode"))}; }
Values reflection_pad(Lower& l) { return {padded(l, "padding", "reflect")}; }
Values replication_pad(Lower& l) { return {padded(l, "padding", "replicate")}; }
Values circular_pad(Lower& l) { return {padded(l, "pad", "circular")}; }

Values pixel_shuffle(Lower& l) {
  const Value x = l.in("self");
  const std::int64_t rank = l.rank(x);
  const Int factor = l.call().integer("upscale_factor");
  const Dtype dtype = l.dtype(x);
  if (rank == 4 && (dtype == Dtype::f32 || dtype == Dtype::f64)) {
    return {l.emit("DepthToSpace", {x}, {{"blocksize", {factor}}, {"mode", {std::string("CRD")}}})};
  }
  const Shape& out = l.result().shape;
  const Shape& in = l.shape(x);
  const Shape lead = leading(in, rank - 3);
  const Value blocks = l.reshape(
      x, joined(lead, {out[at(rank - 3)], factor, factor, in[at(rank - 2)], in[at(rank - 1)]}));
  const std::int64_t c = rank - 3;
  std::vector<std::int64_t> order(at(c + 1));
  std::iota(order.begin(), order.end(), 0);
  for (const std::int64_t axis : {c + 3, c + 1, c + 4, c + 2}) order.push_back(axis);
  return {l.reshape(l.transpose(blocks, order), out)};
}

Values pixel_unshuffle(Lower& l) {
  const Value x = l.in("self");
  const std::int64_t rank = l.rank(x);
  const Int factor = l.call().integer("downscale_factor");
  const Shape& out = l.result().shape;
  const std::int64_t c = rank - 3;
  const Value blocks = l.reshape(
      x, joined(leading(l.shape(x), c + 1), {out[at(c + 1)], factor, out[at(c + 2)], factor}));
  std::vector<std::int64_t> order(at(c + 1));
  std::iota(order.begin(), order.end(), 0);
  for (const std::int64_t axis : {c + 2, c + 4, c + 1, c + 3}) order.push_back(axis);
  return {l.reshape(l.transpose(blocks, order), out)};
}

namespace {

/// The windows of one spatial axis.
struct Windows {
  Int kernel, dilation, padding, stride;
  Int count(const Int& size) const {
    return shape::floor_div(size + 2 * padding - dilation * (kernel - 1) - 1, stride) + 1;
  }
};

Windows windows_of(Lower& l, std::size_t axis) {
  const auto pick = [&](std::string_view name) {
    const std::vector<Int> values = l.call().ints(name);
    return values.size() == 1 ? values[0] : values[axis];
  };
  return {pick("kernel_size"), pick("dilation"), pick("padding"), pick("stride")};
}

}  // namespace

Values im2col(Lower& l) {
  Value x = l.in("self");
  const std::int64_t lead = l.rank(x) - 2;
  const Shape image = l.shape(x);
  Shape border(image.size(), 0);
  for (std::size_t i = 0; i < 2; ++i) border[at(lead) + i] = windows_of(l, i).padding;
  x = bordered(l, x, border, border, l.number(std::int64_t{0}, l.dtype(x)));
  // [.., h, w] -> [.., kernel h, windows h, w] -> [.., kernel h, windows h, kernel w, windows w]
  for (std::size_t i = 0; i < 2; ++i) {
    const Windows windows = windows_of(l, i);
    const Int count = windows.count(image[at(lead) + i]);
    const Value from = lattice(l, {windows.kernel, count}, {windows.dilation, windows.stride});
    x = l.gather(x, from, lead + 2 * static_cast<std::int64_t>(i));
  }
  return {l.reshape(l.swap_axes(x, lead + 1, lead + 2), l.result().shape)};
}

namespace {

/// Adds up what the windows hold, place by place: [.., kernels, windows] as rows of places.
Value scattered_columns(Lower& l, Value x, const Shape& image) {
  const Windows rows = windows_of(l, 0);
  const Windows columns = windows_of(l, 1);
  const Int height = image[0] + 2 * rows.padding;
  const Int width = image[1] + 2 * columns.padding;
  const Int places = rows.kernel * columns.kernel * rows.count(image[0]) * columns.count(image[1]);
  const Value where = l.reshape(
      lattice(l, {rows.kernel, columns.kernel, rows.count(image[0]), columns.count(image[1])},
              {rows.dilation * width, columns.dilation, rows.stride * width, columns.stride}),
      {places, 1});
  const Int images =
      shape::exact_quotient(numel(l.shape(x)), places)
          .value_or(numel(
              leading(l.result().shape, static_cast<std::int64_t>(l.result().shape.size()) - 2)));
  const Value updates = l.swap_axes(l.reshape(x, {images, places}), 0, 1);
  const Value blank = l.filled(l.number(std::int64_t{0}, l.dtype(x)), {height * width, images});
  const Value sums = l.swap_axes(scatter_rows(l, blank, where, updates, "add"), 0, 1);
  Value whole = l.reshape(sums, {images, height, width});
  whole = cut(l, whole, 1, rows.padding, image[0] + rows.padding, image[0]);
  whole = cut(l, whole, 2, columns.padding, image[1] + columns.padding, image[1]);
  return l.reshape(whole, l.result().shape);
}

}  // namespace

Values col2im(Lower& l) {
  const Value x = l.in("self");
  const std::vector<Int> image = l.call().ints("output_size");
  const Windows rows = windows_of(l, 0);
  const Windows columns = windows_of(l, 1);
  if (l.opset() < 18 || l.dtype(x) != Dtype::f32) return {scattered_columns(l, x, image)};
  const auto pair = [](const Int& a, const Int& b) {
    return int_list({a.constant().value(), b.constant().value()});
  };
  const ir::ArgList pads{{rows.padding}, {columns.padding}, {rows.padding}, {columns.padding}};
  const bool batched = l.rank(x) == 3;
  const Value batch = batched ? x : l.unsqueeze(x, {0});
  const Shape& out = l.result().shape;
  const Value made =
      l.emit("Col2Im", {batch, l.sizes(image), l.sizes({rows.kernel, columns.kernel})},
             {{"dilations", pair(rows.dilation, columns.dilation)},
              {"pads", {pads}},
              {"strides", pair(rows.stride, columns.stride)}},
             {l.dtype(x), batched ? out : with_axis(out, 0, 1)});
  return {batched ? made : l.squeeze(made, {0})};
}

namespace {

Value triangle(Lower& l, Value x, bool upper) {
  if (is_complex(l.dtype(x))) {
    return l.make_complex(triangle(l, l.real_part(x), upper),
                          triangle(l, l.imaginary_part(x), upper));
  }
  const Dtype own = l.dtype(x);
  const bool narrow = is_integral(own) && byte_size(own) < 4;
  const Dtype wide = own == Dtype::bf16                       ? Dtype::f32
                     : narrow                                 ? Dtype::i32
                     : own == Dtype::u32 || own == Dtype::u64 ? Dtype::i64
                                                              : own;
  const Int diagonal = l.call().integer("diagonal");
  Values inputs{l.cast(x, wide)};
  if (!(diagonal == Int(0))) inputs.push_back(l.scalar(diagonal));
  const Attribute side{"upper", {Int(upper ? 1 : 0)}};
  return l.cast(l.emit("Trilu", inputs, {side}, {wide, l.shape(x)}), own);
}

/// The last axis of x on a diagonal of a square matrix in the last two axes.
Value on_diagonal(Lower& l, Value x, std::int64_t offset) {
  const std::int64_t last = l.rank(x) - 1;
  const Value zero = l.number(std::int64_t{0}, l.dtype(x));
  const Shape none(l.shape(x).size(), 0);
  const Value longer = bordered(l, x, none, with_size(none, last, std::abs(offset)), zero);
  const Int& size = l.shape(longer)[at(last)];
  // Above the diagonal a row holds its own element, below it a column does.
  const Value spread = l.unsqueeze(longer, {offset >= 0 ? last + 1 : last});
  return l.where(diagonal_mask(l, size, size, offset), spread, zero);
}

}  // namespace

Values tril(Lower& l) { return {triangle(l, l.in("self"), false)}; }
Values triu(Lower& l) { return {triangle(l, l.in("self"), true)}; }

Values diag_embed(Lower& l) {
  const std::int64_t rank = l.call().rank("self") + 1;
  const std::int64_t rows = l.axis("dim1", rank);
  const std::int64_t columns = l.axis("dim2", rank);
  const Value matrix = on_diagonal(l, l.in("self"), l.call().number("offset"));
  // The result's axes in the order in which they are there now.
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0, other = 0; i < rank; ++i)
    order.push_back(i == rows ? rank - 2 : i == columns ? rank - 1 : other++);
  return {l.transpose(matrix, order)};
}

Values diagflat(Lower& l) {
  return {on_diagonal(l, flat(l, l.in("self")), l.call().number("offset"))};
}

}  // namespace modelport::ops::onnx
