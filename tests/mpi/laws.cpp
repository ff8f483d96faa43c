// Every collective over MPI: gathers use MPI's own call in communicators of groups, and messages
// where a group has none.
#include <iostream>
#include <memory>

#include <partita/mpi.hpp>
#include <partita/partita.hpp>

#include "../exchange_law.hpp"

namespace pt = partita;
namespace detail = partita::backend_detail;

namespace {

/// True if the ranks can share the devices of the mesh in equal blocks.
bool divides(const pt::mesh& m, int ranks) {
  try {
    pt::run_detail::device_set::block(m, 0, ranks);
    return m.devices() % ranks == 0;
  } catch (const pt::error&) {
    return false;
  }
}

class law {
 public:
  law(const pt::mpi::world& w, bool with_groups)
      : world_(w), with_groups_(with_groups), comm_(w.communicator()) {
    for (int r = 0; r < w.ranks(); ++r) ranks_.push_back(r);
  }
  /// True if this rank computes the right bits, or the mesh does not fit; `tried` counts those that
  /// fit.
  bool holds(unsigned seed, int& tried) {
    const int n = world_.ranks();
    const pt::mesh device_per_rank = n % 2 == 0 && seed % 8 == 1 ? pt::mesh{{"A", n / 2}, {"B", 2}}
                                     : seed % 2 == 1             ? pt::mesh{{"A", n}}
                                                                 : pt::mesh();
    const exchange_law::random_exchange e(seed, device_per_rank);
    if (!divides(e.m, world_.ranks())) return true;
    ++tried;
    pt::run_detail::in_process all(e.m);
    detail::mpi_transport t(pt::run_detail::device_set::block(e.m, world_.rank(), world_.ranks()),
                            comm_.get(), ranks_, world_.watched(), 20, false,
                            [&](const auto&) { return pt::concat("seed ", seed); });
    if (with_groups_) t.make_groups(e.what.along());
    return exchange_law::same_bits(e, t.devices(), exchange_law::run_one(e, t),
                                   exchange_law::run_one(e, all));
  }
  /// True if transfers that finish in another order than they start have the right bytes; one of
  /// them is empty.
  bool holds_out_of_order() {
    const pt::mesh m{{"A", world_.ranks()}};
    const int here = world_.rank(), n = world_.ranks(), right = (here + 1) % n,
              left = (here + n - 1) % n;
    detail::mpi_transport t(pt::run_detail::device_set::block(m, here, n), comm_.get(), ranks_,
                            world_.watched(), 20, false,
                            [](const auto&) { return pt::text("transfers out of order"); });
    pt::axis_set along;
    along.insert(0);
    if (with_groups_) t.make_groups(along);
    int token = here + 100, got = -1, own = here * 3;
    std::vector<int> all(ranks_.size(), -1);
    const auto bytes = [](int& x) { return reinterpret_cast<std::byte*>(&x); };
    const pt::run_detail::message out{right, bytes(token), sizeof token},
        in{left, bytes(got), sizeof got}, no_bytes_out{right, bytes(token), 0},
        no_bytes_in{left, bytes(got), 0};
    const auto first = t.start_exchange({&out, 1}, {&in, 1});
    const auto second = t.start_gather(along, bytes(own), sizeof own, bytes(all[0]));
    const auto third = t.start_exchange({&no_bytes_out, 1}, {&no_bytes_in, 1});
    t.finish(third);
    t.finish(second);
    t.finish(first);
    bool right_bytes = got == left + 100 && t.counted().calls == 3;
    for (int r = 0; r < n; ++r)
      right_bytes = right_bytes && all[static_cast<std::size_t>(r)] == r * 3;
    return right_bytes;
  }

 private:
  const pt::mpi::world& world_;
  bool with_groups_;
  detail::owned_communicator comm_;
  std::vector<int> ranks_;
};

}  // namespace

int main(int argc, char** argv) {
  const pt::mpi::world world(argc, argv);
  int differing = 0;
  for (const bool with_groups : {true, false}) {
    law each(world, with_groups);
    int tried = 0;
    for (unsigned seed = 0; seed < 300; ++seed)
      if (!each.holds(seed, tried)) {
        ++differing;
        std::cerr << "DIFFERS on rank " << world.rank() << ": seed " << seed
                  << (with_groups ? ", groups\n" : ", messages\n");
      }
    if (!each.holds_out_of_order()) {
      ++differing;
      std::cerr << "DIFFERS on rank " << world.rank() << ": transfers out of order\n";
    }
    if (world.first())
      std::cout << (with_groups ? "groups: " : "messages: ") << tried << " of 300 collectives\n";
    if (tried < 60) ++differing;  // the test covers too few cases
  }
  int all = 0;
  MPI_Allreduce(&differing, &all, 1, MPI_INT, MPI_SUM, world.communicator());
  return all == 0 ? 0 : 1;
}
