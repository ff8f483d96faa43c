/// The `pipeline` line of a schedule.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/mpmd/list_schedule.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/spec/lines.hpp>

namespace partita::spec_detail {

inline constexpr const pipeline_order* order_table_by_name[] = {
    &gpipe,           &gpipe_reversed,   &gpipe_1f1b_last, &one_f_one_b, &circular,
    &circular_phases, &interleaved_1f1b, &zb_h1,           &zb_h2,       &zb_v};

/// Reads the name of an order.
///
/// Errors    X019 an unknown order
constexpr pipeline_order read_order(lines& l) {
  l.skip(false);
  const std::size_t at = l.position();
  const std::string_view wanted = l.word();
  vec<std::string_view> known;
  for (const pipeline_order* o : order_table_by_name) {
    known.push_back(o->name);
    if (o->name == wanted) return *o;
  }
  l.fail(at, "X019", "order \"", wanted, "\" is unknown; ", all_words(wanted, known));
  return {};
}

/// Reads `{stages: {embedding, layers.0} {layers.1, head}, batch: {tokens: 0}, microbatches: 8}`,
/// with options in any order.
///
/// Errors    X001 syntax, X003 an unknown option, X004 an option given twice, X019 an unknown
///           order, X020 a number out of range, O138 no stages, or a stage without parts
class pipeline_reader {
 public:
  constexpr explicit pipeline_reader(lines& l) : l_(l) {}

  /// `at`: the position at which the line begins.
  constexpr pipeline_tactic<> run(std::size_t at, std::string_view label) {
    l_.expect("{");
    do {
      l_.skip(true);
      if (l_.starts("}")) break;
      option();
      l_.skip(true);
    } while (!l_.failed() && l_.accept(","));
    l_.skip(true);
    l_.expect("}");
    const pipeline_tactic<> tactic(plan_, plan_.order, label);
    if (const failure f = tactic.validate(); f)
      l_.fail(at, f.message.view().substr(0, 4), f.message.view().substr(5));
    return tactic;
  }

 private:
  lines& l_;
  pipeline_plan plan_;
  vec<std::string_view> given_words_;

  constexpr void option() {
    const std::size_t at = l_.position();
    const std::string_view word = l_.word(":");
    for (const std::string_view each : given_words_)
      if (each == word) l_.fail(at, "X004", "option \"", word, "\" is given twice");
    given_words_.push_back(word);
    if (word == "split") return void(plan_.split = true);
    if (word == "infer_transfers") return void(plan_.infer_transfers = true);
    if (word == "merge_last") return void(plan_.merge_last = true);
    if (word == "remat") return void(plan_.remat = true);
    if (word == "absorb") return void(plan_.absorb = true);
    if (word == "keep_gathered") return void(plan_.keep_gathered = true);
    if (word == "fifo") return void(plan_.channels.fifo = true);
    if (word == "stages") return after_colon([&] { stages(); });
    if (word == "batch") return after_colon([&] { batch(); });
    if (word == "order") return after_colon([&] { order(); });
    if (word == "microbatches")
      return after_colon([&] { plan_.microbatches = positive("a number of microbatches"); });
    if (word == "capacity")
      return after_colon(
          [&] { plan_.channels.capacity = static_cast<int>(positive("a number of messages")); });
    constexpr std::string_view known[] = {
        "stages",        "batch",      "microbatches", "order",  "split",    "infer_transfers",
        "keep_gathered", "merge_last", "remat",        "absorb", "capacity", "fifo"};
    l_.fail(at, "X003", "option \"", word, "\" is unknown; ", all_words(word, known));
  }
  template <class F>
  constexpr void after_colon(const F& read) {
    l_.expect(":");
    l_.skip(true);
    if (!l_.failed()) read();
  }
  constexpr void stages() {
    if (l_.accept("automatic")) {
      plan_.stages = automatic_stages(static_cast<int>(positive("a number of stages")));
      return;
    }
    if (!l_.starts("{"))
      return l_.expected("the parts of a stage, like {embedding, layers.0}, or automatic,");
    while (!l_.failed() && l_.starts("{")) {
      l_.list([&] { plan_.stages.add(l_.name().view()); });
      plan_.stages.end_stage();
      l_.skip(true);
      lines ahead = l_;  // a comma may separate stages, and precedes the next option
      if (ahead.accept(",")) ahead.skip(true);
      if (ahead.starts("{")) l_ = ahead;
    }
  }
  constexpr void batch() {
    l_.list([&] {
      const text name = l_.name(":");
      l_.expect(":");
      const int dim = l_.dimension();
      if (!l_.failed()) plan_.batch.add({name.view(), dim});
    });
  }
  constexpr void order() { plan_.order = read_order(l_); }
  constexpr std::int64_t positive(std::string_view what) {
    l_.skip(true);
    return l_.count(what, 1 << 20);
  }
};

}  // namespace partita::spec_detail
