// Tensors with something around them or beside their diagonal.
#include <algorithm>

#include "ops/decompositions/pieces.h"
#include "ops/decompositions/shape.h"
#include "ops/rules/windows.h"

namespace modelport::ops::parts {
namespace {

/// Column less row, for each element of a matrix.
Value distance_from_diagonal(Emitter& e, const Int& rows, const Int& columns) {
  return sub(e, counted(e, columns), with_axis_at(e, counted(e, rows), 1));
}

/// `values` on a diagonal of the matrices `under`, whose other elements stay.
Value on_diagonal(Emitter& e, Value values, Value under, std::int64_t offset) {
  const Shape shape = e.shape(under);
  const Int rows = shape[shape.size() - 2];
  const Int columns = shape.back();
  const Int length = e.shape(values).back();
  const Int room = offset >= 0 ? rows : columns;
  const Value line = with_axis_at(e, padded(e, values, {0, room - length}), offset >= 0 ? -1 : -2);
  const Value here = e.call("aten.eq.Scalar", {distance_from_diagonal(e, rows, columns), offset});
  return where(e, here, line, under);
}

/// Exchanges between (dim1, dim2) and the last two axes.
Axes axes_to_end(std::int64_t rank, std::int64_t first, std::int64_t second) {
  Axes order;
  for (std::int64_t i = 0; i < rank; ++i) {
    if (i != first && i != second) order.push_back(i);
  }
  order.push_back(first);
  order.push_back(second);
  return order;
}

Axes inverse(const Axes& order) {
  Axes result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    result[at(order[i])] = static_cast<std::int64_t>(i);
  return result;
}

Value around(Emitter& e, Value x, const Shape& pads) {
  for (std::size_t i = 0; i < pads.size() / 2; ++i) {
    const std::int64_t axis = e.rank(x) - 1 - static_cast<std::int64_t>(i);
    const Int size = e.shape(x)[at(axis)];
    Values pieces;
    if (pads[2 * i] != Int(0)) pieces.push_back(sliced(e, x, axis, size - pads[2 * i], size));
    pieces.push_back(x);
    if (pads[2 * i + 1] != Int(0)) pieces.push_back(sliced(e, x, axis, 0, pads[2 * i + 1]));
    if (pieces.size() > 1) x = e.call("aten.cat", {pieces, axis});
  }
  return x;
}

/// "reflect" and "replicate" pad one to three axes, before which a batch is wanted.
Value mirrored(Emitter& e, Value x, const Shape& pads, bool reflects) {
  static constexpr const char* kReflect[] = {"aten.reflection_pad1d", "aten.reflection_pad2d",
                                             "aten.reflection_pad3d"};
  static constexpr const char* kReplicate[] = {"aten.replication_pad1d", "aten.replication_pad2d",
                                               "aten.replication_pad3d"};
  if (std::ranges::all_of(pads, [](const Int& pad) { return pad == Int(0); })) return x;
  const std::size_t axes = pads.size() / 2;
  if (axes < 1 || axes > 3) e.refuse("the runtime mirrors one to three axes");
  return e.call((reflects ? kReflect : kReplicate)[axes - 1], {x, pads});
}

}  // namespace

Value diagonal_scatter(Emitter& e) {
  const Value x = e.tensor("self");
  const std::int64_t rank = e.rank(x);
  const Axes order = axes_to_end(rank, e.axis("dim1", rank), e.axis("dim2", rank));
  const Value written =
      on_diagonal(e, e.tensor("src"), permuted(e, x, order), e.call().number("offset"));
  return permuted(e, written, inverse(order));
}

Value diag_embed(Emitter& e) {
  const Value x = e.tensor("self");
  const std::int64_t rank = e.rank(x) + 1;
  const Axes order = axes_to_end(rank, e.axis("dim1", rank), e.axis("dim2", rank));
  const std::int64_t offset = e.call().number("offset");
  const Int size = e.shape(x).back() + std::abs(offset);
  const Shape shape = joined(leading(e.shape(x), rank - 2), {size, size});
  const Value nothing = filled(e, shape, 0, e.dtype(x));
  return permuted(e, on_diagonal(e, x, nothing, offset), inverse(order));
}

Value diagflat(Emitter& e) {
  const Value x = e.tensor("self");
  return e.call("aten.diag_embed", {viewed(e, x, {numel(e.shape(x))}), e.arg("offset")});
}

Value triu(Emitter& e) {
  const Value x = e.tensor("self");
  const Shape shape = e.shape(x);
  const Value distance = distance_from_diagonal(e, shape[shape.size() - 2], shape.back());
  const Value kept = e.call("aten.ge.Scalar", {distance, e.arg("diagonal")});
  return where(e, kept, x, e.number(std::int64_t{0}, e.dtype(x)));
}

Value pad(Emitter& e) {
  Shape pads = e.call().ints("pad");
  const std::string_view mode = e.call().string("mode");
  const Value x = cut_off(e, e.tensor("self"), pads);
  if (mode == "constant") return padded(e, x, pads, e.has("value") ? e.real_number("value") : 0);
  if (mode == "circular") return around(e, x, pads);
  return mirrored(e, x, pads, mode == "reflect");
}

Value pad_circular(Emitter& e) {
  Shape pads = e.call().ints("pad");
  return around(e, cut_off(e, e.tensor("self"), pads), pads);
}

namespace {

struct Sweep {  // of a window of two axes over an image
  Shape kernel, dilation, padding, stride;
  Int rows, columns;  // places of the window

  Int start(std::size_t axis, std::int64_t i) const { return dilation[axis] * i; }
  Int end(std::size_t axis, std::int64_t i) const {
    return start(axis, i) + ((axis == 0 ? rows : columns) - 1) * stride[axis] + 1;
  }
};

Sweep sweep_of(Emitter& e, const Int& height, const Int& width) {
  Call& call = e.call();
  Sweep s{per_axis(call, "kernel_size", 2),
          per_axis(call, "dilation", 2),
          per_axis(call, "padding", 2),
          per_axis(call, "stride", 2),
          0,
          0};
  const auto places = [&](const Int& size, std::size_t i) {
    return shape::floor_div(size + s.padding[i] * 2 - s.dilation[i] * (s.kernel[i] - 1) - 1,
                            s.stride[i]) +
           1;
  };
  s.rows = places(height, 0);
  s.columns = places(width, 1);
  return s;
}

constexpr std::string_view kKnownWindow = "the window must have a fixed size";

}  // namespace

Value im2col(Emitter& e) {
  Value x = e.tensor("self");
  Shape shape = e.shape(x);
  if (shape.size() == 3) shape.insert(shape.begin(), 1);
  const Sweep s = sweep_of(e, shape[2], shape[3]);
  x = padded(e, viewed(e, x, shape), {s.padding[1], s.padding[1], s.padding[0], s.padding[0]});
  Values pieces;
  for (std::int64_t i = 0; i < known(e, s.kernel[0], kKnownWindow); ++i) {
    const Value rows = sliced(e, x, 2, s.start(0, i), s.end(0, i), s.stride[0]);
    for (std::int64_t j = 0; j < known(e, s.kernel[1], kKnownWindow); ++j)
      pieces.push_back(sliced(e, rows, 3, s.start(1, j), s.end(1, j), s.stride[1]));
  }
  return viewed(e, e.call("aten.stack", {pieces, 2}), e.result().shape);
}

Value col2im(Emitter& e) {
  const Value x = e.tensor("self");
  const Shape& result = e.result().shape;
  const Shape size = from(result, static_cast<std::int64_t>(result.size()) - 2);
  const Sweep s = sweep_of(e, size[0], size[1]);
  const std::int64_t height = known(e, s.kernel[0], kKnownWindow);
  const std::int64_t width = known(e, s.kernel[1], kKnownWindow);
  const Int channels = result[result.size() - 3];
  const Int count = result.size() == 4 ? result[0] : Int(1);
  const Value columns = viewed(e, x, {count, channels, height * width, s.rows, s.columns});
  Value sum = filled(e, {count, channels, size[0] + s.padding[0] * 2, size[1] + s.padding[1] * 2},
                     0, e.dtype(x));
  for (std::int64_t i = 0; i < height; ++i) {
    for (std::int64_t j = 0; j < width; ++j) {
      const Value rows = sliced(e, sum, 2, s.start(0, i), s.end(0, i), s.stride[0]);
      const Value piece = sliced(e, rows, 3, s.start(1, j), s.end(1, j), s.stride[1]);
      const Value more = add(e, piece, selected(e, columns, 2, i * width + j));
      const Value written =
          e.call("aten.slice_scatter", {rows, more, 3, s.start(1, j), s.end(1, j), s.stride[1]});
      sum =
          e.call("aten.slice_scatter", {sum, written, 2, s.start(0, i), s.end(0, i), s.stride[0]});
    }
  }
  sum = sliced(e, sum, 2, s.padding[0], s.padding[0] + size[0]);
  sum = sliced(e, sum, 3, s.padding[1], s.padding[1] + size[1]);
  return viewed(e, sum, result);
}

}  // namespace modelport::ops::parts
