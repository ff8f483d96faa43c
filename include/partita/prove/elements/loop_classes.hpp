/// Loops with an unknown number of iterations.
#pragma once

#include <partita/prove/elements/tensors.hpp>

// Carried elements are in one class as long as nothing distinguishes them: they start equal, and
// stay equal if all elements of a class do. If classes stay unchanged for a round, all elements of
// a class are equal after each iteration. (Partition refinement. The value of a class records its
// history, so classes of the local loop match those of the source's. Both must be stable together.)
namespace partita::prove_detail::elements {

constexpr vec<fingerprint> first_classes(const vec<tensors>& carried) {
  vec<fingerprint> list;
  for (const tensors& each : carried)
    for (const element& x : each.all)
      list.push_back(drawing(6).add(static_cast<int>(each.type.element)).add(x.of).drawn());
  return list;
}
/// A variable for each class.
constexpr vec<tensors> variables(algebra& a, const vec<tensors>& like,
                                 const vec<fingerprint>& classes) {
  vec<tensors> state = like;
  std::size_t at = 0;
  for (tensors& each : state)
    for (element& x : each.all) x = a.unknown(each.type.element, classes[at++]);
  return state;
}
constexpr vec<fingerprint> next_classes(const vec<fingerprint>& classes,
                                        const fingerprint& condition, const vec<tensors>& made) {
  vec<fingerprint> list;
  for (const tensors& each : made)
    for (const element& x : each.all)
      list.push_back(drawing(7).add(classes[list.size()]).add(condition).add(x.of).drawn());
  return list;
}
/// True if each class maps to one class, together with those that are known.
constexpr bool are_stable(facts<fingerprint> after, const vec<fingerprint>& classes,
                          const vec<fingerprint>& next) {
  for (std::size_t i = 0; i < classes.size(); ++i) {
    after.add(classes[i], next[i]);
    if (!(*after.find(classes[i]) == next[i])) return false;
  }
  return true;
}
/// True if the loop is stable together with all loops with the same condition. It joins them, and
/// the values of its classes after the loop are known. (A loop of the source may be the first.)
constexpr void joins(algebra& a, bool is_source, const fingerprint& condition,
                     const vec<fingerprint>& classes, const vec<fingerprint>& next,
                     vec<fingerprint>& behind) {
  const loop_classes* known = a.loops.find(condition);
  if (known == nullptr && !is_source) return;
  loop_classes all;
  if (known != nullptr) all = *known;
  if (!are_stable(all.after, classes, next)) return;
  for (std::size_t i = 0; i < next.size(); ++i) {
    const fingerprint* found = all.behind.find(next[i]);
    if (behind.size() <= i) behind.push_back(found == nullptr ? next[i] : *found);
    all.after.add(classes[i], next[i]);
    all.behind.add(next[i], behind[i]);
  }
  a.loops.put(condition, all);
}
constexpr bool all_same(const tensors& x) {
  for (const element& each : x.all)
    if (!(each == x.all[0])) return false;
  return true;
}
/// True if a scalar is the same number on all devices.
constexpr bool is_number(const tensors& x) { return all_same(x) && x.all[0].known; }

}  // namespace partita::prove_detail::elements
