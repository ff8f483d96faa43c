/// Runs the fragments of MPMD programs in sequence.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include <partita/mpmd/fragments.hpp>
#include <partita/run/executor.hpp>

namespace partita {

namespace run_detail {

/// Runs the fragments in their order, in this process. A transfer is a copy.
class mpmd_run {
 public:
  mpmd_run(const mpmd_program& m, const run_options& options) : m_(m) {
    m.error.raise();
    fragment_programs programs(m.source);
    for (int f = 0; f < static_cast<int>(m.fragments.size()); ++f)
      ready_.emplace_back(programs(m.fragments[f]), options);
    names_ = run_detail::output_names(m.source);
  }
  const std::shared_ptr<const std::vector<std::string>>& output_names() const { return names_; }

  std::vector<array> operator()(std::span<const array> inputs) const {
    const program& p = m_.source;
    if (inputs.size() != p.inputs.size())
      throw error(concat("R001 run: ", inputs.size(), " arrays are given; the program has ",
                         p.inputs.size(), " inputs"));
    mesh_values values;
    for (int i = 0; i < p.input_count(); ++i)
      values[{p.inputs[i], m_.input_mesh[i]}] = inputs[static_cast<std::size_t>(i)];
    std::size_t next = 0;
    for (int f = -1; f < static_cast<int>(m_.fragments.size()); ++f) {
      if (f >= 0) run(f, values);
      for (; next < m_.transfers.size() && m_.transfers[next].after == f; ++next) {
        const transfer& t = m_.transfers[next];
        values[{t.value, t.to}] = values[{t.value, t.from}];
      }
    }
    std::vector<array> out;
    for (int i = 0; i < p.output_count(); ++i)
      out.push_back(values[{p.outputs[i].value, m_.output_mesh[i]}]);
    return out;
  }

 private:
  /// The global arrays that each mesh has.
  using mesh_values = std::map<std::pair<value_id, int>, array>;

  const mpmd_program& m_;
  std::vector<executable> ready_;
  std::shared_ptr<const std::vector<std::string>> names_;

  void run(int number, mesh_values& values) const {
    const fragment& f = m_.fragments[number];
    std::vector<array> operands;
    for (value_id v : f.inputs) operands.push_back(values[{v, f.mesh}]);
    const std::vector<array> made = ready_[static_cast<std::size_t>(number)](operands);
    for (std::size_t i = 0; i < made.size(); ++i) values[{f.outputs[i], f.mesh}] = made[i];
  }
};

}  // namespace run_detail

/// Runs the fragments of an MPMD program in their order: global arrays in, global arrays out.
/// Arguments as for `evaluate`, which runs the source of such a program.
///
/// Errors    those of `evaluate`
template <class... Args>
results run_fragments(const mpmd_program& m, const Args&... args) {
  return run_detail::run_arguments(run_detail::mpmd_run(m, run_options{}), args...);
}

}  // namespace partita
