/// The collectives of the device-local language. They name mesh axes, never device numbers.
///
/// Source    PartIR, section 6 and listing 9
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/ir/layout.hpp>
#include <partita/ir/print.hpp>
#include <partita/ir/program.hpp>
#include <partita/ir/sub_axis_text.hpp>
#include <partita/support/scanner.hpp>

namespace partita {

/// The kinds of collectives that communicate, and all_slice, which does not.
enum class collective : std::uint8_t {
  all_gather,
  all_reduce,
  reduce_scatter,
  all_to_all,
  permute,
  all_slice
};

constexpr std::string_view name_of(collective c) {
  constexpr std::string_view names[] = {"all_gather", "all_reduce", "reduce_scatter",
                                        "all_to_all", "permute",    "all_slice"};
  return names[static_cast<int>(c)];
}

/// How many collectives of each kind, those inside of loops times their trip counts; all_slice does
/// not communicate and is not counted.
struct collectives {
  std::int64_t all_gather = 0, all_reduce = 0, reduce_scatter = 0, all_to_all = 0, permute = 0;

  constexpr std::int64_t total() const {
    return all_gather + all_reduce + reduce_scatter + all_to_all + permute;
  }
  constexpr void count(collective c, std::int64_t times = 1) {
    if (c == collective::all_gather) all_gather += times;
    if (c == collective::all_reduce) all_reduce += times;
    if (c == collective::reduce_scatter) reduce_scatter += times;
    if (c == collective::all_to_all) all_to_all += times;
    if (c == collective::permute) permute += times;
  }
  friend constexpr bool operator==(const collectives&, const collectives&) = default;
};

/// Is this op a collective of this kind?
constexpr bool is(const op_node& n, collective kind) {
  return n.def->collective && n.def->name == name_of(kind);
}
/// Does this op communicate?
constexpr bool communicates(const op_node& n) {
  return n.def->collective && !is(n, collective::all_slice);
}

constexpr text& operator<<(text& out, const collectives& c) {
  out << "all_gather " << c.all_gather << ", all_reduce " << c.all_reduce << ", reduce_scatter "
      << c.reduce_scatter << ", all_to_all " << c.all_to_all;
  if (c.permute > 0) out << ", permute " << c.permute;
  return out;
}

/// The axes that a collective communicates along, as bits, from its attributes.
constexpr std::uint8_t axes_of(collective kind, span<const std::int64_t> attrs) {
  const bool listed = kind == collective::all_reduce || kind == collective::all_to_all ||
                      kind == collective::permute;
  std::size_t i = kind == collective::all_reduce       ? 1   // combiner, axes
                  : kind == collective::all_to_all     ? 2   // from, to, axes
                  : kind == collective::permute        ? 2   // combiner, shift, axes
                  : kind == collective::reduce_scatter ? 2   // combiner, (dim, axis) pairs
                                                       : 1;  // (dim, axis) pairs
  unsigned axes = 0;
  for (; i < attrs.size(); i += listed ? 1 : 2) axes |= 1u << attrs[i];
  return static_cast<std::uint8_t>(axes);
}

namespace op {

constexpr void print_axes(print_context& c, std::size_t from) {
  const auto a = c.p.attrs(c.op);
  c.out << " <";
  print_axis_list(c.out, static_cast<int>(a.size() - from), c.mesh,
                  [&](int i) { return a[from + static_cast<std::size_t>(i)]; });
  c.out << '>';
}

/// Reads (dim, axis) pairs, major to minor per dimension.
constexpr layout decode_layout(span<const std::int64_t> pairs) {
  layout l;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
    l.push_back(static_cast<int>(pairs[i + 1]), static_cast<int>(pairs[i]));
  return l;
}

constexpr void print_dims(print_context& c, std::size_t from) {
  c.out << ' ';
  print_layout(c.out, decode_layout(c.p.attrs(c.op).subspan(from)),
               c.p.type(c.p.op(c.op).result).shape.rank, c.mesh);
}

/// `<@max>` for any combiner but the sum.
constexpr void print_combiner(print_context& c) {
  const auto combine = static_cast<combiner>(c.p.attrs(c.op)[0]);
  if (combine != combiner::add) c.out << " <@" << name_of(combine) << '>';
}

/// Reads the attributes of a collective as they are printed.
class collective_reader {
 public:
  constexpr explicit collective_reader(parse_context& c) : c_(c), in_(c.in) {}

  /// Nothing for the sum, else `<@max> `.
  constexpr void combiner_word() {
    auto found = combiner::add;
    if (in_.accept("<@")) {
      const std::string_view word = in_.take_while([](char each) { return each != '>'; });
      for (auto each : {combiner::max, combiner::min, combiner::multiply, combiner::logical_and,
                        combiner::logical_or})
        if (name_of(each) == word) found = each;
      good_ = good_ && found != combiner::add && in_.accept("> ");
    }
    c_.attrs.push_back(static_cast<std::int64_t>(found));
  }
  /// `2 `, not negative.
  constexpr void extent() {
    std::int64_t n = -1;
    good_ = good_ && in_.integer(n) && in_.accept(" ") && n >= 0;
    c_.attrs.push_back(n);
  }
  /// `{+1} ` or `{+1 around} `, or 0 for `{mirrored} `; after the combiner.
  constexpr void shift() {
    std::int64_t n = 0;
    if (!in_.accept("{mirrored} ")) {
      good_ = good_ && in_.accept("{");
      const bool down = in_.accept("-");
      good_ = good_ && (down || in_.accept("+")) && in_.integer(n) && n > 0;
      if (down && good_) n = -n;
      if (in_.accept(" around")) c_.attrs.back() = static_cast<std::int64_t>(combiner::stack);
      good_ = good_ && in_.accept("} ");
    }
    c_.attrs.push_back(n);
  }
  /// `{0 -> 1} `
  constexpr void two_dims() {
    std::int64_t from = -1, to = -1;
    const std::int64_t rank = c_.declared.shape.rank;
    good_ = good_ && in_.accept("{") && in_.integer(from) && in_.accept(" -> ") &&
            in_.integer(to) && in_.accept("} ") && from >= 0 && from < rank && to >= 0 &&
            to < rank && from != to;
    c_.attrs.push_back(from);
    c_.attrs.push_back(to);
  }
  /// `<"x1", "x2">`
  constexpr void axes() {
    good_ = good_ && in_.accept("<");
    for (bool first = true; good_ && !in_.accept(">"); first = false) {
      good_ = first || in_.accept(", ");
      for (int a : axis()) c_.attrs.push_back(a);
    }
  }
  /// `[{"B"}, {}]`, as (dim, axis) pairs.
  constexpr void layout() {
    good_ = good_ && in_.accept("[");
    for (int d = 0; good_ && d < c_.declared.shape.rank; ++d) {
      good_ = (d == 0 || in_.accept(", ")) && in_.accept("{");
      for (bool first = true; good_ && !in_.accept("}"); first = false) {
        good_ = first || in_.accept(", ");
        for (int a : axis()) {
          c_.attrs.push_back(d);
          c_.attrs.push_back(a);
        }
      }
    }
    good_ = good_ && in_.accept("]");
  }
  /// To be called last.
  constexpr void finish(std::string_view op) {
    if (!good_ || !in_.done())
      c_.error.record("P011", "parse: attributes of ", op, ": \"", c_.in,
                      "\" does not name axes of the mesh as this op does");
  }

 private:
  parse_context& c_;
  scanner in_;
  bool good_ = true;
  bool seen_[max_axes] = {};

  /// `"B"` or `"A":(1)4`, as the axes that it consists of.
  constexpr axis_list axis() {
    axis_list list;
    sub_axis s;
    good_ = good_ && c_.mesh != nullptr && read_sub_axis(in_, *c_.mesh, s);
    std::int64_t major = 0;
    if (!good_ || c_.mesh->cut_by(s, major) >= 0) good_ = false;
    if (good_) list = c_.mesh->parts_of(s);
    for (int a : list) {
      good_ = good_ && !seen_[a];
      seen_[a] = true;
    }
    return list;
  }
};

/// Base of the collectives; the lowering knows their result types, so the rule is "as declared".
struct collective_op {
  static constexpr bool collective = true;
  static constexpr int operand_count = 1;
  static constexpr void infer(infer_context& c) { c.result = c.declared; }
};

/// Every device gets the reduction over all devices that differ along the axes only; of several
/// operands each by itself, in one message.
///
/// Attributes: combiner, axes.
///
/// Shapes    (s...), (t...), ... -> (s...), (t...), ...
struct all_reduce : collective_op {
  static constexpr std::string_view name = "all_reduce";
  static constexpr int operand_count = -1;
  static constexpr void infer(infer_context& c) {
    c.result = c.declared;
    for (std::size_t i = 1; i < c.operands.size(); ++i) c.more.push_back(c.operands[i]);
  }
  static constexpr void print(print_context& c) {
    print_combiner(c);
    print_axes(c, 1);
  }
  static constexpr void parse(parse_context& c) {
    collective_reader in(c);
    in.combiner_word();
    in.axes();
    in.finish(name);
  }
};

/// Every device keeps its piece. No communication.
///
/// Attributes: (dim, axis) pairs.
///
/// Shapes    (s_d) -> (s_d / product of the axes of d)
struct all_slice : collective_op {
  static constexpr std::string_view name = "all_slice";
  static constexpr void print(print_context& c) { print_dims(c, 0); }
  static constexpr void parse(parse_context& c) {
    collective_reader in(c);
    in.layout();
    in.finish(name);
  }
};

/// The inverse of all_slice. Attributes: (dim, axis) pairs; of one dimension major to minor.
///
/// Shapes    (s_d) -> (s_d * product of the axes of d)
struct all_gather : collective_op {
  static constexpr std::string_view name = "all_gather";
  static constexpr void print(print_context& c) { print_dims(c, 0); }
  static constexpr void parse(parse_context& c) {
    collective_reader in(c);
    in.layout();
    in.finish(name);
  }
};

/// all_slice(all_reduce(x)). Attributes: combiner, then (dim, axis) pairs.
struct reduce_scatter : collective_op {
  static constexpr std::string_view name = "reduce_scatter";
  static constexpr void print(print_context& c) {
    print_combiner(c);
    print_dims(c, 1);
  }
  static constexpr void parse(parse_context& c) {
    collective_reader in(c);
    in.combiner_word();
    in.layout();
    in.finish(name);
  }
};

/// Gathers dimension `from` and slices dimension `to` along the same axes. Attributes: from, to,
/// axes.
///
/// Shapes    (s_from, s_to) -> (s_from * n, s_to / n), n the product of the axes
struct all_to_all : collective_op {
  static constexpr std::string_view name = "all_to_all";
  static constexpr void print(print_context& c) {
    const auto a = c.p.attrs(c.op);
    c.out << " {" << a[0] << " -> " << a[1] << '}';
    print_axes(c, 2);
  }
  static constexpr void parse(parse_context& c) {
    collective_reader in(c);
    in.two_dims();
    in.axes();
    in.finish(name);
  }
};

/// Device i of the n along the axes (major to minor) sends to device i + shift, of either sign, if
/// there is one; a device to which nobody sends gets the identity of the combiner, zero of a sum.
/// With the combiner `stack` the devices are a ring ("around"): to device (i + shift) mod n. Or,
/// mirrored, to device n - 1 - i.
///
/// Attributes: combiner, shift (0: mirrored), axes.
///
/// Shapes    (s...) -> (s...)
struct permute : collective_op {
  static constexpr std::string_view name = "permute";
  static constexpr void print(print_context& c) {
    const bool around = c.p.attrs(c.op)[0] == static_cast<std::int64_t>(combiner::stack);
    if (!around) print_combiner(c);
    const std::int64_t shift = c.p.attrs(c.op)[1];
    if (shift == 0)
      c.out << " {mirrored}";
    else
      c.out << " {" << (shift > 0 ? "+" : "") << shift << (around ? " around}" : "}");
    print_axes(c, 2);
  }
  static constexpr void parse(parse_context& c) {
    collective_reader in(c);
    in.combiner_word();
    in.shift();
    in.axes();
    in.finish(name);
  }
};

/// Where this device's piece starts along a dimension that the axes slice: the number of the piece
/// times how far pieces lie apart. No communication.
///
/// Attributes: distance of pieces, axes major to minor.
///
/// Shapes    () -> ()
struct shard_start {
  static constexpr std::string_view name = "shard_start";
  static constexpr int operand_count = 0;
  static constexpr void infer(infer_context& c) { c.result = c.declared; }
  static constexpr void print(print_context& c) {
    c.out << " {" << c.p.attrs(c.op)[0];
    print_axes(c, 1);
    c.out << '}';
  }
  static constexpr void parse(parse_context& c) {
    collective_reader in(c);
    in.extent();
    in.axes();
    in.finish(name);
  }
};

}  // namespace op

/// A program for one device of a mesh, the same for all, with its local argument and result types.
struct device_program {
  program local;
  partita::mesh mesh;  ///< with axes split as the program needs them
  /// Global. Where a dimension is padded the pieces together are larger: they start with the array.
  vec<tensor_type> input_types, output_types;
  vec<layout> inputs, outputs;  ///< how arguments and results lie on the mesh
};

/// The device-local program as text, with its mesh.
constexpr text print(const device_program& d) { return print(d.local, &d.mesh); }

}  // namespace partita
