/// Ops with a requested precision or accuracy, which the CPU ignores.
#pragma once

#include <cstdint>

#include <partita/op/numerics.hpp>
#include <partita/support/vec.hpp>

#include <partita/ir/program.hpp>

namespace partita {

namespace report_detail {

/// Counts the ops with a precision, an algorithm or an accuracy, and collects the distinct forms.
class exactness_finder {
 public:
  int count = 0;
  vec<text> forms;

  constexpr void look(const program& p) {
    for (op_id o = 0; o < p.op_count(); ++o) {
      for (const auto& r : p.regions_of(o)) look(r);
      const auto numbers = p.numerics(o);
      if (numbers.empty()) continue;
      ++count;
      text form = p.op(o).def->name;
      form << ' ';
      print_numerics(form, numbers);
      bool known = false;
      for (const text& each : forms) known = known || each == form;
      if (!known) forms.push_back(form);
    }
  }
};

}  // namespace report_detail

/// Returns a note about ops whose precision or accuracy the program sets; empty if no op has one:
/// `3 ops set their precision or accuracy (dot_general precision=[highest, highest]); emitted
/// modules keep it, the CPU computes in the precision of the element types`.
///
/// Cost      linear in ops
constexpr text ignored_exactness(const program& p, int limit = 4) {
  report_detail::exactness_finder finder;
  finder.look(p);
  text out;
  if (finder.count == 0) return out;
  out << finder.count
      << (finder.count == 1 ? " op sets its precision or accuracy ("
                            : " ops set their precision or accuracy (");
  for (std::size_t i = 0; i < finder.forms.size(); ++i) {
    if (static_cast<int>(i) == limit) {
      out << ", and " << finder.forms.size() - i << " other forms";
      break;
    }
    out << (i > 0 ? ", " : "") << finder.forms[i];
  }
  return out
         << "); emitted modules keep it, the CPU computes in the precision of the element types";
}

}  // namespace partita
