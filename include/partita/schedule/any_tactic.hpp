/// The tactics of a schedule, whatever its type, and type-erased tactics.
#pragma once

#include <boost/hana/for_each.hpp>
#include <boost/hana/length.hpp>
#include <string_view>
#include <type_traits>

#include <partita/schedule/rewriting.hpp>
#include <partita/schedule/tactic.hpp>
#include <partita/support/syntax.hpp>
#include <partita/support/vec.hpp>

namespace partita::schedule_detail {

/// A list of tactics of one type, chosen at run time.
template <class Schedule>
concept TacticRange = requires(const Schedule& s) {
  { *s.begin() } -> Tactic;
  s.size();
};

/// True if a tactic searches for its actions.
template <class T>
constexpr bool searches(const T& t) {
  if constexpr (requires { t.searches(); })
    return t.searches();
  else
    return false;
}

/// A type-erased tactic for schedules at run time; the tactic must outlive it.
struct any_tactic {
  const void* tactic;
  std::string_view (*name_of)(const void*);
  void (*apply_of)(const void*, tactic_context&);
  void (*rewrite_of)(const void*, rewriting&);  ///< null if it does not rewrite the program
  bool does_search = false;
  syntax language = syntax::cpp;

  constexpr std::string_view name() const { return name_of(tactic); }
  constexpr void apply(tactic_context& c) const { apply_of(tactic, c); }
  constexpr bool rewrites() const { return rewrite_of != nullptr; }
  constexpr bool searches() const { return does_search; }
  constexpr syntax written_in() const { return language; }
  constexpr void rewrite(rewriting& r) const { rewrite_of(tactic, r); }
};
template <class T>
inline any_tactic type_erased_tactic(const T& t) {
  any_tactic a{&t,
               [](const void* p) -> std::string_view { return static_cast<const T*>(p)->name(); },
               [](const void* p, tactic_context& c) { static_cast<const T*>(p)->apply(c); },
               nullptr,
               searches(t),
               syntax_of(t)};
  if constexpr (Rewriter<T>)
    a.rewrite_of = [](const void* p, rewriting& r) { static_cast<const T*>(p)->rewrite(r); };
  return a;
}
template <class T>
constexpr bool rewrites(const T& t) {
  if constexpr (requires { t.rewrites(); })
    return t.rewrites();
  else
    return Rewriter<T>;
}

template <class Schedule>
constexpr int tactic_count(const Schedule& tactics) {
  if constexpr (TacticRange<Schedule>)
    return static_cast<int>(tactics.size());
  else
    return static_cast<int>(decltype(boost::hana::length(tactics))::value);
}
template <class Schedule, class F>
constexpr void for_each_tactic(const Schedule& tactics, const F& f) {
  if constexpr (TacticRange<Schedule>) {
    for (const auto& t : tactics) f(t);
  } else {
    boost::hana::for_each(tactics, f);
  }
}

/// Returns the syntax of a schedule: that of its tactics. If they use both languages, it is that of
/// specifications.
template <class Schedule>
constexpr syntax syntax_of_schedule(const Schedule& tactics) {
  syntax s = syntax::cpp;
  for_each_tactic(tactics, [&](const auto& t) {
    if (syntax_of(t) == syntax::specification) s = syntax::specification;
  });
  return s;
}

/// Returns a schedule as a list of type-erased tactics.
template <class Schedule>
vec<any_tactic> type_erased(const Schedule& tactics) {
  vec<any_tactic> list;
  for_each_tactic(tactics, [&](const auto& t) { list.push_back(type_erased_tactic(t)); });
  return list;
}

/// The tactics of a schedule from a number on, except for those that search.
template <class Schedule>
class tactics_from final : public following_tactics {
 public:
  constexpr tactics_from(const Schedule& tactics, int first) : tactics_(tactics), first_(first) {}
  constexpr bool empty() const {
    int number = 0;
    bool none = true;
    for_each_tactic(tactics_,
                    [&](const auto& t) { none = none && (number++ < first_ || searches(t)); });
    return none;
  }
  constexpr void apply(tactic_context& c) const override {
    int number = 0;
    for_each_tactic(tactics_, [&](const auto& t) {
      if (number++ >= first_ && !c.error && !searches(t)) t.apply(c);
    });
  }

 private:
  const Schedule& tactics_;
  int first_;
};

/// Applies tactic number `number` of a schedule; a tactic that searches sees the tactics after it.
template <class T, class Schedule>
constexpr void apply_before_others(const T& t, tactic_context& c, const Schedule& tactics,
                                   int number) {
  if constexpr (requires { t.searches(); }) {
    if (!t.searches()) return t.apply(c);
    const tactics_from<Schedule> behind(tactics, number + 1);
    c.following = behind.empty() ? nullptr : &behind;
    t.apply(c);
    c.following = nullptr;
  } else {
    t.apply(c);
  }
}

}  // namespace partita::schedule_detail
