/// Computes when the calls of a pipeline run, and finds deadlocks.
#pragma once

#include <climits>
#include <cstdint>

#include <partita/mpmd/fragment_call.hpp>
#include <partita/mpmd/sequence.hpp>
#include <partita/support/error.hpp>
#include <partita/support/merge_sort.hpp>
#include <partita/support/span.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// A message between meshes: a result of a call, for the first call that uses it there.
struct message {
  int call = -1;       ///< the call that computes it
  int user = -1;       ///< the first call that needs it
  double seconds = 0;  ///< time for which the link is occupied
  double latency = 0;  ///< additional seconds until it arrives
  int transfer = -1;   ///< number of the sent value
  int microbatch = -1;
};

/// One step of a mesh: runs a call, sends a message, or receives one.
struct mesh_step {
  enum kind_type : std::uint8_t { call, send, receive };
  kind_type kind = call;
  int index = 0;  ///< number of the call or message
};

/// The steps of each mesh, in sequence.
struct mesh_lists {
  vec<vec<mesh_step>> meshes;
  vec<message> messages;
};

/// One message for each call and each other mesh that uses its result.
constexpr vec<message> messages_of(const call_graph& g, span<const int> order, double seconds = 0,
                                   double latency = 0) {
  vec<int> place(g.calls.size(), 0);
  for (int i = 0; i < static_cast<int>(order.size()); ++i) place[order[i]] = i;
  vec<int> across;
  for (int e = 0; e < static_cast<int>(g.edges.size()); ++e)
    if (g.calls[g.edges[e].from].mesh != g.calls[g.edges[e].to].mesh) across.push_back(e);
  const auto to_mesh = [&](int e) { return g.calls[g.edges[e].to].mesh; };
  merge_sort(across, [&](int a, int b) {
    const call_edge &x = g.edges[a], &y = g.edges[b];
    if (x.from != y.from) return place[x.from] < place[y.from];
    if (to_mesh(a) != to_mesh(b)) return to_mesh(a) < to_mesh(b);
    return place[x.to] < place[y.to];
  });
  vec<message> out;
  for (int i = 0; i < static_cast<int>(across.size()); ++i) {
    const call_edge& e = g.edges[across[i]];
    if (i == 0 || g.edges[across[i - 1]].from != e.from ||
        to_mesh(across[i - 1]) != to_mesh(across[i]))
      out.push_back({e.from, e.to, seconds, latency});
  }
  return out;
}

/// Lists with messages: each mesh sends a result directly after its call, and receives an operand
/// directly before the call, in the order of `messages`. `joint`: by call, the joint call that
/// contains it, or -1 (empty: no joint calls). The parts of a joint call, which are adjacent,
/// receive and send together.
constexpr mesh_lists lists_with_messages(const call_graph& g, span<const int> order,
                                         vec<message> messages, const vec<int>& joint = {}) {
  const int n = g.count();
  vec<int> sends(n + 1, 0), takes(n + 1, 0);
  for (const message& m : messages) {
    ++sends[m.call + 1];
    ++takes[m.user + 1];
  }
  for (int i = 0; i < n; ++i) {
    sends[i + 1] += sends[i];
    takes[i + 1] += takes[i];
  }
  vec<int> sent(messages.size(), 0), taken(messages.size(), 0);
  vec<int> next_sent = sends, next_taken = takes;
  for (int i = 0; i < static_cast<int>(messages.size()); ++i) {
    sent[next_sent[messages[i].call]++] = i;
    taken[next_taken[messages[i].user]++] = i;
  }
  mesh_lists out;
  out.meshes.resize(g.meshes, {});
  const auto is_with = [&](int a, int b) {
    return !joint.empty() && joint[a] >= 0 && joint[a] == joint[b];
  };
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && (end == begin || is_with(order[begin], order[end]))) ++end;
    auto& list = out.meshes[g.calls[order[begin]].mesh];
    for (std::size_t i = begin; i < end; ++i)
      for (int k = takes[order[i]]; k < takes[order[i] + 1]; ++k)
        list.push_back({mesh_step::receive, taken[k]});
    for (std::size_t i = begin; i < end; ++i) list.push_back({mesh_step::call, order[i]});
    for (std::size_t i = begin; i < end; ++i)
      for (int k = sends[order[i]]; k < sends[order[i] + 1]; ++k)
        list.push_back({mesh_step::send, sent[k]});
  }
  out.messages = static_cast<vec<message>&&>(messages);
  return out;
}

/// A channel with this capacity holds any number of messages.
inline constexpr int unbounded = INT_MAX;

/// Options of the channels between meshes.
struct channel_options {
  int capacity = 1;   ///< messages that a channel (of an ordered pair of meshes) holds; a sender
                      ///< with one more waits until one is received
  bool fifo = false;  ///< messages are received in the order of sending, else by tag
};

/// The times of all events, in seconds from the start.
struct timeline {
  vec<double> begin, end;     ///< by call
  vec<double> sent, arrived;  ///< by message
  vec<double> taken;          ///< by message: when the receiving mesh was ready for it
  vec<double> busy;           ///< by mesh: seconds in which it runs calls
  vec<double> first, last;    ///< by mesh: start of its first call, end of its last one
  double total = 0;           ///< end of the last call
  failure error;              ///< O007 deadlock, O009 messages out of order

  /// The maximum time of a mesh from its first call to its last.
  constexpr double span() const {
    double most = 0;
    for (std::size_t i = 0; i < first.size(); ++i)
      if (last[i] - first[i] > most) most = last[i] - first[i];
    return most;
  }
  /// The maximum number of seconds for which a mesh runs calls: no order is faster.
  constexpr double ideal() const {
    double most = 0;
    for (const double b : busy)
      if (b > most) most = b;
    return most;
  }
  /// The time beyond the ideal time, relative to the total.
  constexpr double bubble_of_total() const { return total > 0 ? (total - ideal()) / total : 0; }
  /// The time beyond the ideal time, relative to the ideal time.
  constexpr double bubble_of_ideal() const { return ideal() > 0 ? (total - ideal()) / ideal() : 0; }
  /// As bubble_of_total, but each mesh starts with its first call (consecutive steps overlap).
  ///
  /// Source    Qi et al., arXiv:2401.10241, section 5
  constexpr double bubble_of_span() const { return span() > 0 ? (span() - ideal()) / span() : 0; }
};

namespace mpmd_detail {

/// Runs all lists; each mesh continues until it waits.
///
/// Work      linear in steps, independent of the number of meshes (except for sorting the channels)
class player {
 public:
  constexpr player(const call_graph& g, const mesh_lists& lists, const channel_options& options)
      : g_(g), l_(lists), options_(options) {
    const std::size_t calls = g.calls.size(), messages = l_.messages.size();
    t_.begin.resize(calls, 0);
    t_.end.resize(calls, 0);
    for (auto* each : {&t_.sent, &t_.arrived, &t_.taken}) each->resize(messages, 0);
    for (auto* each : {&t_.busy, &t_.first, &t_.last}) each->resize(l_.meshes.size(), 0);
    clock_.resize(l_.meshes.size(), 0);
    next_.resize(l_.meshes.size(), 0);
    under_way_.resize(messages, 0);
    waits_for_message_.resize(messages, -1);
    find_channels();
  }

  template <class Seconds>
  constexpr timeline run(const Seconds& seconds) {
    if (options_.capacity < 1)
      t_.error.record("O001", "channel: a capacity of ", options_.capacity,
                      "; it holds at least one message");
    if (options_.fifo) check_fifo();
    if (t_.error) return static_cast<timeline&&>(t_);
    for (int m = 0; m < meshes(); ++m) ready_.push_back(m);
    while (!ready_.empty()) {
      const int m = ready_.back();
      ready_.pop_back();
      while (next_[m] < size(m) && step(m, seconds)) ++next_[m];
    }
    for (int m = 0; m < meshes() && !t_.error; ++m)
      if (next_[m] < size(m)) report_deadlock(m);
    return static_cast<timeline&&>(t_);
  }

 private:
  struct channel {
    int sent = 0, waiting = -1;  ///< the mesh that waits for space
    double free = 0;             ///< time when the link is free
    vec<double> taken;           ///< times, in order
    int last_sent = -1;
  };
  const call_graph& g_;
  const mesh_lists& l_;
  channel_options options_;
  timeline t_;
  vec<double> clock_;
  vec<int> next_, ready_, channel_of_, waits_for_message_;
  vec<char> under_way_;
  vec<channel> channels_;

  constexpr int meshes() const { return static_cast<int>(l_.meshes.size()); }
  constexpr int size(int m) const { return static_cast<int>(l_.meshes[m].size()); }
  constexpr int from(const message& m) const { return g_.calls[m.call].mesh; }
  constexpr int to(const message& m) const { return g_.calls[m.user].mesh; }

  constexpr void find_channels() {
    vec<int> by_channel;
    for (int i = 0; i < static_cast<int>(l_.messages.size()); ++i) by_channel.push_back(i);
    const auto less = [&](int a, int b) {
      const message &x = l_.messages[a], &y = l_.messages[b];
      return from(x) != from(y) ? from(x) < from(y) : to(x) < to(y);
    };
    merge_sort(by_channel, less);
    channel_of_.resize(l_.messages.size(), 0);
    for (std::size_t i = 0; i < by_channel.size(); ++i) {
      if (i == 0 || less(by_channel[i - 1], by_channel[i])) channels_.push_back({});
      channel_of_[by_channel[i]] = static_cast<int>(channels_.size()) - 1;
    }
  }

  /// Executes the next step of a list. False if the mesh has to wait.
  template <class Seconds>
  constexpr bool step(int mesh, const Seconds& seconds) {
    const mesh_step s = l_.meshes[mesh][next_[mesh]];
    if (s.kind == mesh_step::send) return send(mesh, s.index);
    if (s.kind == mesh_step::receive) return receive(mesh, s.index);
    double& clock = clock_[mesh];
    const double d = seconds(s.index);
    if (t_.busy[mesh] == 0) t_.first[mesh] = clock;
    t_.begin[s.index] = clock;
    t_.end[s.index] = t_.last[mesh] = clock = clock + d;
    t_.busy[mesh] += d;
    if (clock > t_.total) t_.total = clock;
    return true;
  }
  constexpr bool send(int mesh, int index) {
    const message& m = l_.messages[index];
    channel& c = channels_[channel_of_[index]];
    double& clock = clock_[mesh];
    if (c.sent >= options_.capacity) {
      const std::size_t before = static_cast<std::size_t>(c.sent - options_.capacity);
      if (before >= c.taken.size()) {
        c.waiting = mesh;
        return false;
      }
      if (c.taken[before] > clock) clock = c.taken[before];
    }
    const double start = c.free > clock ? c.free : clock;
    t_.sent[index] = start;
    c.free = start + m.seconds;
    t_.arrived[index] = c.free + m.latency;
    ++c.sent;
    c.last_sent = index;
    under_way_[index] = 1;
    wake(waits_for_message_[index]);
    return true;
  }
  constexpr bool receive(int mesh, int index) {
    if (under_way_[index] == 0) {
      waits_for_message_[index] = mesh;
      return false;
    }
    channel& c = channels_[channel_of_[index]];
    double& clock = clock_[mesh];
    t_.taken[index] = clock;
    if (t_.arrived[index] > clock) clock = t_.arrived[index];
    c.taken.push_back(clock);
    wake(c.waiting);
    return true;
  }
  constexpr void wake(int& mesh) {
    if (mesh >= 0) ready_.push_back(mesh);
    mesh = -1;
  }

  constexpr void check_fifo() {
    vec<vec<int>> sent(channels_.size(), {});
    for (const auto& list : l_.meshes)
      for (const mesh_step& s : list)
        if (s.kind == mesh_step::send) sent[channel_of_[s.index]].push_back(s.index);
    vec<int> next(channels_.size(), 0);
    for (const auto& list : l_.meshes)
      for (const mesh_step& s : list) {
        if (s.kind != mesh_step::receive) continue;
        const int c = channel_of_[s.index];
        const int first = sent[c][next[c]++];
        if (first != s.index)
          return t_.error.record(
              "O009", "channel: ", g_.mesh_text(to(l_.messages[first])), " takes ",
              result_text(s.index), " from ", g_.mesh_text(from(l_.messages[first])), " where ",
              result_text(first), " was sent first; match messages by tag, or change the order");
      }
  }
  /// The mesh that a waiting mesh waits for.
  constexpr int awaited(int mesh) const {
    const mesh_step s = l_.meshes[mesh][next_[mesh]];
    const message& m = l_.messages[s.index];
    return s.kind == mesh_step::receive ? from(m) : to(m);
  }
  constexpr text result_text(int m) const {
    return concat("the result of ", call_text(g_.calls[l_.messages[m].call], g_.with_stage));
  }
  constexpr void report_deadlock(int mesh) {
    vec<char> seen(l_.meshes.size(), 0);
    while (seen[mesh] == 0) {
      seen[mesh] = 1;
      mesh = awaited(mesh);
    }
    text out;
    const int begin = mesh;
    do {
      const mesh_step s = l_.meshes[mesh][next_[mesh]];
      const bool sends = s.kind == mesh_step::send;
      out << (mesh == begin ? "" : "; ") << g_.mesh_text(mesh) << " waits to "
          << (sends ? "send " : "receive ") << result_text(s.index) << (sends ? " to " : " from ")
          << g_.mesh_text(awaited(mesh));
      if (sends)
        out << " (the channel holds " << options_.capacity << ", last "
            << result_text(channels_[channel_of_[s.index]].last_sent) << ')';
      mesh = awaited(mesh);
    } while (mesh != begin);
    t_.error.record("O007", "deadlock: ", out);
  }
};

}  // namespace mpmd_detail

/// Plays the lists of all meshes. `seconds(call)` is the duration of a call. Messages travel
/// concurrently with calls; a link carries one at a time. Durations of 0 check for deadlocks.
///
/// Errors    O001 a capacity below 1, O007 deadlock: names the waiting meshes, O009 messages are
///           received in another order than sent (`fifo`)
template <class Seconds>
constexpr timeline play(const call_graph& g, const mesh_lists& lists, const Seconds& seconds,
                        const channel_options& options = {}) {
  return mpmd_detail::player(g, lists, options).run(seconds);
}

/// The minimum capacity of channels with which all lists finish; 0 if no capacity suffices.
constexpr int least_capacity(const call_graph& g, const mesh_lists& lists, bool fifo = false) {
  const auto runs = [&](int capacity) {
    return !play(g, lists, [](int) { return 0.0; }, {capacity, fifo}).error;
  };
  int high = static_cast<int>(lists.messages.size());
  if (high == 0) high = 1;
  if (!runs(high)) return 0;
  int low = 0;  // does not finish
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (runs(middle) ? high : low) = middle;
  }
  return high;
}

/// Reports a deadlock, with the meshes that wait for each other and a capacity that helps; empty if
/// all lists finish, whatever the durations of calls. Runs all lists once if they finish.
///
/// Errors    O001, O007 deadlock, O009
constexpr failure find_deadlock(const call_graph& g, const mesh_lists& lists,
                                const channel_options& options = {}) {
  failure found = play(
                      g, lists, [](int) { return 0.0; }, options)
                      .error;
  if (!found || options.capacity < 1 || found.message.view().substr(0, 4) != "O007") return found;
  const int enough = least_capacity(g, lists, options.fifo);
  text words = found.message;
  if (enough > 0)
    words << "; a capacity of " << enough << " is enough";
  else
    words << "; no capacity is enough: the lists of the meshes contradict each other";
  found.set(words);
  return found;
}

/// By stage: the maximum number of microbatches whose forward has run and whose backward has not
/// finished. Without backward calls, all of them.
constexpr vec<int> most_in_flight(const call_graph& g, span<const int> order, int stages) {
  vec<int> now(stages, 0), most(stages, 0);
  vec<char> split(stages, 0);
  for (const auto& c : g.calls)
    if (c.ordered() && (c.kinds() & call_kinds::weight) != 0) split[c.stage] = 1;
  for (const int call : order) {
    const fragment_call& c = g.calls[call];
    if (!c.ordered()) continue;
    const unsigned last = split[c.stage] != 0 ? call_kinds::weight : call_kinds::backward;
    if ((c.kinds() & call_kinds::forward) != 0 && ++now[c.stage] > most[c.stage])
      most[c.stage] = now[c.stage];
    if ((c.kinds() & last) != 0) --now[c.stage];
  }
  return most;
}

}  // namespace partita
