/// Names of the tags that rematerialization copies.
#pragma once

#include <partita/ir/verify.hpp>
#include <partita/support/copy_names.hpp>

namespace partita::core_detail {

/// Makes the names of copied tags unique in the program: "x.again", "x.again2", ...
constexpr void name_copies(program& p) {
  std::size_t count = p.inputs.size();
  bool any = false;
  ir_detail::for_each_tag(p, [&](program&, op_node& n) {
    ++count;
    any = any || n.marks.again;
  });
  if (!any) return;
  copy_names taken(count);
  for (int i = 0; i < p.input_count(); ++i) (void)taken.unique(p.input_name(i));
  for (const bool again : {false, true})
    ir_detail::for_each_tag(p, [&](program& in, op_node& n) {
      if (n.marks.again != again) return;
      const text own = taken.unique(in.view(n.name));
      if (again) n.name = in.intern(own.view());
    });
}

}  // namespace partita::core_detail
