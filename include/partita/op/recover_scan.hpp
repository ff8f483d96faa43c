/// Recovers a `scan` from a counting `while`.
#pragma once

#include <partita/ir/copy.hpp>
#include <partita/op/dynamic_slice.hpp>
#include <partita/op/iteration_numbers.hpp>
#include <partita/op/reverse.hpp>
#include <partita/op/scan.hpp>
#include <partita/op/slice.hpp>
#include <partita/op/trip_count.hpp>
#include <partita/op/while_loop.hpp>

namespace partita {

namespace op_detail {

/// How a `while` maps to a `scan`: the role of each carried value.
///
/// A carried value that the body returns unchanged is a constant. An integer that starts at a
/// constant and grows by a constant is a counter. If the body reads the row of a constant at the
/// current iteration, the row is a slice. If the body writes only that row of a value, the value is
/// a stack. Everything else is carried.
/// Cost: linear in the ops of the body, plus one more pass for each stack that the body reads.
class scan_analysis {
 public:
  enum class role : std::uint8_t { carried, constant, counter, stack };
  /// Row `at` of the body's input `input`, for all dynamic slices that read it.
  struct row_slices {
    int input = -1;
    iteration_number at;
  };
  struct row_stack {
    int input = -1;
    iteration_number at;
    value_id row = -1;  ///< of the body; shape (1, ...)
  };

  vec<role> roles;                 ///< by carried value
  vec<iteration_number> counters;  ///< by carried value
  vec<row_slices> slices;
  vec<row_stack> stacks;
  vec<int> slice_of;  ///< by op of the body: the entry of `slices` that it reads, or -1
  trip_count count;
  text why_not;  ///< a clause that explains why the loop stays a `while`; empty if it does not

  /// `carried`: values of `around`. Both programs accept all of them, and the body returns them.
  constexpr scan_analysis(const program& around, span<const value_id> carried,
                          const program& condition, const program& body)
      : around_(around), carried_(carried), body_(body) {
    count = find_trip_count(around, carried, condition, body);
    if (!count.known) {
      why_not << count.unknown_because;
      return;
    }
    if (count.trips > 0x7fffffff) {
      why_not << "it runs " << count.trips << " times, more than a 32-bit index counts";
      return;
    }
    if (count.trips == 0) return;
    find_counters();
    if (why_not.empty()) find_rows();
  }

 private:
  const program& around_;
  span<const value_id> carried_;
  const program& body_;

  constexpr int size() const { return static_cast<int>(carried_.size()); }
  static constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

  /// Finds the constant that a value of the body equals, inside or outside the loop.
  constexpr bool constant_in_body(value_id v, std::int64_t& n) const {
    while (body_.op(body_.producer(v)).def->identity &&
           body_.op(body_.producer(v)).def->role != op_role::parameter)
      v = body_.operand(body_.producer(v), 0);
    if (integer_constant(body_, v, n)) return true;
    for (int i = 0; i < size(); ++i)
      if (body_.inputs[i] == v)
        return body_.outputs[i].value == v && integer_constant(around_, carried_[at(i)], n);
    return false;
  }
  /// True if output `i` is input `i` plus or minus a constant, in one op.
  constexpr bool steps(int i, std::int64_t& step) const {
    const op_id o = body_.producer(body_.outputs[i].value);
    const bool adds = body_.op(o).def->id == def<op::add>.id;
    if (!adds && body_.op(o).def->id != def<op::subtract>.id) return false;
    for (int k = 0; k < (adds ? 2 : 1); ++k) {
      if (body_.operand(o, k) != body_.inputs[i] ||
          !constant_in_body(body_.operand(o, 1 - k), step) || step == INT64_MIN)
        continue;
      if (!adds) step = -step;
      return true;
    }
    return false;
  }
  constexpr void find_counters() {
    roles.resize(at(size()), role::carried);
    counters.resize(at(size()), iteration_number());
    for (int i = 0; i < size(); ++i) {
      const bool stays = body_.outputs[i].value == body_.inputs[i];
      if (stays) roles[at(i)] = role::constant;
      const tensor_type& t = body_.input_type(i);
      iteration_number n;
      if (t.shape.rank != 0 || is_floating(t.element) ||
          !integer_constant(around_, carried_[at(i)], n.offset) || (!stays && !steps(i, n.slope)))
        continue;
      const checked end = n.at(count.trips);
      n.known = !end.overflowed() && end.value_or(0) >= op::least_integer(t.element) &&
                end.value_or(0) <= op::greatest_integer(t.element);
      if (!n.known) continue;
      counters[at(i)] = n;
      if (!stays) roles[at(i)] = role::counter;
    }
    if (roles[at(count.counter)] != role::counter)
      why_not << "its counter is not changed by one addition of a constant";
  }

  /// True if `o` reads or writes one row of a value: all of each dimension but the first.
  constexpr bool is_row(const tensor_type& all, const tensor_type& row) const {
    bool good = all.shape.rank > 0 && row.shape.rank == all.shape.rank && row.shape[0] == 1;
    for (int d = 1; good && d < all.shape.rank; ++d) good = row.shape[d] == all.shape[d];
    return good;
  }
  /// Finds the row that start index `v` selects among `rows`. True if each iteration selects a
  /// different row and the index is never clamped.
  constexpr bool visits(const iteration_numbers& numbers, value_id v, std::int64_t rows,
                        iteration_number& n) const {
    n = numbers[v];
    if (rows == 1 && count.trips == 1) n = {true, 0, 0};  // any start is clamped to 0
    if (count.trips == 1) n.slope = 1;
    if (!n.known || (n.slope != 1 && n.slope != -1)) return false;
    const auto good = [&](checked row) { return row.value_or(-1) >= 0 && row.value_or(-1) < rows; };
    return good(n.at(0)) && good(n.at(count.trips - 1));
  }
  constexpr void find_rows() {
    const iteration_numbers numbers(body_, count.trips, counters);
    vec<int> uses(body_.types.size(), 0), input_of(body_.types.size(), -1);
    for (value_id v : body_.operand_list) ++uses[at(v)];
    for (const auto& out : body_.outputs) ++uses[at(out.value)];
    for (int i = 0; i < size(); ++i) input_of[at(body_.inputs[i])] = i;
    // Rows that the body reads, by op, and the number of them for each input.
    vec<iteration_number> row_reads(body_.ops.size(), iteration_number());
    vec<int> rows_of(at(size()), 0);
    for (op_id o = 0; o < body_.op_count(); ++o) {
      if (body_.op(o).def->id != def<op::dynamic_slice>.id) continue;
      const int i = input_of[at(body_.operand(o, 0))];
      if (i < 0 || !is_row(body_.input_type(i), body_.type(body_.op(o).result)) ||
          !visits(numbers, body_.operand(o, 1), body_.input_type(i).shape[0], row_reads[at(o)])) {
        row_reads[at(o)].known = false;
        continue;
      }
      ++rows_of[at(i)];
    }
    for (int i = 0; i < size() && why_not.empty(); ++i)
      if (roles[at(i)] == role::carried) find_stack(i, numbers, uses, rows_of, row_reads);
    if (!why_not.empty()) return;
    slice_of.resize(body_.ops.size(), -1);
    for (op_id o = 0; o < body_.op_count(); ++o) {
      if (!row_reads[at(o)].known) continue;
      const int i = input_of[at(body_.operand(o, 0))];
      if (roles[at(i)] != role::constant && roles[at(i)] != role::stack) continue;
      slice_of[at(o)] = slice({i, row_reads[at(o)]});
    }
  }
  constexpr int slice(const row_slices& wanted) {
    for (std::size_t k = 0; k < slices.size(); ++k)
      if (slices[k].input == wanted.input && slices[k].at == wanted.at) return static_cast<int>(k);
    slices.push_back(wanted);
    return static_cast<int>(slices.size()) - 1;
  }
  /// A stack is written once in each iteration, always at another row, and read at that row only.
  constexpr void find_stack(int i, const iteration_numbers& numbers, const vec<int>& uses,
                            const vec<int>& rows_of, const vec<iteration_number>& row_reads) {
    const value_id all = body_.inputs[i], written = body_.outputs[i].value;
    const op_id o = body_.producer(written);
    if (body_.op(o).def->id != def<op::dynamic_update_slice>.id || body_.operand(o, 0) != all ||
        uses[at(written)] != 1 || uses[at(all)] != 1 + rows_of[at(i)] ||
        !is_row(body_.type(all), body_.type(body_.operand(o, 1))))
      return;
    const std::int64_t rows = body_.type(all).shape[0];
    iteration_number n = numbers[body_.operand(o, 2)];
    const bool same_row = rows == 1 || (n.known && n.slope == 0);
    if (same_row && count.trips > 1) return;
    if (!visits(numbers, body_.operand(o, 2), rows, n)) {
      why_not << "the body writes rows of carried value " << i
              << " at an index that is not the counter";
      return;
    }
    for (op_id each = 0; rows_of[at(i)] > 0 && each < body_.op_count(); ++each)
      if (row_reads[at(each)].known && body_.operand(each, 0) == all && !(row_reads[at(each)] == n))
        return;
    roles[at(i)] = role::stack;
    stacks.push_back({i, n, body_.operand(o, 1)});
  }
};

/// Writes the `scan` that a scan_analysis found.
class scan_recovery {
 public:
  constexpr scan_recovery(builder& around, const scan_analysis& found, span<const value_id> carried,
                          const program& body)
      : b_(around), f_(found), carried_(carried), body_(body), trips_(found.count.trips) {}

  /// Emits the scan and returns the value of each carried value after the loop.
  constexpr vec<value_id> run() {
    if (trips_ == 0) return {carried_.data(), carried_.data() + carried_.size()};
    choose_direction();
    inner_.number_with(b_);
    find_live();
    vec<value_id> constants, initial, sliced;
    program step = nested(constants, initial, sliced);
    vec<value_id> operands = constants;
    operands.insert_back(initial.begin(), initial.end());
    operands.insert_back(sliced.begin(), sliced.end());
    value_id first = -1;
    if (!step.outputs.empty()) {
      const std::int64_t attrs[] = {trips_,
                                    reversed_,
                                    static_cast<std::int64_t>(constants.size()),
                                    static_cast<std::int64_t>(initial.size()),
                                    static_cast<std::int64_t>(sliced.size()),
                                    static_cast<std::int64_t>(step.outputs.size() - initial.size()),
                                    0};
      first = b_.emit(def<op::scan>, operands, attrs, {},
                      ops::region_list(static_cast<program&&>(step)));
    }
    return results(first, static_cast<int>(initial.size()));
  }

 private:
  using role = scan_analysis::role;
  builder& b_;
  const scan_analysis& f_;
  span<const value_id> carried_;
  const program& body_;
  std::int64_t trips_;
  bool reversed_ = false;
  builder inner_;
  vec<char> live_;      ///< by value of the body
  vec<char> used_;      ///< by entry of `slices`: true if the new body reads it
  vec<value_id> rows_;  ///< by entry of `slices`: the row in the new body, or -1
  value_id index_ = -1;
  vec<int> copy_of_;  ///< by entry of `stacks`: the slice that it repeats, or -1

  static constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }
  constexpr int size() const { return static_cast<int>(carried_.size()); }

  /// Makes the scan run backwards if most slices and stacks do.
  constexpr void choose_direction() {
    std::int64_t up = 0;
    for (const auto& each : f_.slices) up += each.at.slope;
    for (const auto& each : f_.stacks) up += each.at.slope;
    reversed_ = up < 0;
  }
  constexpr bool is_reversed(const iteration_number& n) const { return (n.slope < 0) != reversed_; }
  /// Returns the lowest row that the loop visits.
  constexpr std::int64_t lowest(const iteration_number& n) const {
    return n.slope > 0 ? n.offset : n.offset - (trips_ - 1);
  }
  constexpr bool covers(int input, const iteration_number& n) const {
    return lowest(n) == 0 && body_.input_type(input).shape[0] == trips_;
  }

  // ---- The body

  /// True if the op keeps the elements and their order.
  constexpr bool only_reshapes(op_id o) const {
    if (body_.op(o).def->id == def<op::reshape>.id) return true;
    if (body_.op(o).def->id != def<op::broadcast_in_dim>.id) return false;
    const auto dims = body_.attrs(o);
    for (std::size_t i = 1; i < dims.size(); ++i)
      if (dims[i] < dims[i - 1]) return false;
    return body_.type(body_.op(o).result).shape.elements() ==
           body_.type(body_.operand(o, 0)).shape.elements();
  }
  /// Returns the value of shape (...) that reshapes turn into a row of shape (1, ...), or -1.
  constexpr value_id row_source(value_id row) const {
    const tensor_type wanted = op::scan::slice_of(body_.type(row));
    value_id v = row;
    while (only_reshapes(body_.producer(v))) {
      v = body_.operand(body_.producer(v), 0);
      if (body_.type(v) == wanted) return v;
    }
    return -1;
  }
  /// Returns the slice that a stack copies row by row, or -1. If there is one, the stack equals the
  /// sliced value.
  constexpr int repeated_slice(const scan_analysis::row_stack& s) const {
    value_id v = s.row;
    while (only_reshapes(body_.producer(v))) v = body_.operand(body_.producer(v), 0);
    const int k = f_.slice_of[at(body_.producer(v))];
    if (k < 0 || body_.type(v) != body_.type(s.row)) return -1;
    const auto& from = f_.slices[at(k)];
    const bool same = from.at == s.at && covers(s.input, s.at) && covers(from.input, from.at) &&
                      f_.roles[at(from.input)] == role::constant;
    return same ? k : -1;
  }
  /// Returns the value whose elements are the row written to a stack.
  constexpr value_id stacked_value(const scan_analysis::row_stack& s) const {
    const value_id source = row_source(s.row);
    return source >= 0 ? source : s.row;
  }
  /// Returns the slice that an op reads, or whose first dimension it drops; otherwise -1.
  constexpr int slice_read_by(op_id o) const {
    const op_node& n = body_.op(o);
    if (n.def->id != def<op::reshape>.id) return f_.slice_of[at(o)];
    const value_id x = body_.operand(o, 0);
    const bool drops = body_.type(n.result) == op::scan::slice_of(body_.type(x));
    return drops ? f_.slice_of[at(body_.producer(x))] : -1;
  }
  constexpr void need(value_id v) { live_[at(v)] = 1; }
  constexpr void find_live() {
    live_.resize(body_.types.size(), 0);
    used_.resize(f_.slices.size(), 0);
    for (const auto& s : f_.stacks) {
      copy_of_.push_back(repeated_slice(s));
      if (copy_of_.back() < 0) need(stacked_value(s));
    }
    for (int i = 0; i < size(); ++i)
      if (f_.roles[at(i)] == role::carried) need(body_.outputs[i].value);
    for (op_id o = body_.op_count(); o-- > 0;) {
      const op_node& n = body_.op(o);
      bool any = n.def->role == op_role::tag;
      for (int r = 0; r < n.result_count; ++r) any = any || live_[at(n.result + r)];
      if (!any) continue;
      need(n.result);
      if (const int k = slice_read_by(o); k >= 0)
        used_[at(k)] = 1;
      else
        for (value_id v : body_.operands(o)) need(v);
    }
  }
  constexpr bool is_live(op_id o) const {
    const op_node& n = body_.op(o);
    for (int r = 0; r < n.result_count; ++r)
      if (live_[at(n.result + r)]) return true;
    return false;
  }
  constexpr value_id parameter(const tensor_type& t) { return ops::parameter(inner_, "", t); }
  /// Emits slope * t + offset, where t is derived from the position that a scan passes to its body.
  constexpr value_id number(const iteration_number& n, dtype t) {
    const std::int64_t slope = reversed_ ? -n.slope : n.slope;
    const std::int64_t offset = reversed_ ? n.offset + n.slope * (trips_ - 1) : n.offset;
    if (slope == 0) return ops::integer(inner_, t, offset);
    value_id v = ops::convert(inner_, index_, t);
    if (slope == -1) {
      v = ops::subtract(inner_, ops::integer(inner_, t, offset), v);
    } else {
      if (slope != 1) v = ops::multiply(inner_, v, ops::integer(inner_, t, slope));
      if (offset != 0) v = ops::add(inner_, v, ops::integer(inner_, t, offset));
    }
    return v;
  }
  constexpr program nested(vec<value_id>& constants, vec<value_id>& initial,
                           vec<value_id>& sliced) {
    program_copier copy(body_, inner_.p);
    copy.reserve();
    index_ = parameter({dtype::i32, {}});
    for (int i = 0; i < size(); ++i) {
      const value_id v = body_.inputs[i], outside = carried_[at(i)];
      if (f_.roles[at(i)] != role::constant || !live_[at(v)]) continue;
      const op_id o = b_.p.producer(outside);
      if (b_.p.op(o).def->id == def<op::constant>.id) {
        copy.renamed[v] = inner_.emit(def<op::constant>, {}, b_.p.attrs(o), b_.type(outside));
      } else {
        copy.renamed[v] = parameter(body_.type(v));
        constants.push_back(outside);
      }
    }
    for (int i = 0; i < size(); ++i) {
      if (f_.roles[at(i)] != role::carried) continue;
      copy.renamed[body_.inputs[i]] = parameter(body_.input_type(i));
      initial.push_back(carried_[at(i)]);
    }
    rows_.resize(f_.slices.size(), -1);
    for (std::size_t k = 0; k < f_.slices.size(); ++k) {
      if (!used_[k]) continue;
      const auto& s = f_.slices[k];
      rows_[k] = parameter(op::scan::slice_of(body_.input_type(s.input)));
      sliced.push_back(rows(carried_[at(s.input)], s.at, body_.input_type(s.input).shape[0]));
    }
    for (int i = 0; i < size(); ++i)
      if (f_.roles[at(i)] == role::counter && live_[at(body_.inputs[i])])
        copy.renamed[body_.inputs[i]] = number(f_.counters[at(i)], body_.input_type(i).element);
    for (op_id o = 0; o < body_.op_count() && !inner_.failed(); ++o)
      if (!body_.is(o, op_role::parameter) && is_live(o)) copy_op(copy, o);
    for (int i = 0; i < size(); ++i)
      if (f_.roles[at(i)] == role::carried)
        inner_.p.outputs.push_back({copy.renamed[body_.outputs[i].value], {}});
    for (std::size_t k = 0; k < f_.stacks.size(); ++k) {
      if (copy_of_[k] >= 0) continue;
      const shape slice = op::scan::slice_of(body_.type(f_.stacks[k].row)).shape;
      const value_id made = copy.renamed[stacked_value(f_.stacks[k])];
      inner_.p.outputs.push_back({ops::reshape(inner_, made, slice), {}});
    }
    b_.p.error.record(inner_.p.error);
    return static_cast<program&&>(inner_.p);
  }
  constexpr void copy_op(program_copier& copy, op_id o) {
    if (const int k = slice_read_by(o); k >= 0) {
      const value_id v = body_.op(o).result;
      copy.renamed[v] = ops::reshape(inner_, rows_[at(k)], body_.type(v).shape);
      return;
    }
    if (body_.op(o).def->id == def<op::while_loop>.id && copy_loop(copy, o)) return;
    copy.op(o);
    for (const program& r : body_.regions_of(o)) inner_.p.append_region(program(r));
  }
  /// Copies a nested `while`. It becomes a scan too if it counts by a value that is constant in
  /// this loop.
  constexpr bool copy_loop(program_copier& copy, op_id o);

  // ---- The enclosing program

  /// Returns the visited rows, in the order in which the scan reads them.
  constexpr value_id rows(value_id v, const iteration_number& n, std::int64_t extent) {
    if (lowest(n) != 0 || extent != trips_) {
      vec<std::int64_t> start, limit, stride;
      for (int d = 0; d < b_.type(v).shape.rank; ++d) {
        start.push_back(d == 0 ? lowest(n) : 0);
        limit.push_back(d == 0 ? lowest(n) + trips_ : b_.type(v).shape[d]);
        stride.push_back(1);
      }
      v = ops::slice(b_, v, {start.data(), start.size()}, {limit.data(), limit.size()},
                     {stride.data(), stride.size()});
    }
    return is_reversed(n) ? reverse_rows(v) : v;
  }
  constexpr value_id reverse_rows(value_id v) {
    const std::int64_t first[] = {0};
    return ops::reverse(b_, v, first);
  }
  constexpr vec<value_id> results(value_id first, int carried) {
    vec<value_id> made;
    value_id next = first, stacked = first + carried;
    std::size_t stack = 0;
    for (int i = 0; i < size() && !b_.failed(); ++i) {
      switch (f_.roles[at(i)]) {
        case role::constant:
          made.push_back(carried_[at(i)]);
          break;
        case role::carried:
          made.push_back(next++);
          break;
        case role::counter:
          made.push_back(ops::integer(b_, body_.input_type(i).element,
                                      f_.counters[at(i)].at(trips_).value_or(0)));
          break;
        case role::stack:
          if (const int k = copy_of_[stack]; k >= 0)
            made.push_back(carried_[at(f_.slices[at(k)].input)]);
          else
            made.push_back(stack_result(i, f_.stacks[stack].at, stacked++));
          ++stack;
          break;
      }
    }
    return made;
  }
  constexpr value_id stack_result(int i, const iteration_number& n, value_id v) {
    if (is_reversed(n)) v = reverse_rows(v);
    if (covers(i, n)) return v;
    vec<value_id> starts;
    for (int d = 0; d < b_.type(v).shape.rank; ++d)
      starts.push_back(ops::integer(b_, dtype::i32, d == 0 ? lowest(n) : 0));
    return ops::dynamic_update_slice(b_, carried_[at(i)], v, {starts.data(), starts.size()});
  }
};

}  // namespace op_detail

namespace ops {

/// Emits the loop `while (condition(carried)) carried = body(carried)` as a `scan` and returns the
/// final value of each carried value. If the loop remains a `while`, emits nothing, returns an
/// empty list, and sets `why_not` to the reason.
constexpr vec<value_id> recovered_scan(builder& b, span<const value_id> carried,
                                       const program& condition, const program& body,
                                       text* why_not = nullptr) {
  if (b.failed()) return {};
  const partita::op_detail::scan_analysis found(b.p, carried, condition, body);
  if (why_not != nullptr) *why_not = found.why_not;
  if (!found.why_not.empty()) return {};
  return partita::op_detail::scan_recovery(b, found, carried, body).run();
}

}  // namespace ops

namespace op_detail {

constexpr bool scan_recovery::copy_loop(program_copier& copy, op_id o) {
  vec<value_id> carried;
  for (value_id v : body_.operands(o)) carried.push_back(copy.renamed[v]);
  const op_id first = inner_.p.op_count();
  const vec<value_id> made =
      ops::recovered_scan(inner_, carried, body_.region(o, 0), body_.region(o, 1));
  const op_node& n = body_.op(o);
  if (made.size() != static_cast<std::size_t>(n.result_count)) return false;
  for (int r = 0; r < n.result_count; ++r) copy.renamed[n.result + r] = made[at(r)];
  for (op_id each = first; each < inner_.p.op_count(); ++each)
    if (inner_.p.op(each).def->id == def<op::scan>.id) inner_.p.op(each).marks = n.marks;
  return true;
}

}  // namespace op_detail
}  // namespace partita
