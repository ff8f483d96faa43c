/// The demo's training step written by hand with MPI and Eigen: the baseline of `bench_mpi_step`.
///
/// One rank is one device of the mesh {"B": n}. The strategy is that of the schedule BP, Z3 on this
/// mesh: the batch, the parameters and Adam's state are sharded, and every rank has one shard.
///
/// Optimizations:
///
/// * All parameters are one flat array, and so are all gradients. A rank owns one interval of both.
///   A step has three collectives: an all_gather of the parameters in place, a reduce_scatter of
///   the gradients, and an all_reduce of the loss. Products write gradients directly into the send
///   buffer, so nothing is packed.
/// * The reduce_scatter is an MPI_Alltoall, and Adam adds up the shards as it reads them. It sends
///   the same bytes. Between two ranks of one machine Open MPI 4.1 takes 0.02 ms for it, 0.04 ms
///   for MPI_Reduce_scatter and 0.22 ms for MPI_Reduce_scatter_block.
/// * The gathered parameters are kept for the backward pass. A second gather would save 0.2 MB of
///   memory here and increase the bytes sent by half.
/// * Forward and backward pass work on a few sequences at a time and add up the gradients, so that
///   activations of a pass stay in the caches. The demo's step takes 5 % longer with all 16
///   sequences of a rank at once, and also with one at a time, since its products are small.
/// * All memory is allocated by the constructor.
/// * Eigen computes the products over all rows of a pass. The products of attention are small, one
///   per head, and half masked; hand-written loops over packets of queries skip the masked blocks.
/// * Elementwise work between two products is one pass: bias, GELU and its derivative; residual,
///   bias and layer norm; softmax and the gradient of the loss.
/// * Logits, queries, keys and values are stored transposed, so that softmax and sums over heads
///   are elementwise in packets of positions.
///
/// Source    model: examples/models/transformer.hpp; gradient of softmax from dO and O:
///           Dao et al., arXiv:2205.14135, appendix B.2
#pragma once

#include <mpi.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <partita/ir/collective.hpp>

#include "../examples/models/transformer.hpp"

namespace bench {

/// Floats aligned to cache lines.
class float_buffer {
 public:
  float_buffer() = default;
  explicit float_buffer(std::ptrdiff_t size)
      : data_(static_cast<float*>(
                  std::aligned_alloc(64, static_cast<std::size_t>((size + 15) / 16 * 64))),
              &std::free) {
    std::fill(data(), data() + (size + 15) / 16 * 16, 0.0f);
  }
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }

 private:
  std::unique_ptr<float, void (*)(void*)> data_{nullptr, &std::free};
};

/// One rank of the training step. `Width` is the model's width, or Eigen::Dynamic.
///
/// Errors    std::invalid_argument for sizes that the packets of this machine do not divide
template <int Width = Eigen::Dynamic>
class hand_step {
 public:
  using index = std::ptrdiff_t;
  /// Seconds of all steps so far, by kind of work.
  struct profile {
    double gather = 0, embed = 0, norm = 0, product = 0, attention = 0, gelu = 0, loss = 0;
    double exchange = 0;  ///< collectives of gradients and loss, and the wait for other ranks
    double adam = 0;      ///< includes setting the gradients to zero
  };

  /// Collective over `world`, which has one rank per shard of the batch. A pass works on
  /// `sequences` rows of the batch at a time; this number divides the rows of a rank.
  hand_step(const transformer::sizes& s, const partita::adam_options& adam, MPI_Comm world,
            index sequences)
      : s_(s), adam_(adam), world_(world), sequences_(sequences) {
    MPI_Comm_rank(world_, &rank_);
    MPI_Comm_size(world_, &ranks_);
    if (Width != Eigen::Dynamic && s.width != Width)
      throw std::invalid_argument("hand_step: the width differs from that of the template");
    for (auto extent : {s.width, s.hidden, s.context, s.heads * s.key})
      if (extent % lanes != 0)
        throw std::invalid_argument("hand_step: a size is not a multiple of a packet's");
    if (s.batch % (ranks_ * sequences_) != 0 || s.key % block != 0)
      throw std::invalid_argument("hand_step: ranks and sequences do not divide the batch, or " +
                                  std::to_string(block) + " does not divide the key");
    rows_ = sequences_ * s.context;
    stride_ = rows_ + lanes;  // a power of two would put all rows into one set of the L1 cache
    heads_ = s.heads * s.key;
    make_parameters();
    make_buffers();
  }

  /// Returns the number of rows of the batch on each rank; rank r's rows begin at r *
  /// local_batch().
  index local_batch() const { return s_.batch / ranks_; }
  std::size_t tensor_count() const { return offsets_.size(); }

  /// Copies the global parameters, in the order of the program's inputs, and sets Adam's moments to
  /// zero.
  void place(std::span<const float* const> values) {
    for (std::size_t i = 0; i < offsets_.size(); ++i)
      std::copy(values[i], values[i] + sizes_[i], params_.data() + offsets_[i]);
    std::fill(m_.data(), m_.data() + part_, 0.0f);
    std::fill(v_.data(), v_.data() + part_, 0.0f);
    steps_ = 0;
  }

  /// Runs one step on this rank's rows of the batch and returns the loss before it. Collective.
  float step(const std::int32_t* tokens, const std::int32_t* targets) {
    clock_ = MPI_Wtime();
    bytes_ = 0;
    gather_parameters();
    lap(time_.gather);
    std::fill(grads_.data(), grads_.data() + part_ * ranks_, 0.0f);
    lap(time_.adam);
    float loss = 0;
    for (index b = 0; b < local_batch(); b += sequences_) {
      loss += forward(tokens + b * s_.context, targets + b * s_.context);
      backward(tokens + b * s_.context);
    }
    MPI_Alltoall(grads_.data(), static_cast<int>(part_), MPI_FLOAT, received_.data(),
                 static_cast<int>(part_), MPI_FLOAT, world_);
    count(partita::collective::reduce_scatter, part_ * ranks_);
    MPI_Allreduce(MPI_IN_PLACE, &loss, 1, MPI_FLOAT, MPI_SUM, world_);
    count(partita::collective::all_reduce, 1);
    lap(time_.exchange);
    update();
    lap(time_.adam);
    return loss;
  }

  /// Returns the bytes that this rank sent in the last step, as partita::bytes_sent counts them.
  std::int64_t bytes_sent() const { return bytes_; }
  const profile& times() const { return time_; }
  void reset_times() { time_ = {}; }

  /// Returns the global parameter tensor i; `collect` has to gather it first.
  std::span<const float> parameter(std::size_t i) const {
    return {params_.data() + offsets_[i], static_cast<std::size_t>(sizes_[i])};
  }
  /// Returns the first moment of parameter tensor i; `collect` has to gather it first.
  std::span<const float> moment(std::size_t i) const {
    return {grads_.data() + offsets_[i], static_cast<std::size_t>(sizes_[i])};
  }
  /// Gathers parameters and first moments, for checks. Collective.
  void collect() {
    gather_parameters();
    MPI_Allgather(m_.data(), static_cast<int>(part_), MPI_FLOAT, grads_.data(),
                  static_cast<int>(part_), MPI_FLOAT, world_);
  }

 private:
  using packet = Eigen::internal::packet_traits<float>::type;
  static constexpr index lanes = Eigen::internal::packet_traits<float>::size;
  static constexpr index block = std::min<index>(lanes, 8);  ///< packets accumulated at once
  using row_major = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using col_major = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic>;
  using matrix = Eigen::Map<row_major, Eigen::Aligned64>;
  using transposed = Eigen::Map<col_major, Eigen::Aligned64, Eigen::OuterStride<>>;

  /// Offsets of a layer's parameters in the flat array.
  struct layer_tensors {
    index scale1, bias1, qkv, out, scale2, bias2, up, up_bias, down, down_bias;
  };
  /// Values that a norm's forward pass saves for the backward pass.
  struct normed {
    float_buffer unit, out, inverse;  ///< (rows, width) twice; 1 / deviation of each row
  };
  struct layer_values {
    normed norm1, norm2;
    float_buffer qkv;              ///< (3 heads key, rows)
    float_buffer weights;          ///< attention weights, laid out as `tile` says
    float_buffer attended;         ///< (heads key, rows)
    float_buffer hidden, derived;  ///< (rows, hidden): GELU and its derivative
  };

  static packet load(const float* p) { return Eigen::internal::ploadu<packet>(p); }
  static void store(float* p, const packet& x) { Eigen::internal::pstoreu(p, x); }
  static packet all(float x) { return Eigen::internal::pset1<packet>(x); }
  static packet add(const packet& a, const packet& b) { return Eigen::internal::padd(a, b); }
  static packet subtract(const packet& a, const packet& b) { return Eigen::internal::psub(a, b); }
  static packet multiply(const packet& a, const packet& b) { return Eigen::internal::pmul(a, b); }
  /// Returns a b + c.
  static packet fused(const packet& a, const packet& b, const packet& c) {
    return Eigen::internal::pmadd(a, b, c);
  }
  static float sum_of(const packet& x) { return Eigen::internal::predux(x); }

  index width() const { return Width == Eigen::Dynamic ? s_.width : Width; }
  matrix parameter_matrix(index at, index rows, index cols) {
    return matrix(params_.data() + at, rows, cols);
  }
  matrix gradient(index at, index rows, index cols) {
    return matrix(grads_.data() + at, rows, cols);
  }
  matrix rows_of(float_buffer& b, index cols) { return matrix(b.data(), rows_, cols); }
  transposed columns_of(float_buffer& b, index cols) {
    return transposed(b.data(), rows_, cols, Eigen::OuterStride<>(stride_));
  }

  void make_parameters() {
    index total = 0;
    const auto next = [&](index size) {
      const index at = total;
      offsets_.push_back(at);
      sizes_.push_back(size);
      total += (size + 15) / 16 * 16;
      return at;
    };
    const index d = s_.width;
    token_ = next(s_.vocabulary * d);
    position_ = next(s_.context * d);
    for (index i = 0; i < s_.layers; ++i) {
      layer_tensors t{};
      t.scale1 = next(d), t.bias1 = next(d);
      t.qkv = next(d * 3 * heads_), t.out = next(heads_ * d);
      t.scale2 = next(d), t.bias2 = next(d);
      t.up = next(d * s_.hidden), t.up_bias = next(s_.hidden);
      t.down = next(s_.hidden * d), t.down_bias = next(d);
      layers_.push_back(t);
    }
    scale_ = next(d), bias_ = next(d);
    head_ = next(d * s_.vocabulary);
    part_ = ((total + ranks_ - 1) / ranks_ + 15) / 16 * 16;
    params_ = float_buffer(part_ * ranks_);
    grads_ = float_buffer(part_ * ranks_);
    received_ = float_buffer(part_ * ranks_);
    m_ = float_buffer(part_);
    v_ = float_buffer(part_);
  }

  void make_buffers() {
    const auto norm = [&] {
      return normed{float_buffer(rows_ * s_.width), float_buffer(rows_ * s_.width),
                    float_buffer(rows_)};
    };
    for (index i = 0; i < s_.layers; ++i) {
      layer_values v{norm(),
                     norm(),
                     float_buffer(3 * heads_ * stride_),
                     float_buffer(sequences_ * s_.heads * tile(s_.context)),
                     float_buffer(heads_ * stride_),
                     float_buffer(rows_ * s_.hidden),
                     float_buffer(rows_ * s_.hidden)};
      values_.push_back(std::move(v));
    }
    final_ = norm();
    x_ = float_buffer(rows_ * s_.width);
    dx_ = float_buffer(rows_ * s_.width);
    dy_ = float_buffer(rows_ * s_.width);
    logits_ = float_buffer(s_.vocabulary * stride_);
    dhidden_ = float_buffer(rows_ * s_.hidden);
    dattended_ = float_buffer(heads_ * stride_);
    dqkv_ = float_buffer(3 * heads_ * stride_);
    scores_ = float_buffer(tile(s_.context));
    mask_ = float_buffer(lanes * lanes);
    for (index j = 0; j < lanes; ++j)
      for (index i = 0; i < lanes; ++i) mask_.data()[j * lanes + i] = i < j ? -0x1p100f : 0;
  }

  void lap(double& seconds) {
    const double now = MPI_Wtime();
    seconds += now - clock_;
    clock_ = now;
  }
  void count(partita::collective::kind_type kind, index elements) {
    bytes_ += partita::bytes_sent(kind, ranks_, elements * 4);
  }
  void gather_parameters() {
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, params_.data(), static_cast<int>(part_),
                  MPI_FLOAT, world_);
    count(partita::collective::all_gather, part_);
  }

  // ---- Forward -----------------------------------------------------------------------------

  float forward(const std::int32_t* tokens, const std::int32_t* targets) {
    embed(tokens);
    lap(time_.embed);
    auto x = rows_of(x_, width());
    const float* before = nullptr;  // the previous layer's bias, which the norm adds
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const layer_tensors& t = layers_[l];
      layer_values& v = values_[l];
      norm(v.norm1, before, t.scale1, t.bias1);
      lap(time_.norm);
      columns_of(v.qkv, 3 * heads_).noalias() =
          rows_of(v.norm1.out, width()) * parameter_matrix(t.qkv, width(), 3 * heads_);
      lap(time_.product);
      attend(v);
      lap(time_.attention);
      x.noalias() += columns_of(v.attended, heads_) * parameter_matrix(t.out, heads_, width());
      lap(time_.product);
      norm(v.norm2, nullptr, t.scale2, t.bias2);
      lap(time_.norm);
      rows_of(v.derived, s_.hidden).noalias() =
          rows_of(v.norm2.out, width()) * parameter_matrix(t.up, width(), s_.hidden);
      lap(time_.product);
      gelu(v, params_.data() + t.up_bias);
      lap(time_.gelu);
      x.noalias() += rows_of(v.hidden, s_.hidden) * parameter_matrix(t.down, s_.hidden, width());
      lap(time_.product);
      before = params_.data() + t.down_bias;
    }
    norm(final_, before, scale_, bias_);
    lap(time_.norm);
    columns_of(logits_, s_.vocabulary).noalias() =
        rows_of(final_.out, width()) * parameter_matrix(head_, width(), s_.vocabulary);
    lap(time_.product);
    const float loss = cross_entropy(targets);
    lap(time_.loss);
    return loss;
  }

  void embed(const std::int32_t* tokens) {
    const index d = width();
    for (index r = 0; r < rows_; ++r) {
      const float* token = params_.data() + token_ + tokens[r] * d;
      const float* position = params_.data() + position_ + r % s_.context * d;
      float* x = x_.data() + r * d;
      for (index i = 0; i < d; i += lanes) store(x + i, add(load(token + i), load(position + i)));
    }
  }

  /// Adds `before` to x unless it is null, and computes the layer norm of x.
  void norm(normed& n, const float* before, index scale_at, index bias_at) {
    const index d = width();
    const float *scale = params_.data() + scale_at, *bias = params_.data() + bias_at;
    const float part = 1 / static_cast<float>(d);
    for (index r = 0; r < rows_; ++r) {
      float* x = x_.data() + r * d;
      float* unit = n.unit.data() + r * d;
      float* out = n.out.data() + r * d;
      packet sum = all(0), squares = all(0);
      for (index i = 0; i < d; i += lanes) {
        packet p = load(x + i);
        if (before != nullptr) store(x + i, p = add(p, load(before + i)));
        sum = add(sum, p);
      }
      const packet mean = all(sum_of(sum) * part);
      for (index i = 0; i < d; i += lanes) {
        const packet p = subtract(load(x + i), mean);
        squares = fused(p, p, squares);
      }
      const float inverse = 1 / std::sqrt(sum_of(squares) * part + 1e-5f);
      n.inverse.data()[r] = inverse;
      for (index i = 0; i < d; i += lanes) {
        const packet p = multiply(subtract(load(x + i), mean), all(inverse));
        store(unit + i, p);
        store(out + i, fused(p, load(scale + i), load(bias + i)));
      }
    }
  }

  /// Sets hidden = GELU(u) and derived = GELU'(u), where u = derived + bias.
  void gelu(layer_values& v, const float* bias) {
    const index f = s_.hidden;
    const packet a = all(0.7978845608028654f), b = all(0.7978845608028654f * 0.044715f),
                 b3 = all(3 * 0.7978845608028654f * 0.044715f), half = all(0.5f), one = all(1);
    for (index r = 0; r < rows_; ++r) {
      float *h = v.hidden.data() + r * f, *derived = v.derived.data() + r * f;
      for (index i = 0; i < f; i += lanes) {
        const packet u = add(load(derived + i), load(bias + i));
        const packet square = multiply(u, u);
        const packet t = Eigen::internal::ptanh(multiply(u, fused(square, b, a)));
        const packet p = multiply(half, add(one, t));  // (1 + t) / 2
        store(h + i, multiply(u, p));
        // p' = (1 - t^2) / 2 = 2 p (1 - p)
        const packet slope = multiply(add(p, p), subtract(one, p));
        store(derived + i, fused(multiply(u, slope), fused(square, b3, a), p));
      }
    }
  }

  /// Returns this pass's share of the loss and overwrites the logits with their gradient.
  float cross_entropy(const std::int32_t* targets) {
    const index v = s_.vocabulary;
    const float share = 1 / static_cast<float>(s_.batch * s_.context);
    double loss = 0;
    for (index r = 0; r < rows_; r += lanes) {
      float* logits = logits_.data() + r;
      packet most = load(logits);
      for (index i = 1; i < v; ++i) most = Eigen::internal::pmax(most, load(logits + i * stride_));
      for (index i = 0; i < lanes; ++i)
        loss -= static_cast<double>(logits[targets[r + i] * stride_ + i]);
      packet sum = all(0);
      for (index i = 0; i < v; ++i) {
        const packet p = Eigen::internal::pexp(subtract(load(logits + i * stride_), most));
        store(logits + i * stride_, p);
        sum = add(sum, p);
      }
      loss += static_cast<double>(sum_of(add(most, Eigen::internal::plog(sum))));
      const packet factor = Eigen::internal::pdiv(all(share), sum);
      for (index i = 0; i < v; ++i)
        store(logits + i * stride_, multiply(load(logits + i * stride_), factor));
      for (index i = 0; i < lanes; ++i) logits[targets[r + i] * stride_ + i] -= share;
    }
    return static_cast<float>(loss) * share;
  }

  // ---- Attention ---------------------------------------------------------------------------
  //
  // The scores of a sequence and head are stored as tiles of `lanes` queries. Tile t has one row
  // per key from 0 to (t + 1) lanes - 1, and a row is one packet of queries. The other keys are
  // masked.

  /// Returns the number of floats before the tile whose first query is `i`.
  static constexpr index tile(index i) { return i * (i + lanes) / 2; }

  /// Adds to sums[k] the sum over j < n of columns[k][j] rows[j], for `Count` columns.
  template <int Count>
  static void combine(const float* columns, index stride, const float* rows, index n,
                      packet (&sums)[Count]) {
    for (index j = 0; j < n; ++j) {
      const packet row = load(rows + j * lanes);
      for (int k = 0; k < Count; ++k) sums[k] = fused(all(columns[k * stride + j]), row, sums[k]);
    }
  }
  /// Sets rows[j] to the sum over k < key of columns[k][j] vectors[k], for j in [0, block).
  void outer(const float* columns, const float* vectors, packet (&rows)[block]) const {
    for (auto& r : rows) r = all(0);
    for (index k = 0; k < s_.key; ++k) {
      const packet vector = load(vectors + k * stride_);
      for (int j = 0; j < block; ++j)
        rows[j] = fused(all(columns[k * stride_ + j]), vector, rows[j]);
    }
  }
  float scale() const { return 1 / std::sqrt(static_cast<float>(s_.key)); }

  void attend(layer_values& v) {
    for (index b = 0; b < sequences_; ++b)
      for (index h = 0; h < s_.heads; ++h) {
        const float* q = v.qkv.data() + h * s_.key * stride_ + b * s_.context;
        attend(q, q + heads_ * stride_, q + 2 * heads_ * stride_,
               v.weights.data() + (b * s_.heads + h) * tile(s_.context),
               v.attended.data() + h * s_.key * stride_ + b * s_.context);
      }
  }
  void attend(const float* q, const float* k, const float* v, float* weights, float* out) const {
    const packet factor = all(scale());
    for (index i = 0; i < s_.context; i += lanes) {
      float* w = weights + tile(i);
      packet most = all(-std::numeric_limits<float>::infinity());
      for (index j = 0; j < i + lanes; j += block) {
        packet rows[block];
        outer(k + j, q + i, rows);
        for (index l = 0; l < block; ++l) {
          if (j >= i) rows[l] = add(rows[l], load(mask_.data() + (j + l - i) * lanes));
          most = Eigen::internal::pmax(most, rows[l]);
          store(w + (j + l) * lanes, rows[l]);
        }
      }
      packet sum = all(0);
      for (index j = 0; j < i + lanes; ++j) {
        packet p = Eigen::internal::pexp(multiply(subtract(load(w + j * lanes), most), factor));
        if (j >= i)  // exactly 0 where masked: subnormal numbers are slow
          p = multiply(p, fused(load(mask_.data() + (j - i) * lanes), all(0x1p-100f), all(1)));
        store(w + j * lanes, p);
        sum = add(sum, p);
      }
      const packet part = Eigen::internal::pdiv(all(1), sum);
      for (index j = 0; j < i + lanes; ++j)
        store(w + j * lanes, multiply(load(w + j * lanes), part));
      for (index c = 0; c < s_.key; c += block) {
        packet sums[block];
        for (auto& s : sums) s = all(0);
        combine(v + c * stride_, stride_, w, i + lanes, sums);
        for (index l = 0; l < block; ++l) store(out + (c + l) * stride_ + i, sums[l]);
      }
    }
  }

  void attend_backward(layer_values& v) {
    for (index b = 0; b < sequences_; ++b)
      for (index h = 0; h < s_.heads; ++h) {
        const index at = h * s_.key * stride_ + b * s_.context, next = heads_ * stride_;
        const float* q = v.qkv.data() + at;
        float* dq = dqkv_.data() + at;
        const float* weights = v.weights.data() + (b * s_.heads + h) * tile(s_.context);
        const float* dout = dattended_.data() + at;
        queries_backward(q + next, q + 2 * next, weights, v.attended.data() + at, dout, dq);
        keys_backward(scores_.data(), q, dq + next);
        keys_backward(weights, dout, dq + 2 * next);
      }
  }
  /// Computes the gradients with respect to the scores and to the queries.
  void queries_backward(const float* k, const float* v, const float* weights, const float* out,
                        const float* dout, float* dq) {
    const packet factor = all(scale());
    for (index i = 0; i < s_.context; i += lanes) {
      const float* w = weights + tile(i);
      float* ds = scores_.data() + tile(i);
      packet dot = all(0);
      for (index c = 0; c < s_.key; ++c)
        dot = fused(load(out + c * stride_ + i), load(dout + c * stride_ + i), dot);
      for (index j = 0; j < i + lanes; j += block) {
        packet rows[block];
        outer(v + j, dout + i, rows);
        for (index l = 0; l < block; ++l)
          store(ds + (j + l) * lanes,
                multiply(multiply(factor, load(w + (j + l) * lanes)), subtract(rows[l], dot)));
      }
      for (index c = 0; c < s_.key; c += block) {
        packet sums[block];
        for (auto& s : sums) s = all(0);
        combine(k + c * stride_, stride_, ds, i + lanes, sums);
        for (index l = 0; l < block; ++l) store(dq + (c + l) * stride_ + i, sums[l]);
      }
    }
  }
  /// Sets out[c][j] to the sum over queries i of tiles[j][i] factors[c][i]; transposes the tiles in
  /// packets.
  void keys_backward(const float* tiles, const float* factors, float* out) const {
    for (index j = 0; j < s_.context; j += lanes) {
      for (index c = 0; c < s_.key; c += block)
        for (index l = 0; l < block; ++l) store(out + (c + l) * stride_ + j, all(0));
      for (index i = j; i < s_.context; i += lanes) {
        alignas(64) float turned[lanes * lanes];
        for (index l = 0; l < lanes; ++l)
          store(turned + l * lanes, load(tiles + tile(i) + (j + l) * lanes));
        Eigen::Map<Eigen::Matrix<float, lanes, lanes>, Eigen::Aligned64>(turned).transposeInPlace();
        for (index c = 0; c < s_.key; c += block) {
          packet sums[block];
          for (index l = 0; l < block; ++l) sums[l] = load(out + (c + l) * stride_ + j);
          combine(factors + c * stride_ + i, stride_, turned, lanes, sums);
          for (index l = 0; l < block; ++l) store(out + (c + l) * stride_ + j, sums[l]);
        }
      }
    }
  }

  // ---- Backward ----------------------------------------------------------------------------

  void backward(const std::int32_t* tokens) {
    const index d = width(), f = s_.hidden, n = 3 * heads_;
    auto dx = rows_of(dx_, d), dy = rows_of(dy_, d), dhidden = rows_of(dhidden_, f);
    auto dlogits = columns_of(logits_, s_.vocabulary);
    auto dattended = columns_of(dattended_, heads_), dqkv = columns_of(dqkv_, n);
    gradient(head_, d, s_.vocabulary).noalias() += rows_of(final_.out, d).transpose() * dlogits;
    dy.noalias() = dlogits * parameter_matrix(head_, d, s_.vocabulary).transpose();
    lap(time_.product);
    std::fill(dx_.data(), dx_.data() + rows_ * d, 0.0f);
    norm_backward(final_, scale_, bias_, layers_.empty() ? -1 : layers_.back().down_bias);
    lap(time_.norm);
    for (std::size_t l = layers_.size(); l-- > 0;) {
      const layer_tensors& t = layers_[l];
      layer_values& v = values_[l];
      gradient(t.down, f, d).noalias() += rows_of(v.hidden, f).transpose() * dx;
      dhidden.noalias() = dx * parameter_matrix(t.down, f, d).transpose();
      lap(time_.product);
      gelu_backward(v, grads_.data() + t.up_bias);
      lap(time_.gelu);
      gradient(t.up, d, f).noalias() += rows_of(v.norm2.out, d).transpose() * dhidden;
      dy.noalias() = dhidden * parameter_matrix(t.up, d, f).transpose();
      lap(time_.product);
      norm_backward(v.norm2, t.scale2, t.bias2, -1);
      lap(time_.norm);
      gradient(t.out, heads_, d).noalias() += columns_of(v.attended, heads_).transpose() * dx;
      dattended.noalias() = dx * parameter_matrix(t.out, heads_, d).transpose();
      lap(time_.product);
      attend_backward(v);
      lap(time_.attention);
      gradient(t.qkv, d, n).noalias() += rows_of(v.norm1.out, d).transpose() * dqkv;
      dy.noalias() = dqkv * parameter_matrix(t.qkv, d, n).transpose();
      lap(time_.product);
      norm_backward(v.norm1, t.scale1, t.bias1, l > 0 ? layers_[l - 1].down_bias : -1);
      lap(time_.norm);
    }
    embed_backward(tokens);
    lap(time_.embed);
  }

  /// Adds to dx the gradient with respect to a norm's operand, where dy is the gradient with
  /// respect to its result. Adds the sums of dx's columns to the gradient `total_at` unless that is
  /// -1.
  void norm_backward(const normed& n, index scale_at, index bias_at, index total_at) {
    const index d = width();
    const float* scale = params_.data() + scale_at;
    float *dscale = grads_.data() + scale_at, *dbias = grads_.data() + bias_at;
    float* total = total_at < 0 ? nullptr : grads_.data() + total_at;
    const float part = 1 / static_cast<float>(d);
    for (index r = 0; r < rows_; ++r) {
      const float *unit = n.unit.data() + r * d, *dy = dy_.data() + r * d;
      float* dx = dx_.data() + r * d;
      packet sum = all(0), product = all(0);
      for (index i = 0; i < d; i += lanes) {
        const packet by = load(dy + i), u = load(unit + i), g = multiply(by, load(scale + i));
        sum = add(sum, g);
        product = fused(g, u, product);
        store(dscale + i, fused(by, u, load(dscale + i)));
        store(dbias + i, add(load(dbias + i), by));
      }
      const packet inverse = all(n.inverse.data()[r]);
      const packet mean = all(sum_of(sum) * part), along = all(sum_of(product) * part);
      for (index i = 0; i < d; i += lanes) {
        const packet g = multiply(load(dy + i), load(scale + i));
        const packet rest = subtract(subtract(g, mean), multiply(load(unit + i), along));
        const packet sum_here = fused(rest, inverse, load(dx + i));
        store(dx + i, sum_here);
        if (total != nullptr) store(total + i, add(load(total + i), sum_here));
      }
    }
  }

  /// Multiplies dhidden by GELU' and adds the sums of its columns to dbias.
  void gelu_backward(const layer_values& v, float* dbias) {
    const index f = s_.hidden;
    for (index r = 0; r < rows_; ++r) {
      float* dh = dhidden_.data() + r * f;
      const float* derived = v.derived.data() + r * f;
      for (index i = 0; i < f; i += lanes) {
        const packet p = multiply(load(dh + i), load(derived + i));
        store(dh + i, p);
        store(dbias + i, add(load(dbias + i), p));
      }
    }
  }

  void embed_backward(const std::int32_t* tokens) {
    const index d = width();
    float *token = grads_.data() + token_, *position = grads_.data() + position_;
    for (index r = 0; r < rows_; ++r) {
      const float* dx = dx_.data() + r * d;
      float *a = token + tokens[r] * d, *b = position + r % s_.context * d;
      for (index i = 0; i < d; i += lanes) {
        const packet p = load(dx + i);
        store(a + i, add(load(a + i), p));
        store(b + i, add(load(b + i), p));
      }
    }
  }

  /// Sums this rank's shard of the gradients over the ranks and applies Adam to this shard.
  void update() {
    ++steps_;
    const double n = static_cast<double>(steps_);
    const packet first =
        all(static_cast<float>(adam_.rate / -std::expm1(n * std::log(adam_.beta1))));
    const packet second = all(static_cast<float>(1 / -std::expm1(n * std::log(adam_.beta2))));
    const packet b1 = all(static_cast<float>(adam_.beta1)),
                 c1 = all(static_cast<float>(1 - adam_.beta1)),
                 b2 = all(static_cast<float>(adam_.beta2)),
                 c2 = all(static_cast<float>(1 - adam_.beta2)),
                 epsilon = all(static_cast<float>(adam_.epsilon));
    float* p = params_.data() + rank_ * part_;
    for (index i = 0; i < part_; i += lanes) {
      packet g = load(received_.data() + i);
      for (index r = 1; r < ranks_; ++r) g = add(g, load(received_.data() + r * part_ + i));
      const packet m = fused(load(m_.data() + i), b1, multiply(g, c1));
      const packet v = fused(load(v_.data() + i), b2, multiply(multiply(g, g), c2));
      store(m_.data() + i, m);
      store(v_.data() + i, v);
      const packet root = Eigen::internal::psqrt(multiply(v, second));
      store(p + i,
            subtract(load(p + i), Eigen::internal::pdiv(multiply(m, first), add(root, epsilon))));
    }
  }

  transformer::sizes s_;
  partita::adam_options adam_;
  MPI_Comm world_;
  index sequences_;  ///< rows of the batch per pass
  int rank_ = 0, ranks_ = 1;
  index rows_ = 0, stride_ = 0, heads_ = 0, part_ = 0;
  index token_ = 0, position_ = 0, scale_ = 0, bias_ = 0, head_ = 0;
  std::vector<index> offsets_, sizes_;
  std::vector<layer_tensors> layers_;
  std::vector<layer_values> values_;
  normed final_;
  float_buffer params_, grads_, received_, m_, v_;
  float_buffer x_, dx_, dy_, logits_, dhidden_, dattended_, dqkv_, scores_, mask_;
  std::int64_t steps_ = 0, bytes_ = 0;
  profile time_;
  double clock_ = 0;
};

}  // namespace bench
