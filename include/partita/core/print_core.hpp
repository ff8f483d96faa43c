/// Prints PartIR:Core programs as `loop`/`slice` text.
///
/// Source    PartIR, sections 5.1 to 5.2.3
#pragma once

#include <partita/support/vec.hpp>

#include <partita/core/groups.hpp>
#include <partita/ir/print.hpp>

namespace partita {

namespace core_detail {

class core_printer {
 public:
  constexpr core_printer(const core_program& c, bool fuse)
      : c_(c),
        names_(c.p),
        group_(loop_groups(c, fuse)),
        shown_tiled_(c.p.ops.size(), 0),
        last_piece_(static_cast<std::size_t>(c.p.value_count()), 0) {
    for (op_id o : c.order)  // read for each use of a parameter
      if (c.p.is(o, op_role::parameter)) shown_tiled_[o] = keeps_its_loops(c, o);
    sort_by_scope();
    control_.resize(c.p.ops.size(), -1);
    for (std::size_t i = 0; i < c.nested.controls.size(); ++i)
      control_[c.nested.controls[i].marker] = static_cast<int>(i);
  }

  constexpr text print() {
    print_signature(out_, c_.p, names_, &c_.mesh);
    print_scope(0);
    print_return(out_, c_.p, names_);
    return out_;
  }

 private:
  const core_program& c_;
  value_names names_;
  vec<int> group_;
  vec<char> shown_tiled_;  ///< by op: true for a parameter with loops of its own
  /// By nested program, the top-level program first: the index of its first op in `by_scope_`.
  vec<int> scope_begin_;
  vec<op_id> by_scope_;  ///< ops in execution order, grouped by program, without wires
  vec<int> control_;     ///< by op: its index among the ops with nested programs, or -1
  text out_;
  int base_ = 0;  ///< the nesting depth of the program being printed
  /// A slice in the loops being printed. All ops in these loops that need it share it.
  struct piece {
    value_id value = -1;
    text sliced;  ///< the dimensions and ranges of the slice
    text name;
    int before = 0;  ///< the previous piece of the same value, counted from 1; 0: none
  };
  vec<piece> pieces_;
  vec<int> last_piece_;  ///< by value: its last piece, counted from 1; 0: none

  static constexpr std::size_t index(int i) { return static_cast<std::size_t>(i); }

  constexpr void indent(int depth) { print_indent(out_, base_ + depth); }

  constexpr void sort_by_scope() {
    const auto& scope = c_.nested.scope;
    scope_begin_.resize(c_.nested.scopes.size() + 1, 0);
    for (op_id o : c_.order)
      if (!c_.p.is(o, op_role::wire)) ++scope_begin_[scope[o] + 1];
    for (std::size_t s = 1; s < scope_begin_.size(); ++s) scope_begin_[s] += scope_begin_[s - 1];
    by_scope_.resize(static_cast<std::size_t>(scope_begin_.back()), -1);
    vec<int> next = scope_begin_;
    for (op_id o : c_.order)
      if (!c_.p.is(o, op_role::wire)) by_scope_[next[scope[o]]++] = o;
  }

  constexpr void print_scope(int scope) {
    const span<const op_id> order{
        by_scope_.data() + scope_begin_[scope],
        static_cast<std::size_t>(scope_begin_[scope + 1] - scope_begin_[scope])};
    for (std::size_t i = 0; i < order.size(); ++i) {
      const op_id o = order[i];
      const int g = group_[index(o)];
      if (c_.p.is(o, op_role::parameter)) {
        if (shown_tiled_[o]) print_parameter(o);
      } else if (c_.p.is(o, op_role::control)) {
        print_control(c_.nested.controls[control_[o]]);
      } else if (g < 0) {
        print_op(o, shown_nest{}, 1);
      } else {
        vec<op_id> members;
        std::size_t j = i;
        for (; j < order.size() && group_[index(order[j])] == g; ++j) members.push_back(order[j]);
        print_group(members);
        i = j - 1;
      }
    }
  }

  /// Prints an op with nested programs. The types of its inputs are followed by their layouts.
  constexpr void print_control(const flat_program::control_info& k) {
    const op_node& n = c_.p.op(k.marker);
    const auto operand = [&](const use& u) { return c_.p.operand(u.op, u.operand); };
    indent(1);
    append_list(out_, static_cast<int>(k.results.size()),
                [&](int i) { out_ << '%' << names_[k.results[index(i)]]; });
    out_ << " = " << n.def->name;
    if (n.name.size > 0) {
      out_ << ' ';
      print_quoted(out_, c_.p.view(n.name));
    }
    out_ << '(';
    append_list(out_, static_cast<int>(k.operands.size()),
                [&](int i) { global_name(operand(k.operands[index(i)])); });
    out_ << ')';
    print_context attributes{c_.p, k.marker, &c_.mesh, out_};
    n.def->print(attributes);
    for (int s = k.first_scope; s < k.first_scope + k.scope_count; ++s) {
      const auto& scope = c_.nested.scopes[index(s)];
      out_ << " do (";
      append_list(out_, static_cast<int>(scope.inputs.size()), [&](int i) {
        const value_id v = scope.inputs[index(i)];
        out_ << '%' << names_[v] << ": " << c_.p.type(v);
        if (c_.produced_layout(v).count > 0) {
          out_ << ' ';
          print_layout(out_, c_.produced_layout(v), c_.p.type(v).shape.rank, c_.mesh);
        }
      });
      out_ << ") {\n";
      ++base_;
      print_scope(s);
      indent(1);
      out_ << "return ";
      append_list(out_, static_cast<int>(scope.outputs.size()),
                  [&](int j) { global_name(operand(scope.outputs[index(j)])); });
      out_ << " : ";
      append_list(out_, static_cast<int>(scope.outputs.size()),
                  [&](int j) { out_ << c_.p.type(operand(scope.outputs[index(j)])); });
      out_ << '\n';
      --base_;
      indent(1);
      out_ << '}';
    }
    out_ << " : ";
    append_list(out_, static_cast<int>(k.results.size()),
                [&](int i) { out_ << c_.p.type(k.results[index(i)]); });
    out_ << '\n';
  }
  /// Prints the name of a value at a depth of loops: `%x1`, `%x1s`, `%x1ss`.
  constexpr void name_at(value_id v, int depth) {
    out_ << '%' << names_[v];
    for (int i = 0; i < depth; ++i) out_ << 's';
  }
  constexpr text global_text(value_id v) const {
    const op_id o = c_.p.producer(v);
    return concat('%', names_[v], shown_tiled_[o] != 0 ? "t" : "");
  }
  constexpr void global_name(value_id v) { out_ << global_text(v); }
  constexpr void loop_kind(value_id v, const loop& l) {
    const op_id o = c_.p.producer(v);
    if (l.factor == any_factor) {
      out_ << "any";
      return;
    }
    const factor& f = c_.map.at(o, l.factor);
    const int dim = c_.map.result_dim(f, c_.p.result_index(v));
    if (dim != no_dim)
      out_ << "#tile<" << dim << '>';
    else if (f.combine == combiner::stack)
      out_ << (f.again ? "again" : "any");
    else if (f.combine == combiner::add)
      out_ << "#sum";
    else
      out_ << "#sum<@" << name_of(f.combine) << '>';
  }

  /// A loop of a nest as it is printed: loops over adjacent parts of an axis, with the same factor
  /// in all ops of the group, are merged.
  struct shown_loop {
    int first = 0, count = 1;  ///< in the nest
    sub_axis over;
  };
  struct shown_nest {
    shown_loop loops[max_axes] = {};
    int count = 0;
  };
  template <class Ops>
  constexpr shown_nest shown(const nest& n, const Ops& ops) const {
    shown_nest out;
    for (int k = 0; k < n.count; ++k) {
      const sub_axis s = c_.mesh.part(n.loops[k].axis);
      if (k > 0) {
        shown_loop& last = out.loops[out.count - 1];
        bool joins = last.over.axis == s.axis && last.over.end() == s.pre;
        for (op_id o : ops) {
          const nest& each = c_.nest_of(o);
          joins = joins && each.loops[k].factor == each.loops[k - 1].factor;
        }
        if (joins) {
          last.over.size *= s.size;
          ++last.count;
          continue;
        }
      }
      out.loops[out.count++] = {k, 1, s};
    }
    return out;
  }
  /// Prints the variable of a loop: `%rA`, or `%rA_4` for a part of the axis, after the size of the
  /// more major parts.
  constexpr void range_name(text& out, const sub_axis& s) const {
    out << "%r" << name_text(c_.mesh.name(s.axis));
    if (s.size != c_.mesh.whole_size(s.axis)) out << '_' << s.pre;
  }
  constexpr void loop_head(const sub_axis& s) {
    out_ << " = loop ";
    print_sub_axis(out_, s, c_.mesh);
    out_ << " [";
  }
  constexpr void loop_tail(const sub_axis& s) {
    out_ << "] (";
    range_name(out_, s);
    out_ << ": range<" << s.size << ">) {\n";
  }

  constexpr void print_parameter(op_id o) {
    const value_id v = c_.p.op(o).result;
    const nest& whole = c_.nest_of(o);
    const shown_nest n = shown(whole, vec<op_id>{o});
    forget_pieces();
    for (int k = 0; k < n.count; ++k) {
      indent(k + 1);
      if (k == 0) {
        global_name(v);
      } else {
        global_name(v);
        for (int i = 0; i < k; ++i) out_ << 's';
      }
      loop_head(n.loops[k].over);
      loop_kind(v, whole.loops[n.loops[k].first]);
      loop_tail(n.loops[k].over);
    }
    const int slices = print_slices(o, -1, v, n, n.count + 1, false);
    indent(n.count + 1);
    out_ << "yield ";
    out_ << '%' << names_[v];
    for (int i = 0; i < slices; ++i) out_ << 's';
    out_ << '\n';
    for (int k = n.count; k > 0; --k) {
      indent(k);
      out_ << "}";
      if (k == 1) out_ << " : " << c_.p.type(v);
      out_ << '\n';
      if (k > 1) {
        indent(k);
        out_ << "yield ";
        global_name(v);
        for (int i = 0; i < k - 1; ++i) out_ << 's';
        out_ << '\n';
      }
    }
  }

  /// Prints `%xs = slice 0 %x[%rB]` for each loop that slices the operand. Returns the resulting
  /// element of `pieces_`, counted from 1 (0: none). A slice that another op in these loops already
  /// has is not repeated; different slices of a value are numbered: `%xs2`. `operand` -1 means the
  /// result dimensions of the op itself (a parameter). All loops over a factor with a halo become
  /// one slice of given length: `slice 0 %x[4 * %rB - 1, 6]` has 6 elements.
  constexpr int print_slices(op_id o, int operand, value_id v, const shown_nest& n, int depth,
                             bool global, span<const halo_loops> halos = {}) {
    tensor_type type = c_.p.type(v);
    int last = 0;
    text stem = concat('%', names_[v]), so_far;
    for (int k = 0; k < n.count; ++k) {
      const shown_loop& each = n.loops[k];
      const loop& l = c_.nest_of(o).loops[each.first];
      if (l.factor == any_factor) continue;
      const factor& f = c_.map.at(o, l.factor);
      const int dim = operand < 0 ? f.result_dim : c_.map.operand_dim(f, operand);
      if (dim == no_dim) continue;
      const halo_loops* halo = nullptr;
      for (const auto& h : halos)
        if (h.factor == l.factor && !h.cut.plain(operand)) halo = &h;
      const int innermost = c_.nest_of(o).loops[each.first + each.count - 1].axis;
      if (halo != nullptr && innermost != halo->axes.axes[halo->axes.count - 1]) continue;
      const text where = index_of(n, o, operand, each, halo);
      if (halo != nullptr)
        type.shape[dim] = halo->cut.ranges[operand].length;
      else
        type.shape[dim] /= each.over.size;
      so_far << dim << where;
      stem << 's';
      const int from = last;
      last = find_piece(v, so_far);
      if (last > 0) continue;
      pieces_.push_back({v, so_far, unused(v, stem), last_piece_[v]});
      last = last_piece_[v] = static_cast<int>(pieces_.size());
      indent(depth);
      out_ << pieces_.back().name << " = slice " << dim << ' ';
      if (from > 0)
        out_ << pieces_[from - 1].name;
      else if (global)
        global_name(v);
      else
        name_at(v, 0);
      out_ << where << " : " << type << '\n';
    }
    return last;
  }
  constexpr int find_piece(value_id v, const text& sliced) const {
    int i = last_piece_[v];
    while (i > 0 && !(pieces_[i - 1].sliced == sliced)) i = pieces_[i - 1].before;
    return i;
  }
  constexpr text unused(value_id v, const text& stem) const {
    text name = stem;
    for (int n = 2, i = last_piece_[v]; i > 0;) {
      const bool taken = pieces_[i - 1].name == name;
      if (taken) name = concat(stem, n++);
      i = taken ? last_piece_[v] : pieces_[i - 1].before;
    }
    return name;
  }
  constexpr void forget_pieces() {
    for (const auto& each : pieces_) last_piece_[each.value] = 0;
    pieces_.clear();
  }
  /// Returns `[%rB]`, or the start and length of a piece with a halo: `[4 * %rB - 1, 6]`.
  constexpr text index_of(const shown_nest& n, op_id o, int operand, const shown_loop& each,
                          const halo_loops* halo) const {
    text out;
    if (halo == nullptr) {
      out << '[';
      range_name(out, each.over);
      return out << ']';
    }
    const halo_range& r = halo->cut.ranges[operand];
    out << '[';
    if (r.step != 1) out << r.step << " * ";
    out << loop_index(n, o, halo->factor, halo->cut.pieces);
    if (r.first != 0) out << (r.first > 0 ? " + " : " - ") << (r.first > 0 ? r.first : -r.first);
    out << ", " << r.length << ']';
    if (r.fill_operand >= 0)  // out of bounds
      out << " else " << global_text(c_.p.operand(o, r.fill_operand));
    else if (r.inside)
      out << " inside";
    else if (r.fill == combiner::stack)
      out << " around";
    return out;
  }
  /// Returns the index of the current piece of a factor: `%rB`, or `(4 * %rA + %rB)`.
  constexpr text loop_index(const shown_nest& n, op_id o, int factor, std::int64_t pieces) const {
    text sum;
    std::int64_t inner = pieces;
    int count = 0;
    for (int k = 0; k < n.count; ++k) {
      const sub_axis& over = n.loops[k].over;
      if (c_.nest_of(o).loops[n.loops[k].first].factor != factor || over.size == 1) continue;
      if (count++ > 0) sum << " + ";
      inner /= over.size;
      if (inner > 1) sum << inner << " * ";
      range_name(sum, over);
    }
    return count > 1 ? concat('(', sum, ')') : sum;
  }

  constexpr void print_op(op_id o, const shown_nest& n, int depth) {
    const value_id v = c_.p.op(o).result;
    const auto given = c_.p.attrs(o);
    vec<std::int64_t> attrs(given.begin(), given.end());
    vec<halo_loops> halos;
    if (n.count > 0 && c_.has_halo(o)) halos = c_.halos_of(o, attrs);
    // per operand: its index in `pieces_`, counted from 1, or -1 - depth inside the group
    vec<int> sliced;
    for (int i = 0; i < c_.p.op(o).operand_count; ++i) {
      const value_id x = c_.p.operand(o, i);
      const op_id q = c_.p.producer(x);
      const bool inside = n.count > 0 && group_[index(q)] == group_[index(o)];
      sliced.push_back(inside ? -1 - n.count : print_slices(o, i, x, n, depth, true, halos));
    }
    indent(depth);
    const int results = c_.p.op(o).result_count;
    append_list(out_, results, [&](int r) { name_at(v + r, n.count); });
    out_ << " = ";
    const auto name = [&](int i) {
      text whole;
      std::swap(whole, out_);
      operand_name(o, i, sliced[index(i)]);
      std::swap(whole, out_);
      out_ << whole.view().substr(1);
    };
    const bool identity = c_.p.op(o).def->identity && !c_.p.is(o, op_role::tag);
    if ((identity && n.count > 0) || (!halos.empty() && halos.back().cut.identity))
      operand_name(o, 0, sliced[0]);
    else if (halos.empty())
      print_call(out_, c_.p, o, &c_.mesh, name);
    else
      print_iteration(o, attrs, name);
    if (n.count > 0)
      for (const located_loops& each : c_.located_of(o)) {  // the offset of its piece
        std::int64_t pieces = 1;
        for (int axis : each.axes) pieces *= c_.mesh.size(axis);
        if (pieces == 1) continue;
        out_ << " at ";
        if (each.piece.block > 1) out_ << each.piece.block << " * ";
        out_ << loop_index(n, o, each.piece.factor, pieces);
      }
    for (const auto& h : halos)
      if (h.cut.made > 0)  // the elements of its piece
        out_ << " keep " << c_.p.type(v).shape[h.cut.result_dim] / h.cut.pieces;
    out_ << " : ";
    append_list(out_, results, [&](int r) {
      tensor_type local = c_.p.type(v + r);
      if (n.count > 0) local.shape = c_.produced_layout(v + r).local(local.shape, c_.mesh);
      out_ << local;
    });
    out_ << '\n';
  }
  /// Prints the call with attributes `attrs`.
  template <class Names>
  constexpr void print_iteration(op_id o, const vec<std::int64_t>& attrs, const Names& name) {
    const op_node& n = c_.p.op(o);
    program one;
    vec<value_id> operands;
    for (value_id x : c_.p.operands(o))
      operands.push_back(one.append(def<op::parameter>, {}, {}, c_.p.type(x)));
    one.append(*n.def, operands, attrs, c_.p.type(n.result));
    print_call(out_, one, one.op_count() - 1, &c_.mesh, name);
  }
  constexpr void operand_name(op_id o, int i, int sliced) {
    const value_id x = c_.p.operand(o, i);
    if (sliced < 0)
      name_at(x, -1 - sliced);
    else if (sliced == 0)
      global_name(x);
    else
      out_ << pieces_[sliced - 1].name;
  }

  constexpr void print_group(const vec<op_id>& members) {
    forget_pieces();
    const shown_nest n = shown(c_.nest_of(members.front()), members);
    vec<value_id> yielded;
    for (op_id o : members)
      for (int r = 0; r < c_.p.op(o).result_count; ++r)
        if (escapes(c_, group_, c_.p.op(o).result + r)) yielded.push_back(c_.p.op(o).result + r);
    const auto list = [&](int depth) {
      append_list(out_, static_cast<int>(yielded.size()),
                  [&](int i) { name_at(yielded[index(i)], depth); });
    };
    for (int k = 0; k < n.count; ++k) {
      indent(k + 1);
      list(k);
      loop_head(n.loops[k].over);
      append_list(out_, static_cast<int>(yielded.size()), [&](int i) {
        const op_id o = c_.p.producer(yielded[index(i)]);
        loop_kind(yielded[index(i)], c_.nest_of(o).loops[n.loops[k].first]);
      });
      loop_tail(n.loops[k].over);
    }
    for (op_id o : members) print_op(o, n, n.count + 1);
    for (int k = n.count; k > 0; --k) {
      indent(k + 1);
      out_ << "yield ";
      list(k);
      out_ << '\n';
      indent(k);
      out_ << '}';
      if (k == 1) {
        out_ << " : ";
        append_list(out_, static_cast<int>(yielded.size()),
                    [&](int i) { out_ << c_.p.type(yielded[index(i)]); });
      }
      out_ << '\n';
    }
  }
};

}  // namespace core_detail

/// Returns the program with its loops as text. `fuse` merges the nests of neighbouring ops where
/// possible, as listing 8 does; without it each op has its own nest.
constexpr text print_core(const core_program& c, bool fuse = true) {
  return core_detail::core_printer(c, fuse).print();
}

}  // namespace partita
