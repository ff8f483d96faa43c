/// Finds the results of a module that are the next states of arguments.
#pragma once

#include <partita/ir/wires.hpp>
#include <partita/op/registry.hpp>
#include <partita/stablehlo/ports.hpp>
#include <partita/support/name_table.hpp>

namespace partita::stablehlo_detail {

/// The inputs of a program that a value updates: it is computed from them element by element.
///
/// A path from the value to an input follows ops that work element by element and keep the shape,
/// the tensor that an op updates in place, and loops and branches, from their results to their
/// operands. The search ends after `most_visits` values.
class updated_inputs {
 public:
  struct origin {
    int input = -1;
    int distance = 0;     ///< number of ops on the path
    bool scaled = false;  ///< the path has an op other than sums and selections
  };

  /// The wires of the last visited op with nested programs.
  struct wires_of_op {
    op_id op = -1;
    wire_list list;
    vec<int> by_result;  ///< by result: the wire that ends in exactly this result, or -1

    constexpr void find(const program& p, op_id o) {
      op = o;
      list = {};
      p.op(o).def->wires(p, o, list);
      by_result.assign(static_cast<std::size_t>(p.op(o).result_count), -1);
      for (std::size_t w = 0; w < list.wires.size(); ++w)
        for (const wire_end& e : list.wires[w].ends)
          if (e.kind == wire_end::result && e.shift == 0)
            by_result[static_cast<std::size_t>(e.index)] = static_cast<int>(w);
    }
  };

  /// The origins of `v`, nearest first, each input once. `numbers`: by value, the number of the
  /// input, or -1; null for a nested program, whose inputs are then searched.
  static constexpr vec<origin> of(const program& p, value_id v, const vec<int>* numbers,
                                  wires_of_op& wires, int depth = 0) {
    updated_inputs f(p, numbers, wires, depth);
    f.add(v, 0, false);
    vec<origin> found;
    for (std::size_t i = 0; i < f.list_.size() && i < most_visits; ++i) {
      const step at = f.list_[i];
      if (const int input = f.input_of(at.value); input >= 0)
        found.push_back({input, at.distance, at.scaled});
      else
        f.follow(at);
    }
    return found;
  }

 private:
  static constexpr std::size_t most_visits = 96;
  static constexpr int most_depth = 8;
  struct step {
    value_id value = -1;
    int distance = 0;
    bool scaled = false;
  };
  const program& p_;
  const vec<int>* numbers_;
  wires_of_op& of_;
  int depth_;
  vec<step> list_;

  constexpr updated_inputs(const program& p, const vec<int>* numbers, wires_of_op& wires, int depth)
      : p_(p), numbers_(numbers), of_(wires), depth_(depth) {}

  constexpr int input_of(value_id v) const {
    if (!p_.is(p_.producer(v), op_role::parameter)) return -1;
    if (depth_ == 0) return (*numbers_)[static_cast<std::size_t>(v)];
    for (int i = 0; i < p_.input_count(); ++i)
      if (p_.inputs[static_cast<std::size_t>(i)] == v) return i;
    return -1;
  }
  /// (The list stays ordered by distance, except for loops and branches, which add their own
  /// paths.)
  constexpr void add(value_id v, int distance, bool scaled) {
    for (const step& each : list_)
      if (each.value == v) return;
    std::size_t at = list_.size();
    list_.push_back({v, distance, scaled});
    while (at > 0 && list_[at - 1].distance > distance) {
      list_[at] = list_[at - 1];
      --at;
    }
    list_[at] = {v, distance, scaled};
  }
  constexpr void follow(const step& at) {
    const op_id o = p_.producer(at.value);
    const op_node& n = p_.op(o);
    const op_def& d = *n.def;
    if (d.passes_on) return add(p_.operand(o, p_.result_index(at.value)), at.distance, at.scaled);
    if (n.region_count > 0) return follow_control(o, at);
    if (!d.elementwise && !d.identity) {
      if (d.in_place && n.operand_count > 0 && p_.type(p_.operand(o, 0)) == p_.type(at.value))
        add(p_.operand(o, 0), at.distance + 1, true);
      return;
    }
    for (int i = 0; i < n.operand_count; ++i) {
      const value_id x = p_.operand(o, i);
      if (p_.type(x).shape == p_.type(at.value).shape && !(d.id == def<op::select>.id && i == 0))
        add(x, at.distance + (d.identity ? 0 : 1), at.scaled || scales(d, i));
    }
  }
  static constexpr bool scales(const op_def& d, int operand) {
    return !(d.identity || d.id == def<op::add>.id || d.id == def<op::convert>.id ||
             d.id == def<op::reduce_precision>.id || d.id == def<op::select>.id ||
             (d.id == def<op::subtract>.id && operand == 0));
  }
  /// A loop returns its carried values; a branch returns the results of its programs on its
  /// operands.
  constexpr void follow_control(op_id o, const step& at) {
    if (of_.op != o) of_.find(p_, o);
    const int number = of_.by_result[static_cast<std::size_t>(p_.result_index(at.value))];
    if (number < 0) return;
    const wire& w = of_.list.wires[static_cast<std::size_t>(number)];
    bool carried = false;
    for (const wire_end& e : w.ends) carried = carried || e.kind == wire_end::operand;
    for (const wire_end& e : w.ends) {
      if (carried && e.kind == wire_end::operand && e.shift == 0)
        add(p_.operand(o, e.index), at.distance + 1, at.scaled);
      if (carried || e.kind != wire_end::output || depth_ >= most_depth) continue;
      const program& r = p_.region(o, e.region);
      wires_of_op inside;
      for (const origin& each :
           of(r, r.outputs[static_cast<std::size_t>(e.index)].value, nullptr, inside, depth_ + 1))
        if (const int given = operand_of(of_.list, e.region, each.input); given >= 0)
          add(p_.operand(o, given), at.distance + each.distance + 1, at.scaled || each.scaled);
    }
  }
  static constexpr int operand_of(const wire_list& list, int region, int input) {
    for (const wire& w : list.wires) {
      int operand = -1;
      bool mine = false;
      for (const wire_end& e : w.ends) {
        if (e.kind == wire_end::operand && e.shift == 0) operand = e.index;
        mine = mine || (e.kind == wire_end::input && e.region == region && e.index == input);
      }
      if (mine) return operand;
    }
    return -1;
  }
};

/// Renames each result that is the next state of an argument to the name of that argument, by which
/// the rest of the library identifies states. In this order:
///
/// 1. Equal names: `return {"params": p}` of `params`.
/// 2. Data flow: a result with the type of an argument, computed from it element by element. It is
///    the next state if the module donates the argument. It also is if both have the same path
///    after their first names (`params.w` and `0.w`) and either the result is a sum with the
///    argument as a term, or only such results read the argument (as moments of an optimizer). Of
///    several candidates the nearest counts, then equal paths, then `tf.aliasing_output`.
/// 3. Donation: a donated argument and the result that reuses its memory, or an argument that any
///    result may reuse (`jax.buffer_donor`), if just one of its type is left.
///
/// (JAX pairs donated arguments and results by their types alone, in order: if moments are returned
/// before parameters of the same type, each is paired with the other. So rule 2 precedes rule 3.)
///
/// Possible states that cannot be identified are noted.
///
/// Cost      linear in arguments and results; at most a hundred values are visited for each result
class state_names {
 public:
  constexpr explicit state_names(program& p)
      : p_(p),
        state_of_(p.outputs.size(), -1),
        next_of_(p.inputs.size(), -1),
        candidates_(p.outputs.size(), vec<updated_inputs::origin>()) {
    input_number_.resize(p.types.size(), -1);
    for (int i = 0; i < p.input_count(); ++i)
      input_number_[static_cast<std::size_t>(p.inputs[static_cast<std::size_t>(i)])] = i;
  }

  constexpr void run() {
    by_name();
    by_data();
    by_donation();
    note();
  }

 private:
  program& p_;
  vec<int> state_of_;                            ///< by output: the input, or -1
  vec<int> next_of_;                             ///< by input: the output, or -1
  vec<vec<updated_inputs::origin>> candidates_;  ///< by output
  vec<int> input_number_;                        ///< by value, or -1
  vec<char> read_otherwise_;  ///< by value: true if ops that are not elementwise read it

  constexpr bool is_donated(int i) const { return p_.interface.donated(i); }
  constexpr int alias_of(int i) const {
    const auto at = static_cast<std::size_t>(i);
    return at < p_.interface.inputs.size() ? p_.interface.inputs[at].alias : -1;
  }
  constexpr bool is_open(int k) const { return state_of_[static_cast<std::size_t>(k)] < 0; }
  constexpr bool is_free(int i) const { return next_of_[static_cast<std::size_t>(i)] < 0; }
  constexpr void pair(int i, int k) {
    state_of_[static_cast<std::size_t>(k)] = i;
    next_of_[static_cast<std::size_t>(i)] = k;
  }
  constexpr void tie(int i, int k) {
    pair(i, k);
    p_.outputs[static_cast<std::size_t>(k)].name = p_.intern(text(p_.input_name(i)));
  }
  /// The path after the first name: `w` of `params.w`; empty for a name of one part.
  static constexpr std::string_view tail(std::string_view name) {
    const std::size_t dot = name.find('.');
    return dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
  }
  constexpr bool same_tail(int i, int k) const {
    const std::string_view a = tail(p_.input_name(i));
    if (a.empty()) return false;
    // (The name of a tuple in a tuple starts with more than one number.)
    for (std::string_view b = tail(p_.output_name(k)); !b.empty(); b = tail(b))
      if (a == b) return true;
    return false;
  }

  constexpr void by_name() {
    name_table inputs(p_.inputs.size());
    for (int i = 0; i < p_.input_count(); ++i) inputs.insert(p_.input_name(i), i);
    for (int k = 0; k < p_.output_count(); ++k) {
      const int i = inputs.find(p_.output_name(k));
      if (i >= 0 && is_free(i) && p_.input_type(i) == p_.output_type(k)) pair(i, k);
    }
  }
  constexpr void by_data() {
    int farthest = 0;
    updated_inputs::wires_of_op wires;
    for (int k = 0; k < p_.output_count(); ++k) {
      if (!is_open(k)) continue;
      const value_id v = p_.outputs[static_cast<std::size_t>(k)].value;
      const int passed = input_number_[static_cast<std::size_t>(v)];
      if (passed >= 0 && !is_donated(passed)) continue;
      auto& mine = candidates_[static_cast<std::size_t>(k)];
      for (const auto& each : updated_inputs::of(p_, v, &input_number_, wires))
        if (is_free(each.input) && p_.input_type(each.input) == p_.output_type(k)) {
          mine.push_back(each);
          if (each.distance > farthest) farthest = each.distance;
        }
    }
    read_otherwise_ = read_otherwise(p_);
    for (int distance = 0; distance <= farthest; ++distance)
      for (const bool paths : {true, false})
        for (const bool aliases : {true, false})
          for (const bool alone : {true, false}) tie_at(distance, paths, aliases, alone);
  }
  /// Ties pairs at a distance if neither has another partner at that distance. The flags restrict
  /// them to pairs with equal paths, pairs that the module makes, and results near no other
  /// argument.
  constexpr void tie_at(int distance, bool paths, bool aliases, bool alone) {
    vec<int> only(p_.inputs.size(), -1);  // by input: the output; -2: several
    vec<int> of_output(p_.outputs.size(), -1);
    for (int k = 0; k < p_.output_count(); ++k) {
      if (!is_open(k) || (alone && inputs_at(k, distance) != 1)) continue;
      for (const auto& c : candidates_[static_cast<std::size_t>(k)]) {
        if (c.distance != distance || !is_free(c.input) || (paths && !same_tail(c.input, k)) ||
            (aliases && alias_of(c.input) != k) || !is_certain(c, k))
          continue;
        int& to = only[static_cast<std::size_t>(c.input)];
        int& from = of_output[static_cast<std::size_t>(k)];
        to = to == -1 ? k : -2;
        from = from == -1 ? c.input : -2;
      }
    }
    for (int k = 0; k < p_.output_count(); ++k)
      if (const int i = of_output[static_cast<std::size_t>(k)];
          i >= 0 && only[static_cast<std::size_t>(i)] == k)
        tie(i, k);
  }
  constexpr int inputs_at(int k, int distance) const {
    int n = 0;
    for (const auto& c : candidates_[static_cast<std::size_t>(k)])
      n += c.distance == distance && is_free(c.input) ? 1 : 0;
    return n;
  }
  constexpr bool is_certain(const updated_inputs::origin& c, int k) const {
    if (is_donated(c.input)) return true;
    return same_tail(c.input, k) && c.distance > 0 && (!c.scaled || is_only_updated(c.input));
  }
  /// True if only ops that work element by element read an input.
  constexpr bool is_only_updated(int i) const {
    const value_id v = p_.inputs[static_cast<std::size_t>(i)];
    return read_otherwise_[static_cast<std::size_t>(v)] == 0;
  }
  /// (Operands of loops and branches count as their programs read them.)
  static constexpr vec<char> read_otherwise(const program& p) {
    vec<char> read(p.types.size(), 0);
    for (op_id o = 0; o < p.op_count(); ++o) {
      const op_node& n = p.op(o);
      if (n.def->elementwise || n.def->identity || n.def->passes_on) continue;
      if (n.region_count == 0) {
        for (const value_id v : p.operands(o)) read[static_cast<std::size_t>(v)] = 1;
        continue;
      }
      vec<vec<char>> inside;
      for (const program& r : p.regions_of(o)) inside.push_back(read_otherwise(r));
      wire_list list;
      n.def->wires(p, o, list);
      for (const wire& w : list.wires) {
        char any = 0;
        for (const wire_end& e : w.ends)
          if (e.kind == wire_end::input) {
            const program& r = p.region(o, e.region);
            any |= inside[static_cast<std::size_t>(e.region)]
                         [static_cast<std::size_t>(r.inputs[static_cast<std::size_t>(e.index)])];
          }
        for (const wire_end& e : w.ends)
          if (e.kind == wire_end::operand)
            read[static_cast<std::size_t>(p.operand(o, e.index))] |= any;
      }
    }
    return read;
  }
  constexpr void by_donation() {
    for (int i = 0; i < p_.input_count(); ++i) {
      const int k = alias_of(i);
      if (k >= 0 && k < p_.output_count() && is_free(i) && is_open(k) &&
          p_.input_type(i) == p_.output_type(k))
        tie(i, k);
    }
    for (int i = 0; i < p_.input_count(); ++i) {
      if (!is_donated(i) || !is_free(i) || alias_of(i) >= 0) continue;
      int results = 0, donors = 0, last = -1;
      for (int k = 0; k < p_.output_count(); ++k)
        if (is_open(k) && p_.output_type(k) == p_.input_type(i)) ++results, last = k;
      for (int j = 0; j < p_.input_count(); ++j)
        donors += is_donated(j) && is_free(j) && p_.input_type(j) == p_.input_type(i) ? 1 : 0;
      if (results == 1 && donors == 1) tie(i, last);
    }
  }

  /// Appends quoted names, at most four of them.
  struct name_list {
    text names;
    int count = 0;

    constexpr void add(std::string_view name) {
      if (count++ < 4) names << (count > 1 ? ", \"" : "\"") << name << '"';
    }
    constexpr void print(text& out) const {
      out << names;
      if (count > 4) out << " and " << count - 4 << " more";
    }
  };
  constexpr void note() {
    name_list untied, maybe, sources;
    for (int i = 0; i < p_.input_count(); ++i)
      if (is_donated(i) && is_free(i)) untied.add(p_.input_name(i));
    // (If a module marks donated arguments, the others are not states.)
    for (int k = 0; k < p_.output_count() && !p_.interface.says_donations(); ++k)
      for (const auto& c : candidates_[static_cast<std::size_t>(k)])
        if (is_open(k) && is_free(c.input) && c.distance > 0 &&
            (!c.scaled || same_tail(c.input, k))) {
          maybe.add(p_.output_name(k));
          sources.add(p_.input_name(c.input));
          break;
        }
    if (untied.count > 0) {
      text line = "no result could be identified as the next state of ";
      untied.print(line);
      line << ", which the module donates; return each under the name of its argument";
      p_.interface.notes.push_back(line);
    }
    if (maybe.count > 0) {
      text line = "results that may be next states, but are sharded independently: ";
      maybe.print(line);
      line << " of ";
      sources.print(line);
      line << "; donate the argument, or return it under the same name, if both should have the "
              "same layout";
      p_.interface.notes.push_back(line);
    }
  }
};

}  // namespace partita::stablehlo_detail
