/// The timeline of a pipeline as a file of trace events, for Perfetto and chrome://tracing.
///
/// Source    the trace event format: complete events ("X") with times in microseconds, names and
///           places of processes and threads as metadata events ("M"), flows ("s", "t", "f")
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/ir/print.hpp>
#include <partita/mpmd/pipeline_time.hpp>
#include <partita/mpmd/timeline.hpp>
#include <partita/report/json_text.hpp>
#include <partita/report/pipeline_look.hpp>
#include <partita/support/number_text.hpp>

namespace partita {

namespace report_detail {

/// Writes a process for each mesh. Its calls are thread 0; its messages to mesh k are thread k + 1.
class pipeline_tracer {
 public:
  constexpr pipeline_tracer(const call_graph& g, const mesh_lists& lists, const timeline& t,
                            const pipeline_view& view)
      : g_(g), lists_(lists), t_(t), view_(view) {}

  /// `value(message)` describes the value that is sent, or returns "".
  template <class Value>
  constexpr text print(const Value& value) {
    out_ << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
    for (int m = 0; m < static_cast<int>(lists_.meshes.size()); ++m) name_threads(m);
    for (const auto& list : lists_.meshes)
      for (const mesh_step& s : list)
        if (s.kind == mesh_step::call) print_call(s.index);
    for (int i = 0; i < static_cast<int>(lists_.messages.size()); ++i) print_message(i, value(i));
    out_ << "\n]}\n";
    return static_cast<text&&>(out_);
  }

 private:
  const call_graph& g_;
  const mesh_lists& lists_;
  const timeline& t_;
  pipeline_view view_;
  text out_;
  bool first_ = true;

  constexpr int sender(int i) const { return g_.calls[lists_.messages[i].call].mesh; }
  constexpr int receiver(int i) const { return g_.calls[lists_.messages[i].user].mesh; }

  constexpr text& begin(char kind, int process, int thread, std::string_view name) {
    out_ << (first_ ? "\n" : ",\n") << "{\"ph\": \"" << kind << "\", \"pid\": " << process
         << ", \"tid\": " << thread << ", \"name\": ";
    first_ = false;
    print_json_string(out_, name);
    return out_;
  }
  constexpr text& at(double seconds) {
    out_ << ", \"ts\": ";
    print_number(out_, seconds * 1e6);
    return out_;
  }
  constexpr void lasts(double seconds) {
    out_ << ", \"dur\": ";
    print_number(out_, seconds * 1e6);
  }
  constexpr void named(std::string_view what, int process, int thread, std::string_view name) {
    begin('M', process, thread, what) << ", \"args\": {\"name\": ";
    print_json_string(out_, name);
    out_ << "}}";
  }
  constexpr void name_threads(int mesh) {
    named("process_name", mesh, 0, mesh_name(mesh, view_));
    begin('M', mesh, 0, "process_sort_index") << ", \"args\": {\"sort_index\": " << mesh << "}}";
    named("thread_name", mesh, 0, "calls");
    vec<char> sends(lists_.meshes.size(), 0);
    for (const mesh_step& s : lists_.meshes[mesh]) {
      if (s.kind != mesh_step::send || sends[receiver(s.index)] != 0) continue;
      sends[receiver(s.index)] = 1;
      named("thread_name", mesh, receiver(s.index) + 1,
            concat("to ", mesh_name(receiver(s.index), view_)));
    }
  }
  constexpr void print_call(int i) {
    const fragment_call& c = g_.calls[i];
    begin('X', c.mesh, 0, call_text(c, g_.with_stage)) << ", \"cat\": ";
    print_json_string(out_, call_looks[kind_of(c)].name);
    at(t_.begin[i]);
    lasts(t_.end[i] - t_.begin[i]);
    out_ << ", \"args\": {\"stage\": " << c.stage << ", \"microbatch\": " << c.microbatch << "}}";
  }
  /// Prints a message for the time that it occupies the link. Messages on one link do not overlap.
  constexpr void print_message(int i, std::string_view value) {
    const message& m = lists_.messages[i];
    const text name = concat("result of ", call_text(g_.calls[m.call], g_.with_stage));
    begin('X', sender(i), receiver(i) + 1, name) << ", \"cat\": \"transfer\"";
    at(t_.sent[i]);
    lasts(m.seconds);
    out_ << ", \"args\": {\"arrives\": ";
    print_number(out_, t_.arrived[i] * 1e6);
    if (!value.empty()) {
      out_ << ", \"value\": ";
      print_json_string(out_, value);
    }
    out_ << "}}";
    flow('s', i, sender(i), 0, t_.begin[m.call]);
    flow('t', i, sender(i), receiver(i) + 1, t_.sent[i]);
    flow('f', i, receiver(i), 0, t_.begin[m.user]);
  }
  /// Prints one end of an arrow between events, at a time within the event.
  constexpr void flow(char kind, int i, int process, int thread, double seconds) {
    begin(kind, process, thread, "transfer") << ", \"cat\": \"transfer\", \"id\": " << i;
    if (kind == 'f') out_ << ", \"bp\": \"e\"";
    at(seconds) << '}';
  }
};

}  // namespace report_detail

/// Returns the times of a pipeline's calls as JSON: a process for each mesh with its calls, a
/// thread for each mesh that it sends to, and an arrow for each message from the call that computes
/// it to the call that waits for it. If the times are not in seconds (pipeline_view), they are
/// written as if they were.
///
/// Errors    a deadlock, as the text "error: " and the message
/// Cost      linear in calls and messages
constexpr text trace_events(const call_graph& g, const mesh_lists& lists, const timeline& t,
                            const pipeline_view& view = {}) {
  if (t.error) return concat("error: ", t.error.message, '\n');
  return report_detail::pipeline_tracer(g, lists, t, view).print([](int) { return text(); });
}
/// The same for a simulated pipeline; messages also have their values and types.
constexpr text trace_events(const pipelined& p, const pipeline_time& t) {
  if (t.error) return concat("error: ", t.error.message, '\n');
  const vec<std::string_view> names = p.topology.names();
  const value_names values(p.source);
  return report_detail::pipeline_tracer(p.calls, t.lists, t.times, {.names = names})
      .print([&](int i) {
        const value_id v = p.transfers[t.lists.messages[i].transfer].value;
        return concat('%', values[v], ": ", p.source.type(v));
      });
}

}  // namespace partita
