// Checkpoints that several processes save from one mesh and load onto others; damage and crashes.
//
// The generator draws neither axes that are split into parts nor meshes of more than 12 devices.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <partita/checkpoint.hpp>

#include "../data.hpp"

// Replaces fsync of the C library: counts calls, and stops or fails at one of them. (No test loses
// power, so nothing is written to disks.)
namespace checkpoint_test {
std::atomic<int> syncs{0}, crash_at{-1}, fail_at{-1};
}
extern "C" int fsync(int) {
  const int n = checkpoint_test::syncs++;
  if (n == checkpoint_test::crash_at) _exit(9);
  if (n != checkpoint_test::fail_at) return 0;
  errno = EIO;
  return -1;
}

namespace checkpoint_test {

namespace pt = partita;
namespace fs = std::filesystem;
using data::str;
using data::thrown;

/// A directory that the destructor removes.
struct folder {
  fs::path path;
  folder() {
    static std::atomic<int> number{0};
    path = fs::temp_directory_path() /
           ("partita_checkpoint_" + std::to_string(getpid()) + "_" + std::to_string(number++));
    fs::create_directories(path);
  }
  ~folder() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
};

/// Processes that are threads.
struct processes {
  explicit processes(int n) : count(n), all(n), slots(static_cast<std::size_t>(n)) {}
  int count;
  std::barrier<> all;
  std::vector<std::string> slots;

  pt::checkpoint_peers peers(int process) {
    if (count == 1) return {};
    return {process, [this, process](const std::string& mine) {
              slots[static_cast<std::size_t>(process)] = mine;
              all.arrive_and_wait();
              const auto copy = slots;
              all.arrive_and_wait();
              return copy;
            }};
  }
  /// Returns the error message of each process, or "".
  template <class F>
  std::vector<std::string> run(const F& f) {
    std::vector<std::string> errors(static_cast<std::size_t>(count));
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i)
      threads.emplace_back(
          [&, i] { errors[static_cast<std::size_t>(i)] = thrown([&] { f(i, peers(i)); }); });
    for (auto& t : threads) t.join();
    return errors;
  }
};

pt::array bytes_of(const pt::tensor_type& type, data::random& r) {
  pt::array a(type);
  for (std::int64_t i = 0; i < type.bytes(); ++i)
    a.mutable_bytes()[i] =
        static_cast<std::byte>(r.in(0, type.element == pt::dtype::boolean ? 1 : 255));
  return a;
}
bool same(const pt::array& a, const pt::array& b) {
  return a.type() == b.type() &&
         std::memcmp(a.bytes(), b.bytes(), static_cast<std::size_t>(a.type().bytes())) == 0;
}
pt::mesh random_mesh(data::random& r) {
  static const std::vector<pt::mesh> meshes{{},         {{"B", 4}, {"M", 2}},           {{"B", 2}},
                                            {{"M", 4}}, {{"a", 3}, {"b", 2}, {"c", 2}}, {{"x", 1}}};
  return r.pick(meshes);
}
/// Returns a value of this type with a random layout and more padding than it needs.
pt::sharded_value laid_out(std::string_view name, const pt::tensor_type& t, const pt::mesh& m,
                           data::random& r) {
  pt::sharded_value v{name, t.element, t.shape, t.shape, {}};
  if (t.shape.rank > 0)
    for (const int axis : {2, 0, 1})
      if (axis < m.rank && !r.one_in(3))
        v.sharding.push_back(axis, static_cast<int>(r.in(0, t.shape.rank - 1)));
  for (int d = 0; d < t.shape.rank; ++d) {
    const std::int64_t n = v.sharding.pieces(m, d);
    v.local_shape[d] = (t.shape[d] + n - 1) / n + (r.one_in(4) ? 1 : 0);
  }
  return v;
}
/// Returns the shard of a device; its padding is not zero.
pt::array dirty_shard(const pt::array& a, const pt::sharded_value& v, const pt::mesh& m,
                      std::int64_t device) {
  pt::array ones(a.type());
  std::memset(ones.mutable_bytes(), 1, static_cast<std::size_t>(a.type().bytes()));
  pt::array out = pt::piece(a, v, m, device);
  const pt::array mask = pt::piece(ones, v, m, device);
  for (std::int64_t i = 0; i < out.type().bytes(); ++i)
    if (mask.bytes()[i] == std::byte{0}) out.mutable_bytes()[i] = std::byte{1};
  return out;
}
/// Returns the arrays on a mesh that the process with every `count`-th device saves.
std::vector<pt::checkpoint_array> held_by(int process, int count, const pt::mesh& m,
                                          const std::vector<pt::sharded_value>& values,
                                          const std::vector<pt::array>& arrays) {
  std::vector<pt::checkpoint_array> list;
  for (std::size_t i = 0; i < values.size(); ++i) {
    list.push_back({values[i], {}});
    for (std::int64_t d = process; d < m.devices(); d += count)
      list.back().shards.push_back({d, dirty_shard(arrays[i], values[i], m, d)});
  }
  return list;
}
std::string contents(const std::string& path) { return pt::run_detail::read_file(path); }
void overwrite(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
/// Returns the names and contents of all files below a directory.
std::string tree(const fs::path& path) {
  std::vector<std::string> list;
  for (const auto& e : fs::recursive_directory_iterator(path))
    list.push_back(e.path().string() + (e.is_regular_file() ? contents(e.path().string()) : ""));
  std::sort(list.begin(), list.end());
  std::string all;
  for (const auto& each : list) all += each + '\n';
  return all;
}

/// Returns 6 x 5 numbers, counted from `from`.
pt::array numbers(float from) {
  return data::fill({pt::dtype::f32, {6, 5}}, [&](std::int64_t i) { return from + float(i); });
}
const pt::mesh two{{"B", 2}};
pt::sharded_value rows_of_w() {
  pt::sharded_value v{"w", pt::dtype::f32, {6, 5}, {3, 5}, {}};
  v.sharding.push_back(0, 0);
  return v;
}
std::vector<pt::checkpoint_array> only_w(const pt::array& a) {
  std::vector<pt::checkpoint_array> list(1);
  list[0].value = rows_of_w();
  for (const std::int64_t device : {0, 1}) list[0].shards.push_back({device, a});
  return list;
}
void save_w(const std::string& path, float from, pt::checkpoint_format format = {}) {
  pt::save_checkpoint(path, two, only_w(numbers(from)),
                      {.step = static_cast<std::int64_t>(from), .format = format});
}
pt::array load_w(const std::string& path) {
  const pt::checkpoint_reader in(path);
  return in.read("w", {}, in.need("w", {pt::dtype::f32, {6, 5}}).type.shape);
}
constexpr pt::checkpoint_format both[] = {pt::checkpoint_format::zarr,
                                          pt::checkpoint_format::safetensors};

}  // namespace checkpoint_test

TEST_CASE("checkpoint: from any mesh, layout and number of processes to any other") {
  using namespace checkpoint_test;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    CAPTURE(seed);
    data::random r{seed};
    const folder at;
    const std::string path = at / "step";
    const pt::mesh from = random_mesh(r), to = random_mesh(r);
    std::vector<pt::sharded_value> values;
    std::vector<pt::array> arrays;
    for (int i = 0; i < 5; ++i) {
      pt::tensor_type t{static_cast<pt::dtype>(r.in(0, pt::dtype_count - 1)), {}};
      for (std::int64_t rank = r.in(0, 4); rank > 0; --rank)
        t.shape.push_back(r.one_in(12) ? 0 : r.in(1, 9));
      arrays.push_back(bytes_of(t, r));
      const std::string name = r.pick(std::vector{"params.w", "a/b", "..", "zarr.json", "__x",
                                                  "partita.json", "\"\n%", "c", "\xc3\xa9"});
      values.push_back(
          laid_out(name + std::to_string(i) + (i == 0 ? ".zarr.json" : ""), t, from, r));
      if (i == 1) values.back().name = "..";
    }
    processes group(static_cast<int>(r.in(1, 3)));
    const auto errors = group.run([&](int process, const pt::checkpoint_peers& peers) {
      pt::save_checkpoint(
          path, from, held_by(process, group.count, from, values, arrays),
          {.step = 7, .format = r.state % 2 == 0 ? both[0] : both[1], .file_bytes = 100}, peers)
          .wait();
    });
    for (const auto& e : errors) REQUIRE(e == "");
    CHECK(!fs::exists(path + ".partial"));
    const std::string before = tree(path);
    const pt::checkpoint_reader in(path);
    CHECK(in.step() == 7);
    CHECK(in.manifest().mesh == str(pt::concat(from)));
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      CHECK(same(in.read(values[i].name, {}, arrays[i].shape()), arrays[i]));
      const auto v = laid_out(values[i].name, arrays[i].type(), to, r);
      for (std::int64_t d = 0; d < to.devices(); ++d)
        CHECK(same(in.read(v, to, d), pt::piece(arrays[i], v, to, d)));
    }
    CHECK(tree(path) == before);
  }
}

TEST_CASE("checkpoint: shards larger than the buffer are saved") {
  using namespace checkpoint_test;
  data::random r{3};
  const folder at;
  const pt::mesh m{{"B", 3}};
  pt::sharded_value v{"w", pt::dtype::u8, {1000, 4000}, {334, 4000}, {}};
  v.sharding.push_back(0, 0);
  const pt::array a = bytes_of({pt::dtype::u8, {1000, 4000}}, r);
  for (const auto format : both) {
    pt::save_checkpoint(at / "big", m, held_by(0, 1, m, {v}, {a}), {.format = format});
    const pt::checkpoint_reader in(at / "big");
    CHECK(same(in.read("w", {}, {1000, 4000}), a));
    pt::sharded_value columns{"w", pt::dtype::u8, {1000, 4000}, {1000, 1334}, {}};
    columns.sharding.push_back(0, 1);
    for (int d = 0; d < 3; ++d) CHECK(same(in.read(columns, m, d), pt::piece(a, columns, m, d)));
  }
}

namespace checkpoint_test {

struct weights {
  BOOST_HANA_DEFINE_STRUCT(weights, (pt::tensor<float, 6, 10>, w1), (pt::tensor<pt::bf16, 5>, b));
};
/// A training step with a state of odd sizes.
pt::program training() {
  return pt::trace(
      [](const auto& p, const auto& m, const auto& x) {
        const auto [loss, g] = pt::value_and_grad(
            [&](const auto& q) {
              const auto h = matmul(x, q.w1);
              return pt::sum(h * h) + pt::convert<float>(pt::sum(q.b * q.b));
            },
            p);
        const auto next = pt::map_leaves([](auto a, auto b) { return a + b; }, m, g);
        return std::tuple{
            pt::output("params", pt::map_leaves([](auto a, auto b) { return a - b; }, p, next)),
            pt::output("momentum", next), pt::output("loss", loss)};
      },
      pt::input<weights>("params"), pt::input<weights>("momentum"), pt::input<float, 8, 6>("x"));
}
/// Shards the parameters over all axes, with padding.
pt::partitioned training_on(const pt::mesh& m) {
  const auto by = [](std::string_view axis, int dim) {
    return pt::manual(
        axis, {{"params.w1", dim}, {"momentum.w1", dim}, {"params.b", 0}, {"momentum.b", 0}}, axis,
        pt::uneven::pad);
  };
  if (m.rank == 2) return pt::partition(training(), m, pt::schedule(by("B", 0), by("M", 1)));
  if (m.rank == 0) return pt::partition(training(), m, pt::schedule());
  return pt::partition(training(), m, pt::schedule(by(m.name(0), m.name(0) == "B" ? 0 : 1)));
}

}  // namespace checkpoint_test

TEST_CASE("checkpoint: training continues on another mesh") {
  using namespace checkpoint_test;
  const auto step = training_on({{"B", 4}, {"M", 2}});
  const auto x = data::arguments(step.source);
  const pt::results first = pt::emulate(step, x);
  const std::vector<pt::array> state(first.begin(), first.begin() + 4);
  const pt::results second = pt::evaluate(step.source, state, x[4]);
  for (const auto format : both) {
    const folder at;
    const std::string path = at / "step_100";
    pt::save_checkpoint(path, step, first, {.step = 100, .format = format}, "params", "momentum");
    for (const auto& m : {pt::mesh{{"B", 2}}, pt::mesh{{"M", 4}}, pt::mesh{}}) {
      const auto next = training_on(m);
      const pt::results loaded = pt::load_checkpoint(path, next, "params", "momentum");
      CHECK(loaded.names() ==
            std::vector<std::string>{"params.w1", "params.b", "momentum.w1", "momentum.b"});
      for (int i = 0; i < 4; ++i) CHECK(same(loaded[i], state[static_cast<std::size_t>(i)]));
      CHECK(pt::equal(pt::emulate(next, loaded, x[4]), second));
    }
    const pt::checkpoint_reader in(path);
    CHECK(in.step() == 100);
    CHECK(in.manifest().mesh == "{\"B\":4, \"M\":2}");
    CHECK(in.manifest().written_by == "partita " + std::string(pt::library_version));
    const auto w1 = in.need("params.w1", {pt::dtype::f32, {pt::dyn, 10}});
    CHECK(w1.layout == "[{\"B\"}, {\"M\"}]");
    CHECK(w1.shard == pt::shape{2, 5});
    CHECK(w1.checksums.size() == 6);  // two of 8 shards are padding only
    // A loaded value can be saved, with the layout of the inputs.
    pt::save_checkpoint(path, step, pt::load_checkpoint(path, training(), "params.b"), "params");
    CHECK(pt::checkpoint_reader(path).manifest().arrays.size() == 1);
    CHECK(thrown([&] {
            pt::save_checkpoint(path, step, first, "param");
          }).starts_with("N010 file: no output is named \"param\" or is below it; "));
    CHECK(thrown([&] {
            pt::load_checkpoint(path, step, "weights");
          }).starts_with("N010 file: no input is named \"weights\""));
    CHECK(thrown([&] { pt::load_checkpoint(path, step, "params"); }) ==
          "K006 checkpoint: \"" + path +
              "\" has no array \"params.w1\" of tensor<6x10xf32>; "
              "known: params.b; did you mean \"params.b\"?");
  }
}

TEST_CASE("checkpoint: boxes of an array are read") {
  using namespace checkpoint_test;
  const folder at;
  save_w(at / "w", 1);
  const pt::checkpoint_reader in(at / "w");
  const pt::array box = in.read("w", {{2, 3}}, {2, 4});  // two shards, two columns of padding
  CHECK(pt::equal(box, pt::array(xt::xarray<float>{{14, 15, 0, 0}, {19, 20, 0, 0}})));
  CHECK(pt::equal(in.read("w", {{6, 0}}, {1, 1}), pt::array({pt::dtype::f32, {1, 1}})));
  CHECK(thrown([&] { in.read("w", {}, {6}); }) ==
        "K011 checkpoint: a box of [6] is not in array \"w\", which is tensor<6x5xf32>");
  CHECK(thrown([&] { in.read("w", {{0, -1}}, {1, 1}); }).starts_with("K011 checkpoint: "));
  CHECK(thrown([&] { in.read("v", {}, {}); }) ==
        "K006 checkpoint: \"" + (at / "w") +
            "\" has no array \"v\"; known: w; did you mean \"w\"?");
  CHECK(thrown([&] { in.read(rows_of_w(), two, -1); }).starts_with("K011 checkpoint: "));
  CHECK(thrown([&] {
          in.need("w", {pt::dtype::bf16, {6, 5}});
        }) == "K007 checkpoint: \"" + (at / "w") +
                  "\": array \"w\" is tensor<6x5xf32>; tensor<6x5xbf16> is needed");
}

TEST_CASE("checkpoint: after a crash at any time a checkpoint loads, and the next save succeeds") {
  using namespace checkpoint_test;
  for (const auto format : both)
    for (const auto next : both) {
      const folder at;
      const std::string path = at / "w";
      save_w(path, 1, format);
      const int before = syncs;
      save_w(at / "other", 2, next);
      const int writes = syncs - before;
      CHECK(writes >= 6);
      for (int i = 0; i <= writes; ++i) {
        const pid_t child = fork();
        if (child == 0) {
          crash_at = syncs + i;
          try {
            save_w(path, 2, next);
          } catch (...) {
          }
          _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        CHECK(WEXITSTATUS(status) == (i == writes ? 0 : 9));
        const pt::array w = load_w(path);
        CHECK(same(w, numbers(i < writes - 1 ? 1 : 2)));  // the last call is that of the rename
        CHECK(pt::checkpoint_reader(path).step() == (i < writes - 1 ? 1 : 2));
        save_w(path, 1, format);
        CHECK(same(load_w(path), numbers(1)));
        CHECK(!fs::exists(path + ".partial"));
      }
    }
}

TEST_CASE("checkpoint: a failure of one process is an error of all, and nothing changes") {
  using namespace checkpoint_test;
  const folder at;
  const std::string path = at / "w";
  save_w(path, 1);
  const std::string before = tree(path);
  processes group(2);
  const auto save = [&](int process, const pt::checkpoint_peers& peers,
                        std::vector<pt::checkpoint_array> arrays) {
    pt::save_checkpoint(path, two, std::move(arrays), {}, peers).wait();
    static_cast<void>(process);
  };
  const auto held = [&](int process) {
    return held_by(process, 2, two, {rows_of_w()}, {numbers(2)});
  };
  const auto expect = [&](const std::vector<std::string>& errors, const std::string& first,
                          const std::string& second) {
    CHECK(errors[0].substr(0, first.size()) == first);
    CHECK(errors[1].substr(0, second.size()) == second);
    CHECK(tree(path) == before);
  };
  // The disk fails while process 1 or process 0 writes.
  const int now = syncs;
  fail_at = now;
  auto errors =
      group.run([&](int process, const auto& peers) { save(process, peers, held(process)); });
  fail_at = -1;
  CHECK((errors[0].starts_with("K001 checkpoint: \"") ||
         errors[1].starts_with("K001 checkpoint: \"")));
  CHECK((errors[0].starts_with("K009 checkpoint: process 1 failed: K001") ||
         errors[1].starts_with("K009 checkpoint: process 0 failed: K001")));
  CHECK(tree(path) == before);
  // A shard of another shape, no shard, a shard twice, another description.
  expect(group.run([&](int process, const auto& peers) {
    auto arrays = held(process);
    if (process == 1) arrays[0].shards[0].values = pt::array({pt::dtype::f32, {2, 5}});
    save(process, peers, arrays);
  }),
         "K009 checkpoint: process 1 failed: K007 ",
         "K007 checkpoint: the shard of \"w\" of device 1 is tensor<2x5xf32>; tensor<3x5xf32> or "
         "tensor<6x5xf32> is needed");
  expect(group.run([&](int process, const auto& peers) {
    auto arrays = held(process);
    if (process == 1) arrays[0].shards.clear();
    save(process, peers, arrays);
  }),
         "K011 checkpoint: shard 1 of \"w\" is not provided by any process",
         "K009 checkpoint: process 0 failed: K011 ");
  expect(
      group.run([&](int process, const auto& peers) { save(process, peers, only_w(numbers(2))); }),
      "K011 checkpoint: shard 0 of \"w\" is provided more than once", "K009 ");
  expect(group.run([&](int process, const auto& peers) {
    auto arrays = held(process);
    if (process == 1) arrays[0].value.name = "v";
    save(process, peers, arrays);
  }),
         "K009 checkpoint: process 1 describes other arrays than process 0", "K009 ");
  // The next save succeeds.
  errors = group.run([&](int process, const auto& peers) { save(process, peers, held(process)); });
  CHECK(errors == std::vector<std::string>{"", ""});
  CHECK(same(load_w(path), numbers(2)));
}

TEST_CASE("checkpoint: invalid values and paths are refused") {
  using namespace checkpoint_test;
  const folder at;
  const auto why = [&](const std::string& name, const std::string& path) {
    auto arrays = only_w(numbers(1));
    arrays[0].value.name = std::string_view(name);
    return thrown([&] { pt::save_checkpoint(path, two, arrays); });
  };
  CHECK(why("", at / "w") ==
        "K008 checkpoint: the name \"\" of array 0 is empty, not UTF-8, or longer than that of a "
        "file");
  CHECK(why("\xff", at / "w").starts_with("K008 "));
  CHECK(why(std::string(256, 'a'), at / "w").starts_with("K008 "));
  CHECK(why(std::string(255, 'a'), at / "w") == "");
  auto twice = only_w(numbers(1));
  twice.push_back(twice[0]);
  CHECK(thrown([&] { pt::save_checkpoint(at / "w", two, twice); }) ==
        "K008 checkpoint: two arrays are named \"w\"");
  CHECK(thrown([&] { pt::save_checkpoint(at / "w", two, only_w(numbers(1)), {.step = -1}); }) ==
        "K008 checkpoint: step -1 or file_bytes 5000000000 is negative");
  CHECK(thrown([&] {
          pt::save_checkpoint(at / "w", two, only_w(numbers(1)), {.file_bytes = -1});
        }).starts_with("K008 "));
  auto other = only_w(numbers(1));
  other[0].shards[1].device = 2;
  CHECK(thrown([&] { pt::save_checkpoint(at / "w", two, other); }) ==
        "K011 checkpoint: device 2 is not in {\"B\":2}");
  other[0].value.local_shape = {3};
  CHECK(thrown([&] { pt::save_checkpoint(at / "w", two, other); }) ==
        "K007 checkpoint: \"w\" has shape [6, 5]; shards of shape [3] do not fit it");
  auto reserved = only_w(numbers(1));
  reserved[0].value.name = "__metadata__";
  CHECK(thrown([&] {
          pt::save_checkpoint(at / "w", two, reserved, {.format = both[1]});
        }).starts_with("N003 file: "));
  // A directory that is not a checkpoint.
  fs::create_directories(at.path / "mine");
  overwrite(at / "mine/notes", "a");
  const std::string before = tree(at.path / "mine");
  CHECK(why("w", at / "mine") == "K010 checkpoint: \"" + (at / "mine") +
                                     "\" exists and is not a checkpoint; choose another name");
  CHECK(tree(at.path / "mine") == before);
  overwrite(at / "file", "a");
  CHECK(why("w", at / "file").starts_with("K010 "));
  CHECK(why("w", at / "file/w").starts_with("K001 "));
  CHECK(why("w", at / "below/it/") == "");  // missing parent directories are created
  CHECK(fs::exists(at.path / "below/it/partita.json"));
}

TEST_CASE("checkpoint: a save in the background is a snapshot") {
  using namespace checkpoint_test;
  const folder at;
  const std::string path = at / "w";
  save_w(path, 1);
  pt::array a = numbers(2);
  auto save = pt::save_checkpoint(path, two, only_w(a));
  a.mutable_data<float>()[0] = 100;  // detaches the array
  CHECK(same(load_w(path), numbers(1)));
  save.wait();
  save.wait();  // once
  CHECK(same(load_w(path), numbers(2)));
  {
    auto third = pt::save_checkpoint(path, two, only_w(numbers(3)));
    const auto moved = std::move(third);
    CHECK(same(load_w(path), numbers(2)));
  }
  CHECK(same(load_w(path), numbers(3)));
  // If an exception leaves the scope, the new checkpoint does not become visible.
  try {
    const auto fourth = pt::save_checkpoint(path, two, only_w(numbers(4)));
    throw pt::error("T");
  } catch (const pt::error&) {
  }
  CHECK(same(load_w(path), numbers(3)));
  // An error of the background thread.
  fail_at = syncs.load();
  CHECK(thrown([&] {
          pt::save_checkpoint(path, two, only_w(numbers(4)));
        }).starts_with("K001 checkpoint: \"" + path + ".partial/"));
  fail_at = -1;
  CHECK(same(load_w(path), numbers(3)));
}

TEST_CASE("checkpoint: damaged, foreign and malicious files are refused") {
  using namespace checkpoint_test;
  for (const auto format : both) {
    const bool zarr = format == both[0];
    const folder at;
    const std::string path = at / "w", manifest = path + "/partita.json";
    save_w(path, 1, format);
    const std::string good = contents(manifest);
    const std::string file = path + (zarr ? "/w/c/1/0" : "/model-00001-of-00001.safetensors");
    const std::string bytes = contents(file);
    const auto why = [&] { return thrown([&] { load_w(path); }); };
    CHECK(why() == "");
    for (std::size_t i = bytes.size() - 60; i < bytes.size(); i += 7) {
      std::string flipped = bytes;
      flipped[i] = static_cast<char>(flipped[i] ^ 4);
      overwrite(file, flipped);
      CHECK(why().starts_with("K005 checkpoint: \"" + file + "\": shard 1 of \"w\" is damaged: "));
    }
    overwrite(file, bytes.substr(0, bytes.size() - 1));
    CHECK(why() == "K004 checkpoint: \"" + file + "\" has " + std::to_string(bytes.size() - 1) +
                       " bytes; " + std::to_string(bytes.size()) + " are expected");
    overwrite(file, bytes + "a");
    CHECK(why().starts_with("K004 checkpoint: \"" + file + "\" has "));
    fs::remove(file);
    CHECK(why() == "K001 checkpoint: \"" + file + "\" cannot be opened: No such file or directory");
    overwrite(file, bytes);
    if (!zarr) {
      overwrite(file, bytes.substr(0, 40) + "x" + bytes.substr(41));
      CHECK(why() ==
            "K004 checkpoint: \"" + file + "\" has another header than the manifest describes");
      overwrite(file, bytes);
    }
    // The manifest, truncated anywhere: an error, unless only the blank at its end is lost.
    for (std::size_t n = 0; n + 1 < good.size(); ++n) {
      overwrite(manifest, good.substr(0, n));
      CHECK(why().starts_with("K003 file: \"" + manifest +
                              "\": it is not the manifest of a checkpoint: "));
    }
    const auto edited = [&](const std::string& from, const std::string& to) {
      const std::size_t i = good.find(from);
      REQUIRE(i != std::string::npos);
      overwrite(manifest, good.substr(0, i) + to + good.substr(i + from.size()));
      return why();
    };
    CHECK(edited("\"shape\":[6,5]", "\"shape\" : [ 6, 5]\t") == "");
    CHECK(edited("\"step\":", "\"steps\":").find("\"step\" is missing at byte ") !=
          std::string::npos);
    CHECK(edited("checkpoint\":1", "checkpoint\":2") ==
          "K002 file: \"" + manifest + "\": the checkpoint has version 2; version 1 can be read");
    CHECK(edited("\"f32\"", "\"f33\"")
              .find("array \"w\" of type f33, shape [6, 5], shards [3, 5] and 2 checksums is "
                    "inconsistent") != std::string::npos);
    const std::string big = "9223372036854775807";
    for (const auto& [from, to] :
         std::vector<std::pair<std::string, std::string>>{{"[6,5]", "[" + big + "," + big + "]"},
                                                          {"[6,5]", "[6,5,1]"},
                                                          {"[6,5]", "[60,5]"},
                                                          {"[6,5]", "[1,1,1,1,1,1,1,1,1]"},
                                                          {"[6,5]", "[-6,5]"},
                                                          {"[3,5]", "[3,0]"},
                                                          {"[3,5]", "[" + big + ",5]"},
                                                          {"[3,5]", "[1,1]"},
                                                          {"\"step\":1", "\"step\":" + big + "0"},
                                                          {"\"format\":\"", "\"format\":\"x"}})
      CHECK(
          edited(from, to).starts_with("K003 file: \"" + manifest + "\": it is not the manifest "));
    for (const auto& [from, to] :
         std::vector<std::pair<std::string, std::string>>{{"[6,5]", "[5,5]"},
                                                          {"[6,5]", "[4,1]"},
                                                          {"[3,5]", "[4,5]"},
                                                          {"[3,5]", "[576460752303423487,1]"},
                                                          {"\"f32\"", "\"f64\""},
                                                          {"\"f32\"", "\"u8\""}})
      CHECK(edited(from, to) != "");
    CHECK(edited("\"w\"", "\"../w\"").starts_with(zarr ? "K006" : "K004"));
    CHECK(edited("\n{",
                 "\n" + good.substr(good.find("\n{") + 1, good.rfind(']') - good.find("\n{") - 1) +
                     ",\n{") == "K003 checkpoint: \"" + path + "\": two arrays are named \"w\"");
    fs::remove(manifest);
    CHECK(why() == "K002 checkpoint: \"" + path + "\" " +
                       (zarr ? "is a zarr group of another program: it has no partita.json"
                             : "has no partita.json"));
    CHECK(thrown([&] { load_w(at / "none"); }) ==
          "K002 checkpoint: \"" + (at / "none") + "\" has no partita.json");
  }
  // A bool is 0 or 1, whatever the checksum.
  const folder at;
  pt::array yes({pt::dtype::boolean, {2}});
  std::memset(yes.mutable_bytes(), 2, 2);
  pt::save_checkpoint(at / "b", {}, {{{"b", pt::dtype::boolean, {2}, {2}, {}}, {{0, yes}}}});
  CHECK(thrown([&] { pt::checkpoint_reader(at / "b").read("b", {}, {2}); }).starts_with("K005 "));
}

TEST_CASE("checkpoint: any names are saved, and checksums are CRC-32C") {
  using namespace checkpoint_test;
  using pt::backend_detail::path_component;
  CHECK(path_component("params.w-1_B") == "params.w-1_B");
  CHECK(path_component("a/b") == "a%2Fb");
  CHECK(path_component("..") == "%2E.");
  CHECK(path_component(".hidden") == "%2Ehidden");
  CHECK(path_component("__x") == "%5F_x");
  CHECK(path_component("zarr.json") == "%7Aarr.json");
  CHECK(path_component("partita.json") == "%70artita.json");
  CHECK(path_component("100%") == "100%25");
  const std::string digits = "123456789";  // the check value of the catalogue of CRCs
  const auto* bytes = reinterpret_cast<const std::byte*>(digits.data());
  CHECK(pt::run_detail::crc32c(bytes, 9) == 0xe3069283u);
  for (std::size_t n = 0; n <= 9; ++n)
    CHECK(pt::run_detail::crc32c(bytes + n, 9 - n, pt::run_detail::crc32c(bytes, n)) ==
          0xe3069283u);
}
