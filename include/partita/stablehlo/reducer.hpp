/// Recognizes the functions that programs nested in reduce, scatter, sort and the like compute.
#pragma once

#include <partita/op/combine.hpp>
#include <partita/op/registry.hpp>

namespace partita::stablehlo_detail {

/// True if this op computes the value.
constexpr bool is_made_by(const program& p, value_id v, const op_def& def) {
  return p.op(p.producer(v)).def->id == def.id;
}
constexpr int input_of(const program& p, value_id v) {
  for (int i = 0; i < p.input_count(); ++i)
    if (p.inputs[i] == v) return i;
  return -1;
}

/// Recognizes (a, b) -> a op b or b op a for a commutative op; stores the op in `out`.
constexpr bool find_combiner(const program& p, combiner& out) {
  if (p.output_count() != 1 || p.input_count() != 2) return false;
  const value_id v = p.outputs[0].value;
  const op_id o = p.producer(v);
  if (p.op(o).operand_count != 2) return false;
  const int x = input_of(p, p.operand(o, 0)), y = input_of(p, p.operand(o, 1));
  if (x < 0 || y < 0 || x == y) return false;
  for (combiner c : {combiner::add, combiner::multiply, combiner::max, combiner::min,
                     combiner::logical_and, combiner::logical_or})
    if (p.op(o).def->id == combining_op(c).id) {
      const bool boolean = p.type(v).element == dtype::boolean;
      out = c;
      // For i1, sums and maxima are "or", products and minima are "and".
      if (boolean && (c == combiner::add || c == combiner::max)) out = combiner::logical_or;
      if (boolean && (c == combiner::multiply || c == combiner::min)) out = combiner::logical_and;
      return true;
    }
  return false;
}

/// A scalar function as an expression in its inputs: `>(x0, x1)`. Operands of commutative ops are
/// sorted, and comparisons are turned into `<` or `<=`.
class scalar_expression {
 public:
  constexpr explicit scalar_expression(const program& p) : p_(p), known_(p.types.size(), text()) {}

  constexpr text of(value_id v) {
    text& mine = known_[static_cast<std::size_t>(v)];
    if (!mine.empty()) return mine;
    const op_id o = p_.producer(v);
    const int input = input_of(p_, v);
    text made;
    if (input >= 0) {
      made << 'x' << input;
    } else {
      vec<text> parts;
      std::size_t size = 0;
      for (value_id each : p_.operands(o)) {
        parts.push_back(of(each));
        size += parts.back().size();
      }
      if (size > most_characters) return "too much";
      std::string_view name = p_.op(o).def->name;
      text attrs;
      if (p_.op(o).def->id == def<op::compare>.id) {
        name = turned(static_cast<ops::direction>(p_.attrs(o)[0]), parts);
      } else {
        for (auto a : p_.attrs(o)) attrs << ',' << a;
        if (p_.op(o).def->id == def<op::convert>.id ||
            p_.op(o).def->id == def<op::bitcast_convert>.id)
          attrs << ',' << name_of(p_.type(v).element);
      }
      if (commutes(p_.op(o).def->id) && parts[1].view() < parts[0].view()) exchange(parts);
      made << name << attrs << '(';
      for (std::size_t i = 0; i < parts.size(); ++i) made << (i > 0 ? " " : "") << parts[i];
      made << ')';
    }
    known_[static_cast<std::size_t>(v)] = made;
    return made;
  }

 private:
  static constexpr std::size_t most_characters = 40000;
  static constexpr void exchange(vec<text>& parts) {
    const text first = parts[0];
    parts[0] = parts[1];
    parts[1] = first;
  }
  static constexpr bool commutes(std::uint64_t id) {
    for (const op_def* d : {&def<op::add>, &def<op::multiply>, &def<op::logical_and>,
                            &def<op::logical_or>, &def<op::logical_xor>})
      if (d->id == id) return true;
    return false;
  }
  static constexpr std::string_view turned(ops::direction d, vec<text>& parts) {
    using enum ops::direction;
    if (d == gt || d == ge) exchange(parts);
    if ((d == eq || d == ne) && parts[1].view() < parts[0].view()) exchange(parts);
    if (d == lt || d == gt) return "<";
    if (d == le || d == ge) return "<=";
    return d == eq ? "=" : "!=";
  }

  const program& p_;
  vec<text> known_;
};

/// Recognizes the combiner of jax.numpy.argmax, (a, position of a, b, position of b): the larger
/// value wins, NaN wins against all numbers, and of equal values the first one wins. Inputs are a,
/// position of a, b, position of b in the order x0, x1, x2, x3. (A function of floats that does not
/// check for NaN returns another result if one is NaN.)
constexpr bool find_extreme(const program& p, ops::extreme& out) {
  if (p.output_count() != 2 || p.input_count() != 4) return false;
  scalar_expression e(p);
  const text value = e.of(p.outputs[0].value), position = e.of(p.outputs[1].value);
  for (const auto which : {ops::extreme::argmax, ops::extreme::argmin})
    for (const bool nan : {true, false}) {
      if (!nan && is_floating(p.input_type(0).element)) continue;
      const std::string_view better = which == ops::extreme::argmax ? "<(x2 x0)" : "<(x0 x2)";
      // The operands are sorted, so the check for NaN comes first or second.
      const text wins = nan ? concat("or(!=(x0 x0) ", better, ")") : text(better);
      const text equal = "and(<(x1 x3) =(x0 x2))";
      const text first = equal.view() < wins.view() ? concat("or(", equal, ' ', wins, ')')
                                                    : concat("or(", wins, ' ', equal, ')');
      if (value.view() == concat("select(", wins, " x0 x2)").view() &&
          position.view() == concat("select(", first, " x1 x3)").view()) {
        out = which;
        return true;
      }
    }
  return false;
}

/// The order that a comparison function of sort defines.
struct sort_order {
  vec<int> keys;            ///< the operands, most significant first; empty for another function
  bool descending = false;  ///< by GT instead of LT
  bool total = false;       ///< floats are compared in total order, unchanged
};
/// Finds the order of a comparison function. Inputs are pairs (x0, x1), (x2, x3), ...: one element
/// and another of each operand. With several keys, the first key decides; if it is equal, the next
/// one decides, and so on.
class order_finder {
 public:
  constexpr explicit order_finder(const program& p) : p_(p), forms_(p) {}

  constexpr sort_order run() const {
    sort_order found;
    const auto forms = static_cast<std::size_t>(p_.input_count() * form_count);
    if (p_.output_count() != 1 || p_.input_count() % 2 != 0 || forms_.of.size() != forms)
      return found;
    const text wanted = scalar_expression(p_).of(p_.outputs[0].value);
    const int operands = p_.input_count() / 2;
    for (int first = 0; first < operands; ++first)
      for (int count = 1; first + count <= operands; ++count)
        for (const bool descending : {false, true})
          for (int form = 0; form < form_count; ++form) {
            const text made = function(first, count, descending, form, wanted.size());
            if (made.view() != wanted.view()) continue;
            for (int k = first; k < first + count; ++k) found.keys.push_back(k);
            found.descending = descending;
            found.total = form == total_order;
            return found;
          }
    return found;
  }

 private:
  /// The changes to floats before they are compared. jax.lax.sort maps all zeros to one zero and
  /// all NaN to one NaN, in either order, and compares in total order.
  enum { plain, zeros_first, nans_first, total_order, total_zeros_first, total_nans_first };
  static constexpr int form_count = 6;
  /// The text of each input in each form.
  struct form_texts {
    vec<text> of;

    constexpr explicit form_texts(const program& p) {
      builder b;
      vec<value_id> inputs, values;
      for (int i = 0; i < p.input_count(); ++i)
        inputs.push_back(ops::parameter(b, "", {p.input_type(i).element, {}}));
      for (value_id x : inputs)
        for (int form = 0; form < form_count; ++form) values.push_back(changed(b, x, form));
      if (b.failed()) return;
      scalar_expression e(b.p);
      for (value_id v : values) of.push_back(e.of(v));
    }
    static constexpr value_id changed(builder& b, value_id x, int form) {
      const dtype t = b.type(x).element;
      if (!is_floating(t)) return x;
      const auto alike = [&](bool zeros, value_id v) {
        const auto nan = static_cast<std::int64_t>(support_detail::usual_nan);
        const value_id one = b.scalar(def<op::constant>, t, zeros ? 0 : nan);
        const value_id which =
            ops::compare(b, zeros ? ops::direction::eq : ops::direction::ne, x, zeros ? one : x);
        return ops::select(b, which, one, v);
      };
      const int how = form % total_order;
      if (how != plain) {
        const value_id inner = alike(how == zeros_first, x);
        x = b.failed() ? -1 : alike(how != zeros_first, inner);
      }
      return form >= total_order ? op::total_order_key(b, x) : x;
    }
  };
  const program& p_;
  form_texts forms_;

  constexpr const text& at(int key, bool left, int form) const {
    return forms_.of[static_cast<std::size_t>((2 * key + (left ? 0 : 1)) * form_count + form)];
  }
  static constexpr text ordered(std::string_view name, const text& a, const text& b) {
    return a.view() < b.view() ? concat(name, '(', a, ' ', b, ')')
                               : concat(name, '(', b, ' ', a, ')');
  }
  constexpr text before(int key, bool descending, int form) const {
    return concat("<(", at(key, !descending, form), ' ', at(key, descending, form), ')');
  }
  /// (Stops when the text is longer than the one it is compared with.)
  constexpr text function(int first, int count, bool descending, int form, std::size_t most) const {
    text made = before(first + count - 1, descending, form);
    for (int k = first + count - 2; k >= first && made.size() <= most; --k) {
      const text equal = ordered("=", at(k, true, form), at(k, false, form));
      made = ordered("or", before(k, descending, form), ordered("and", equal, made));
    }
    return made;
  }
};
constexpr sort_order find_order(const program& p) { return order_finder(p).run(); }

}  // namespace partita::stablehlo_detail
