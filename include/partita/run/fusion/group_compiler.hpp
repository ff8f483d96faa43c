/// Compiles the ops of a fused group to its block program.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include <partita/run/fusion/grouping.hpp>

namespace partita::run_detail {

class group_compiler {
 public:
  group_compiler(const program& p, const fusion_rules& rules, const grouping& groups, const step& s)
      : p_(p), rules_(rules), groups_(groups), s_(s), blocks_(s.elements, s.row) {}

  block_program compile() {
    for (op_id o : s_.members) emit(o);
    blocks_.finish();
    return std::move(blocks_);
  }

 private:
  const op_node& producer(value_id v) const { return p_.op(p_.producer(v)); }

  /// Emits one op. 16-bit floats are computed in binary32, rounded, and narrowed where they are
  /// stored.
  void emit(op_id o) {
    const op_node& n = p_.op(o);
    const tensor_type& t = p_.type(n.result);
    const bool half = is_half(t.element), stored = groups_.stored(n.result);
    const bool reduces = rules_.reduced_row(o) > 0;
    const bool per_row = reduces || t.shape.elements() != s_.elements;
    const coverage e = per_row ? coverage::rows : coverage::all;
    const block_step computes = rules_.block_of(o);
    const bool linked = computes.as_link != link::none;
    int in[3] = {-1, -1, -1};
    for (int i = 0; i < n.operand_count; ++i)
      in[i] = read(p_.operand(o, i), reduces ? coverage::all : e, linked);
    int out = stored && !half ? blocks_.memory(n.result, t, e)
                              : blocks_.temporary(computed(t.element), e);
    if (reduces)
      blocks_.reduce(static_cast<combiner>(p_.attrs(o)[0]), in[0], out);
    else if (linked)
      blocks_.link_up(computes.as_link, in[0], in[1], out);
    else
      blocks_.call(computes.run, {in[0], in[1], in[2]}, out);
    const bool rounds_itself = n.def == &def<op::convert> || n.def == &def<op::select>;
    if (half && !rounds_itself) out = converted(out, round_function(t.element), e);
    if (half && stored)
      blocks_.call(narrow_function(t.element), {out}, blocks_.memory(n.result, t, e));
    registers_.push_back({n.result, e, out});
  }

  /// Returns the register of an operand for an op whose result has the coverage `e`. Links
  /// (`linked`) read one value for all, for each row, or for each position in a row, without a
  /// copy.
  int read(value_id x, coverage e, bool linked) {
    const value_id v = rules_.root(x);
    if (const int r = find(v, e); r >= 0) return r;
    if (linked)
      for (coverage form : {coverage::splat, coverage::columns})
        if (const int r = find(v, form); r >= 0) return r;
    int r = -1;
    if (e == coverage::all && rules_.spreads_rows(v, s_.row, s_.elements)) {
      const int rows = read_rows(rules_.source(v));
      if (linked && blocks_.links_rows()) return rows;
      r = blocks_.temporary(computed(p_.type(v).element), e);
      blocks_.spread(rows, r);
    } else {
      r = read_anew(v, e, linked);
    }
    registers_.push_back({v, blocks_.coverage_of(r), r});
    return r;
  }
  /// Returns the register of a value that is spread along rows. If it is a broadcast itself, it is
  /// read from memory, because its source may no longer be available.
  int read_rows(value_id v) {
    if (!rules_.repetition_of(v)) return read(v, coverage::rows, false);
    if (const int r = find(v, coverage::rows); r >= 0) return r;
    const tensor_type& t = p_.type(v);
    const int r = widened(blocks_.memory(v, t, coverage::rows), t.element);
    registers_.push_back({v, blocks_.coverage_of(r), r});
    return r;
  }
  int find(value_id v, coverage form) const {
    for (const auto& k : registers_)
      if (k.value == v && k.form == form) return k.place;
    return -1;
  }

  int read_anew(value_id v, coverage e, bool linked) {
    const tensor_type& t = p_.type(v);
    const coverage one = linked ? coverage::splat : e;
    if (rules_.is_splat(v)) return splat(v, one);
    if (const auto repeat = rules_.repetition_of(v)) {
      const value_id from = rules_.source(v);
      if (repeat->count == 1) return widened(blocks_.scalar(from, t.element, one), t.element);
      return widened(read_repeated(from, t, *repeat, e, linked), t.element);
    }
    if (t.shape.elements() == (e == coverage::all ? s_.elements : s_.elements / s_.row))
      return widened(blocks_.memory(v, t, e), t.element);
    return widened(blocks_.scalar(v, t.element, one), t.element);
  }
  int splat(value_id v, coverage e) {
    const dtype t = p_.type(v).element;
    std::int64_t bits = p_.attrs(p_.producer(v))[0];
    if (is_half(t)) bits = rounded_bits(t, bits);
    if (t == dtype::boolean) bits = bits != 0;
    return blocks_.constant(computed(t), bits, e);
  }
  int read_repeated(value_id from, const tensor_type& t, const repetition& repeat, coverage e,
                    bool linked) {
    int r = -1;
    if (e == coverage::all) r = blocks_.repeating(from, t, repeat, linked && !is_half(t.element));
    if (r >= 0) return r;
    r = blocks_.temporary(t.element, e);
    blocks_.broadcast(from, repeat, r);
    return r;
  }

  /// Widens 16-bit floats when they are read.
  int widened(int r, dtype t) {
    return is_half(t) ? converted(r, widen_function(t), blocks_.coverage_of(r)) : r;
  }
  int converted(int r, block_function how, coverage e) {
    const int out = blocks_.temporary(dtype::f32, e);
    blocks_.call(how, {r}, out);
    return out;
  }
  /// Returns the bits of a binary64 after rounding to a 16-bit float.
  static std::int64_t rounded_bits(dtype half, std::int64_t bits) {
    const auto v = std::bit_cast<double>(bits);
    const float f = half == dtype::bf16 ? float(to_half<bf16>(v)) : float(to_half<f16>(v));
    return std::bit_cast<std::int64_t>(static_cast<double>(f));
  }

  /// The register that already holds a computed value.
  struct known {
    value_id value;
    coverage form;
    int place;
  };
  const program& p_;
  const fusion_rules& rules_;
  const grouping& groups_;
  const step& s_;
  block_program blocks_;
  std::vector<known> registers_;
};

}  // namespace partita::run_detail
