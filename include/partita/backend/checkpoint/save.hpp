/// Writes checkpoints: each process writes its own shards in the background, and one rename makes
/// them visible.
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <partita/backend/checkpoint/foreign_metadata.hpp>
#include <partita/run/array.hpp>
#include <partita/run/file/crc.hpp>
#include <partita/run/file/load.hpp>
#include <partita/schedule/partitioned.hpp>
#include <partita/support/version.hpp>

namespace partita {

/// Options of save_checkpoint.
struct checkpoint_options {
  std::int64_t step = 0;  ///< recorded in the manifest
  checkpoint_format format = checkpoint_format::zarr;
  std::int64_t file_bytes = 5'000'000'000;  ///< maximum bytes of tensors in a file of safetensors
};

/// Communication between the processes that write one checkpoint. The default is one process.
struct checkpoint_peers {
  int process = 0;
  /// Returns the bytes of all processes in the order of their numbers. Every process calls it the
  /// same number of times, from the thread that calls save_checkpoint and wait.
  std::function<std::vector<std::string>(const std::string&)> all_gather;
};

/// The values of an array on a device of the mesh: its shard (with padding), or the global array.
struct checkpoint_shard {
  std::int64_t device = 0;  ///< number of the device, as in `piece`
  array values;
};
/// An array to write. All processes describe the same arrays in the same order; each adds the
/// shards of the devices that it runs.
struct checkpoint_array {
  sharded_value value;  ///< name, element type, shapes, layout: `p.output(i)`
  std::vector<checkpoint_shard> shards;
  const mesh* on = nullptr;  ///< the mesh that has it; null: the mesh of the checkpoint
};

namespace backend_detail {

/// Does `work` in every process, and returns the results of all. If one fails, all throw.
///
/// Errors    K009 a process failed
template <class Work>
std::vector<std::string> agree(const checkpoint_peers& peers, const Work& work) {
  std::string mine = "+";
  try {
    mine += work();
  } catch (const error& e) {
    mine = e.what();
  } catch (const std::exception& e) {
    mine = std::string("K001 checkpoint: ") + e.what();
  }
  std::vector<std::string> all = peers.all_gather ? peers.all_gather(mine) : std::vector{mine};
  if (mine[0] != '+') throw error(mine);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].starts_with('+'))
      throw error(concat("K009 checkpoint: process ", i, " failed: ", all[i]));
    all[i].erase(0, 1);
  }
  return all;
}

/// A checkpoint that is being written.
class checkpoint_writer {
 public:
  checkpoint_writer(const std::string& path, const mesh& m, std::vector<checkpoint_array> arrays,
                    const checkpoint_options& o, const checkpoint_peers& peers)
      : path_(path.substr(0, path.find_last_not_of('/') + 1)),
        partial_(path_ + ".partial"),
        peers_(peers),
        mesh_(m),
        arrays_(std::move(arrays)),
        manifest_{o.format,     o.step, {}, std::string(concat("partita ", library_version).view()),
                  o.file_bytes, {}} {
    const auto all = agree(peers_, [&] {
      describe();
      if (peers_.process == 0) make_room();
      const auto described = manifest_text(manifest_);
      return std::to_string(run_detail::crc32c(described.view().data(), described.size()));
    });
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i] != all[0])
        throw error(
            concat("K009 checkpoint: process ", i, " describes other arrays than process 0"));
    thread_ = std::thread([this] {
      try {
        if (peers_.process == 0) write_foreign_metadata(manifest_, *files_);
        for (block& b : mine_) write(b);
      } catch (...) {
        failed_ = std::current_exception();
      }
    });
  }
  ~checkpoint_writer() { join(); }

  void publish() {
    const auto written = agree(peers_, [&] {
      join();
      if (failed_) std::rethrow_exception(failed_);
      return std::string(reinterpret_cast<const char*>(mine_.data()), mine_.size() * sizeof(block));
    });
    agree(peers_, [&] {
      if (peers_.process == 0) finish(written);
      return "";
    });
  }

 private:
  /// A shard that this process writes.
  struct block {
    std::int64_t number = 0;  ///< among stored shards
    std::uint32_t array = 0, shard = 0, crc = 0, unused = 0;
  };

  std::string path_, partial_;
  checkpoint_peers peers_;
  partita::mesh mesh_;
  std::vector<checkpoint_array> arrays_;
  checkpoint_manifest manifest_;
  std::unique_ptr<shard_files> files_;
  std::vector<block> mine_;
  std::exception_ptr failed_;
  std::thread thread_;

  const partita::mesh& mesh_of(std::uint32_t array) const {
    return arrays_[array].on != nullptr ? *arrays_[array].on : mesh_;
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  void describe() {
    if (manifest_.step < 0 || manifest_.file_bytes < 0)
      throw error(concat("K008 checkpoint: step ", manifest_.step, " or file_bytes ",
                         manifest_.file_bytes, " is negative"));
    manifest_.mesh = concat(mesh_).view();
    for (std::uint32_t i = 0; i < arrays_.size(); ++i) {
      const sharded_value& v = arrays_[i].value;
      text layout;
      print_layout(layout, v.sharding, v.global_shape.rank, mesh_of(i));
      shape shard = v.local_shape;
      if (shard.rank != v.global_shape.rank || !shard.fits() || !v.global_shape.fits())
        throw error(concat("K007 checkpoint: \"", v.name, "\" has shape ", v.global_shape,
                           "; shards of shape ", shard, " do not fit it"));
      for (int d = 0; d < shard.rank; ++d) shard[d] = std::max<std::int64_t>(shard[d], 1);
      const std::string name(v.name.view());
      const std::size_t length = path_component(name).size();
      if (length == 0 || length > 255 || !is_utf8(name))
        throw error(concat("K008 checkpoint: the name \"", short_name(name), "\" of array ", i,
                           " is empty, not UTF-8, or longer than that of a file"));
      manifest_.arrays.push_back(
          {name, {v.element, v.global_shape}, shard, std::string(layout.view()), {}});
      for (std::uint32_t s = 0; s < arrays_[i].shards.size(); ++s) add_block(i, s);
    }
    if (const auto at = run_detail::name_index(manifest_.arrays).duplicate(); at >= 0)
      throw error(concat("K008 checkpoint: two arrays are named \"",
                         short_name(manifest_.arrays[static_cast<std::size_t>(at)].name), '"'));
    files_ = std::make_unique<shard_files>(partial_, manifest_);
  }
  /// Adds a shard if this process writes it. Of the devices that hold a shard, one writes it; the
  /// choice rotates from shard to shard.
  void add_block(std::uint32_t i, std::uint32_t s) {
    const sharded_value& v = arrays_[i].value;
    const auto& [device, values] = arrays_[i].shards[s];
    const tensor_type whole{v.element, v.global_shape}, local{v.element, v.local_shape};
    if (values.type() != whole && values.type() != local)
      throw error(concat("K007 checkpoint: the shard of \"", v.name, "\" of device ", device,
                         " is ", values.type(), "; ", local, " or ", whole, " is needed"));
    const partita::mesh& m = mesh_of(i);
    const auto c = device_coordinates(m, device);
    std::int64_t copies = 1, copy = 0, number = 0;
    for (int k = 0; k < m.rank; ++k)
      if (const int a = m.order[k]; v.sharding.dim_of(a) < 0) {
        copy = copy * m.size(a) + c.at[a];
        copies *= m.size(a);
      }
    const shape stored = stored_shards(manifest_.arrays[i]);
    for (int d = 0; d < stored.rank; ++d) {
      const std::int64_t piece = run_detail::piece_of(m, v.sharding, d, c);
      if (piece >= stored[d]) return;  // padding only
      number = number * stored[d] + piece;
    }
    if (copy == (number + i) % copies) mine_.push_back({number, i, s});
  }
  void make_room() const {
    namespace fs = std::filesystem;
    if (fs::exists(path_) && !fs::exists(path_ + "/" + std::string(manifest_name)))
      throw error(concat("K010 checkpoint: \"", path_,
                         "\" exists and is not a checkpoint; choose another name"));
    fs::remove_all(partial_);
    fs::create_directories(partial_);
  }
  void write(block& b) const {
    const checkpoint_entry& a = manifest_.arrays[b.array];
    const array& values = arrays_[b.array].shards[b.shard].values;
    const stored_shard to = files_->shard(b.array, b.number);
    held_box from{to.start, with_rows(values.shape()), with_rows(a.type.shape)};
    if (values.shape() == a.type.shape) from.start = {};
    if (to.chunk) std::filesystem::create_directories(std::filesystem::path(to.path).parent_path());
    const durable_file file(to.path, O_WRONLY | O_CREAT);
    const std::int64_t size = size_of(a.type.element);
    std::vector<std::byte> bytes;
    to.for_each_slab(size, [&](const slab& s) {
      bytes.assign(static_cast<std::size_t>(s.extents.elements() * size), std::byte{});
      const common_box both(s, from);
      run_detail::copy_box(size, both.extents, from.extents, both.in_array.at, values.bytes(),
                           s.extents, both.in_slab.at, bytes.data());
      b.crc = run_detail::crc32c(bytes.data(), bytes.size(), b.crc);
      file.write(s.begin, bytes.data(), bytes.size());
    });
    file.sync();
  }
  void finish(const std::vector<std::string>& written) {
    std::vector<std::vector<char>> seen;
    for (auto& a : manifest_.arrays) {
      a.checksums.resize(static_cast<std::size_t>(stored_shards(a).elements()));
      seen.emplace_back(a.checksums.size());
    }
    for (const std::string& each : written)
      for (std::size_t k = 0; k < each.size(); k += sizeof(block)) {
        block b;
        std::memcpy(&b, each.data() + k, sizeof b);
        manifest_.arrays[b.array].checksums[static_cast<std::size_t>(b.number)] = b.crc;
        char& times = seen[b.array][static_cast<std::size_t>(b.number)];
        times = times == 0 ? 1 : 2;
      }
    for (std::size_t i = 0; i < seen.size(); ++i)
      for (std::size_t k = 0; k < seen[i].size(); ++k)
        if (seen[i][k] != 1)
          throw error(concat("K011 checkpoint: shard ", k, " of \"", manifest_.arrays[i].name,
                             seen[i][k] == 0 ? "\" is not provided by any process"
                                             : "\" is provided more than once"));
    write_durable(files_->path(manifest_name), manifest_text(manifest_));
    sync_directories(partial_);
    rename_durable(partial_, path_);
    std::error_code kept;  // the old checkpoint; the next save removes the rest of it
    std::filesystem::remove_all(partial_, kept);
  }
};

}  // namespace backend_detail

/// A checkpoint that is being written in the background. It shares the arrays until it ends;
/// modified copies of them are separate.
class saving {
 public:
  explicit saving(std::unique_ptr<backend_detail::checkpoint_writer> writer)
      : writer_(std::move(writer)) {}
  saving(saving&&) = default;
  saving& operator=(saving&&) = delete;
  /// Calls wait(), so that its errors are not lost. If an exception is in flight, the checkpoint is
  /// not made visible.
  ~saving() noexcept(false) {
    if (std::uncaught_exceptions() == exceptions_) wait();
  }
  /// Waits until the checkpoint is durable and visible. Every process must call it.
  ///
  /// Errors    K001 a file cannot be written, K009 another process failed, K010 the old checkpoint
  ///           cannot be replaced, K011 a shard that no process or more than one process provides
  void wait() {
    if (const auto writer = std::move(writer_)) writer->publish();
  }

 private:
  std::unique_ptr<backend_detail::checkpoint_writer> writer_;
  int exceptions_ = std::uncaught_exceptions();
};

/// Starts to write a checkpoint; wait() or the destructor of the handle makes it visible. Until
/// then, and after any failure, an existing checkpoint of this name stays unchanged.
///
/// Cost      each process writes the shards that it owns, through a buffer of 1 MiB
/// Errors    K001, K007 a shard has another type, K008 a name or option is invalid, K009, K010 the
///           name belongs to something else
inline saving save_checkpoint(const std::string& path, const mesh& m,
                              std::vector<checkpoint_array> arrays,
                              const checkpoint_options& options = {},
                              const checkpoint_peers& peers = {}) {
  return saving(std::make_unique<backend_detail::checkpoint_writer>(path, m, std::move(arrays),
                                                                    options, peers));
}

}  // namespace partita
