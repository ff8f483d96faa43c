/// A user-defined op in one file: a rotary position embedding.
///
/// Checks the op's laws and derivative, partitions a model that uses it, runs the model on four
/// emulated devices, and shows the error for a wrong tile map.
// ctest:
#include <cmath>
#include <iostream>
#include <string>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/run/laws.hpp>

namespace pt = partita;

/// Rotates each pair of elements (2 i, 2 i + 1) of the last dimension, of size n, by the angle
/// position / base^(2 i / n). The positions index one dimension of x.
///
/// Shapes    x (..., p, ..., n), positions (p) -> (..., p, ..., n)
/// Tile map  ([b, p, n], [p]) -> ([b, p, n]); n is not tiled, since pairs stay together
/// Cost      6 flop per pair
/// Errors    U001 element types, U002 dimension of the positions, U003 n is odd
struct rope {
  static constexpr std::string_view name = "rope";
  static constexpr int operand_count = 2;

  /// The attributes, as text `{dim=1, base=500, backwards}` and stored as [1, 500, 1].
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.number("dim");
    f.number_or("base", 10000);
    f.flag("backwards");
  }
  static constexpr void infer(pt::infer_context& c) {
    const pt::tensor_type &x = c.operands[0], &positions = c.operands[1];
    const bool real = x.element == pt::dtype::f32 || x.element == pt::dtype::f64;
    if (!real || positions.element != pt::dtype::i32)
      return c.fail("U001", "rope: ", x, " and positions ", positions,
                    "; f32 or f64, and i32 are needed");
    const std::int64_t dim = c.attrs[0];
    if (dim < 0 || dim >= x.shape.rank - 1 || positions.shape.rank != 1 ||
        !pt::same_extent(positions.shape[0], x.shape[static_cast<int>(dim)]))
      return c.fail("U002", "rope: positions ", positions, " do not fit dimension ", dim, " of ",
                    x);
    const std::int64_t n = x.shape[x.shape.rank - 1];  // pt::dyn if it is known only at run time
    if (n != pt::dyn && n % 2 != 0)
      return c.fail("U003", "rope: the last dimension of ", x, " is odd");
    c.result = x;
  }
  /// Every dimension except the last can be tiled; tiling dimension `dim` tiles the positions, too.
  static constexpr void tile_map(pt::tile_map_context& c) {
    for (int d = 0; d < c.result.shape.rank - 1; ++d) {
      c.tile(c.result.shape[d], d).operand(0, d);
      if (d == c.attrs[0]) c.operand(1, 0);
    }
  }
  /// The transpose of a rotation is the inverse rotation, so this op differentiates itself.
  static constexpr void derive(pt::derive_context& c) {
    const auto attrs = c.b.p.attrs(c.op);
    const std::int64_t back[] = {attrs[0], attrs[1], attrs[2] == 0};
    const pt::value_id operands[] = {c.cotangent, c.b.p.operand(c.op, 1)};
    c.operands[0] = c.b.emit(pt::def<rope>, operands, back);
  }
  static constexpr std::int64_t flops(const pt::cost_context& c) {
    return 3 * c.result.shape.elements();
  }
};

/// The kernel for element type T. Buffers are row-major.
template <class T>
void turn(const pt::kernel_context& c) {
  const T* x = c.operand<T>(0);
  const auto* positions = c.operand<std::int32_t>(1);
  T* y = c.output<T>();
  const pt::shape& s = c.result.shape;
  const std::int64_t n = s[s.rank - 1];
  std::int64_t inner = 1;  // the number of rows per position
  for (int d = static_cast<int>(c.attrs[0]) + 1; d < s.rank - 1; ++d) inner *= s[d];
  for (std::int64_t i = 0; i + 1 < s.elements(); i += 2) {
    const double frequency = std::pow(static_cast<double>(c.attrs[1]),
                                      -static_cast<double>(i % n) / static_cast<double>(n));
    const double angle = frequency * positions[i / n / inner % c.types[1].shape[0]];
    const T cosine = static_cast<T>(std::cos(angle));
    const T sine = static_cast<T>(c.attrs[2] != 0 ? -std::sin(angle) : std::sin(angle));
    y[i] = cosine * x[i] - sine * x[i + 1];
    y[i + 1] = sine * x[i] + cosine * x[i + 1];
  }
}
void rope_kernel(const pt::kernel_context& c) {
  c.result.element == pt::dtype::f64 ? turn<double>(c) : turn<float>(c);
}

/// The op as a function of typed tensors. The compiler checks its operands where it is called.
template <int Dim, pt::Tensor X, pt::Tensor P>
constexpr auto rotate(const X& x, const P& positions) {
  return pt::apply_op<rope, Dim, 10000, 0>(x, positions);
}

// Attention scores of all positions with each other, summed over the heads.
constexpr auto scores = [](auto x, auto at, auto wq, auto wk) {
  const auto q = rotate<1>(pt::einsum<"bpd,dhn->bphn">(x, wq), at);
  const auto k = rotate<1>(pt::einsum<"bpd,dhn->bphn">(x, wk), at);
  return pt::einsum<"bphn,brhn->bpr">(q, k);
};

constexpr pt::mesh mesh{{"B", 2}, {"M", 2}};
constexpr auto step = [] {
  const auto f = pt::trace(scores, pt::input<float, 4, 6, 8>("x"), pt::input<std::int32_t, 6>("at"),
                           pt::input<float, 8, 2, 4>("wq"), pt::input<float, 8, 2, 4>("wk"));
  return pt::partition(
      f, mesh,
      pt::schedule(pt::manual("B", {{"x", 0}}, "batch"), pt::manual("M", {{"wq", 1}}, "heads")));
};
// Tiling the op along batch and heads needs no collective; the sum over heads needs one.
static_assert(pt::check<step>.collectives == pt::collectives{.all_reduce = 1});
static_assert(pt::check<step>.input("wk").local_shape == pt::shape{8, 1, 4});

/// The same op with a wrong entry in its tile map: it tiles the last dimension.
struct torn_rope : rope {
  static constexpr void tile_map(pt::tile_map_context& c) {
    rope::tile_map(c);
    const int last = c.result.shape.rank - 1;
    c.tile(c.result.shape[last], last).operand(0, last);
  }
};

pt::array numbers(const pt::tensor_type& type) {
  pt::array a(pt::tensor_type{pt::dtype::f32, type.shape});
  float* out = a.mutable_data<float>();
  for (std::int64_t i = 0; i < a.size(); ++i) out[i] = static_cast<float>(i * 5 % 7 - 3);
  return pt::as_type(a, type.element);
}

int main() {
  pt::run_options run;
  run.kernels = {{&pt::def<rope>, &rope_kernel}, {&pt::def<torn_rope>, &rope_kernel}};
  pt::law_options laws;
  laws.run = run;
  pt::derivative_options derivative;
  derivative.run = run;

  // Checks every entry of the tile map, for every number of tiles, and the derivative of every
  // element.
  const pt::tensor_type x32{pt::dtype::f32, {2, 6, 3, 8}}, x64{pt::dtype::f64, {2, 6, 3, 8}},
      at{pt::dtype::i32, {6}};
  const auto slices = pt::check_laws(pt::def<rope>, {x32, at}, {1, 10000, 0}, {}, laws);
  const auto slopes = pt::check_derivative(pt::def<rope>, {x64, at}, {1, 100, 0}, {}, derivative);
  std::cout << "the tile map holds for " << slices << " loops, the derivative for " << slopes
            << " elements\n\n";

  // `parse` reads the printed program if it knows the op.
  const pt::partitioned p = step();
  const pt::op_def* const own[] = {&pt::def<rope>};
  const bool read = pt::equivalent(pt::parse(pt::print(p.source), own), p.source);
  std::cout << pt::report(p) << "\nthe program of one device:\n" << pt::print(p) << '\n';

  std::vector<pt::array> inputs;
  for (int i = 0; i < p.source.input_count(); ++i)
    inputs.push_back(numbers(p.source.input_type(i)));
  const bool same = pt::all_close(pt::emulate(p, run, inputs), pt::evaluate(p.source, run, inputs));
  std::cout << "four devices compute " << (same ? "what one does" : "something else") << "\n\n";

  // The error for a wrong tile map names the entry and the values that differ.
  std::string refusal;
  try {
    pt::check_laws(pt::def<torn_rope>, {x32, at}, {1, 10000, 0}, {}, laws);
  } catch (const pt::error& e) {
    refusal = e.what();
  }
  std::cout << refusal << '\n';
  return read && same && refusal.substr(0, 4) == "L001" ? 0 : 1;
}
