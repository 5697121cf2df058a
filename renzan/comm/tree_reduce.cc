#include "renzan/comm/tree_reduce.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/comm/virtual_workers.h"

namespace renzan {
namespace {

// The number of values that a thread reduces through the whole tree at a time: a few arrays of this
// length fit into the L1 cache.
constexpr size_t kChunk = 2048;

// Slices are aligned to cache lines.
constexpr size_t kSliceAlignment = 16;

// An aligned subtree: leaves [begin, begin + size), size a power of two that divides begin.
struct Block {
  int begin, size;
};

// The largest aligned subtrees that make up [range.begin, range.end).
std::vector<Block> MaximalBlocks(IndexRange range) {
  std::vector<Block> blocks;
  for (int begin = range.begin; begin < range.end;) {
    int size = 1;
    while (begin % (2 * size) == 0 && begin + 2 * size <= range.end) size *= 2;
    blocks.push_back({begin, size});
    begin += size;
  }
  return blocks;
}

// The additions that reduce consecutive blocks to their common root: node[to] += node[from] in this
// order; the root is node[0].
std::vector<std::pair<size_t, size_t>> TreeAdditions(const std::vector<Block>& blocks) {
  std::vector<std::pair<size_t, size_t>> additions;
  std::vector<std::pair<Block, size_t>> stack;
  for (size_t i = 0; i < blocks.size(); ++i) {
    stack.emplace_back(blocks[i], i);
    while (stack.size() > 1) {
      auto& [left, left_index] = stack[stack.size() - 2];
      const auto& [right, right_index] = stack.back();
      if (left.size != right.size || left.begin % (2 * left.size) != 0) break;
      additions.emplace_back(left_index, right_index);
      left.size *= 2;
      stack.pop_back();
    }
  }
  return additions;
}

struct Range {
  size_t begin, end;
  size_t size() const { return end - begin; }
};

struct Chunk {
  size_t slice;  // index of its slice
  Range range;
};

}  // namespace

struct TreeReducer::State {
  Communicator& communicator;
  ThreadPool& pool;
  const size_t length;
  const FloatType wire;
  const std::string reduction, gathering;  // the operations' names
  const size_t rank, world_size;

  std::vector<std::vector<Block>> blocks;  // per worker
  size_t total_blocks = 0;
  IndexRange own_leaves;
  std::vector<std::pair<size_t, size_t>> additions;  // over all workers' blocks
  std::vector<Range> slices;                         // per worker
  std::vector<Chunk> chunks;                         // of the whole array
  std::vector<Chunk> own_chunks;                     // of this worker's slice

  // [world_size][block][slice], as sent on the wire. In float32 a single block is sent in place,
  // and values are added in the receive buffer.
  bool send_in_place = false;
  std::vector<std::vector<std::byte>> send, received;
  std::vector<std::byte> gather_send;
  std::vector<std::vector<std::byte>> gathered;
  std::vector<std::vector<float>> scratch;           // per thread: [total_blocks][kChunk]
  std::vector<std::vector<std::span<float>>> nodes;  // per thread: of a chunk, per block
  // The parts of an exchange, per worker.
  std::vector<std::span<const std::byte>> from;
  std::vector<std::span<std::byte>> to;
  std::span<float> sum;  // of the current reduction
  Exchange exchange;     // last, so that it ends before the buffers do

  State(Communicator& communicator, ThreadPool& pool, int num_virtual_workers, size_t length,
        FloatType wire, const std::string& what);

  size_t Bytes(size_t n) const { return EncodedBytes(wire, n); }
  bool exact() const { return wire == FloatType::kFloat32; }

  // Reduces this worker's own leaves in [chunk) to its blocks; a block's sum is stored in its first
  // leaf.
  void ReduceOwn(std::span<const std::span<float>> leaves, Range range) const;
  void EncodeOwn(std::span<const std::span<float>> leaves, const Chunk& chunk);
  void CombineChunk(Range range, int thread);

  void PostSlices(std::span<const std::span<float>> leaves);
  void PostSum();
  void DecodeSum();

  template <class Body>
  void ForEachChunk(const std::vector<Chunk>& list, const Body& body) {
    pool.ParallelRanges(list.size(), [&](int thread, size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) body(thread, list[i]);
    });
  }
};

TreeReducer::State::State(Communicator& communicator, ThreadPool& pool, int num_virtual_workers,
                          size_t length, FloatType wire, const std::string& what)
    : communicator(communicator),
      pool(pool),
      length(length),
      wire(wire),
      reduction("reduction of " + what),
      gathering("sum of " + what),
      rank(static_cast<size_t>(communicator.rank())),
      world_size(static_cast<size_t>(communicator.world_size())),
      exchange(communicator) {
  CHECK(num_virtual_workers >= 1 && (num_virtual_workers & (num_virtual_workers - 1)) == 0);
  std::vector<Block> all;
  for (int r = 0; r < communicator.world_size(); ++r) {
    blocks.push_back(
        MaximalBlocks(VirtualWorkerRange(num_virtual_workers, communicator.world_size(), r)));
    all.insert(all.end(), blocks.back().begin(), blocks.back().end());
  }
  own_leaves =
      VirtualWorkerRange(num_virtual_workers, communicator.world_size(), communicator.rank());
  total_blocks = all.size();
  additions = TreeAdditions(all);

  const size_t groups = (length + kSliceAlignment - 1) / kSliceAlignment;
  for (size_t p = 0; p < world_size; ++p) {
    const auto bound = [&](size_t i) {
      return std::min(length, groups * i / world_size * kSliceAlignment);
    };
    slices.push_back({bound(p), bound(p + 1)});
    for (size_t begin = slices[p].begin; begin < slices[p].end; begin += kChunk)
      chunks.push_back({p, {begin, std::min(begin + kChunk, slices[p].end)}});
  }
  for (const Chunk& chunk : chunks)
    if (chunk.slice == rank) own_chunks.push_back(chunk);
  if (world_size == 1) return;
  from.resize(world_size);
  to.resize(world_size);
  nodes.resize(static_cast<size_t>(pool.num_threads()));
  for (std::vector<std::span<float>>& of_thread : nodes) of_thread.reserve(total_blocks);

  const size_t own_blocks = blocks[rank].size();
  send_in_place = exact() && own_blocks == 1;
  for (size_t p = 0; p < world_size; ++p) {
    send.emplace_back(send_in_place ? 0 : Bytes(own_blocks * slices[p].size()));
    received.emplace_back(Bytes(blocks[p].size() * slices[rank].size()));
    gathered.emplace_back(exact() ? 0 : Bytes(slices[p].size()));
  }
  if (exact()) return;
  gather_send.resize(Bytes(slices[rank].size()));
  scratch.assign(static_cast<size_t>(pool.num_threads()),
                 std::vector<float>(total_blocks * kChunk));
}

void TreeReducer::State::ReduceOwn(std::span<const std::span<float>> leaves, Range range) const {
  const auto part = [&](int leaf) {
    return leaves[static_cast<size_t>(leaf - own_leaves.begin)].subspan(range.begin, range.size());
  };
  for (const Block& block : blocks[rank]) {
    const int end = block.begin + block.size;
    for (int leaf = block.begin; leaf < end; ++leaf) RoundTrip(wire, part(leaf));
    for (int stride = 1; stride < block.size; stride *= 2)
      for (int leaf = block.begin; leaf < end; leaf += 2 * stride)
        AddRoundTrip(wire, part(leaf), part(leaf + stride));
  }
}

void TreeReducer::State::EncodeOwn(std::span<const std::span<float>> leaves, const Chunk& chunk) {
  const Range slice = slices[chunk.slice];
  for (size_t i = 0; i < blocks[rank].size(); ++i) {
    const auto leaf = static_cast<size_t>(blocks[rank][i].begin - own_leaves.begin);
    Encode(wire, leaves[leaf].subspan(chunk.range.begin, chunk.range.size()),
           send[chunk.slice].data() + Bytes(i * slice.size() + chunk.range.begin - slice.begin));
  }
}

void TreeReducer::State::PostSlices(std::span<const std::span<float>> leaves) {
  for (size_t p = 0; p < world_size; ++p) {
    from[p] = send[p];
    if (send_in_place)
      from[p] = std::as_bytes(std::span(leaves[0]).subspan(slices[p].begin, slices[p].size()));
    to[p] = received[p];
  }
  exchange.Post(reduction.c_str(), from, to);
}

void TreeReducer::State::CombineChunk(Range range, int thread) {
  const size_t slice_size = slices[rank].size();
  const size_t offset = range.begin - slices[rank].begin;
  std::vector<std::span<float>>& node = nodes[static_cast<size_t>(thread)];
  node.clear();
  for (size_t p = 0; p < world_size; ++p) {
    for (size_t i = 0; i < blocks[p].size(); ++i) {
      std::byte* bytes = received[p].data() + Bytes(i * slice_size + offset);
      if (exact()) {
        node.emplace_back(reinterpret_cast<float*>(bytes), range.size());
      } else {
        float* decoded = scratch[static_cast<size_t>(thread)].data() + node.size() * kChunk;
        node.emplace_back(decoded, range.size());
        Decode(wire, bytes, node.back());
      }
    }
  }
  for (const auto& [sum, term] : additions) AddRoundTrip(wire, node[sum], node[term]);
  if (!exact()) Encode(wire, node[0], gather_send.data() + Bytes(offset));
}

void TreeReducer::State::PostSum() {
  // In float32 the slice's sum is where the first block of the first worker was received.
  const std::span<const std::byte> own =
      exact() ? std::span(received[0]).first(Bytes(slices[rank].size())) : std::span(gather_send);
  for (size_t p = 0; p < world_size; ++p) {
    from[p] = own;
    to[p] = exact() ? std::as_writable_bytes(sum.subspan(slices[p].begin, slices[p].size()))
                    : std::span(gathered[p]);
  }
  exchange.Post(gathering.c_str(), from, to);
}

void TreeReducer::State::DecodeSum() {
  ForEachChunk(chunks, [&](int, const Chunk& chunk) {
    const size_t offset = chunk.range.begin - slices[chunk.slice].begin;
    Decode(wire, gathered[chunk.slice].data() + Bytes(offset),
           sum.subspan(chunk.range.begin, chunk.range.size()));
  });
}

TreeReducer::TreeReducer(Communicator& communicator, ThreadPool& pool, int num_virtual_workers,
                         size_t length, FloatType wire, const std::string& what)
    : state_(std::make_unique<State>(communicator, pool, num_virtual_workers, length, wire, what)) {
}

TreeReducer::~TreeReducer() = default;

void TreeReducer::Start(std::span<const std::span<float>> leaves, std::span<float> sum) {
  State& s = *state_;
  CHECK(leaves.size() == static_cast<size_t>(s.own_leaves.size()));
  CHECK(sum.size() == s.length);
  for (const std::span<float> leaf : leaves) CHECK(leaf.size() == s.length);
  s.sum = sum;
  s.ForEachChunk(s.chunks, [&](int, const Chunk& chunk) {
    s.ReduceOwn(leaves, chunk.range);
    if (s.world_size == 1) {
      const std::span<float> root = leaves[0].subspan(chunk.range.begin, chunk.range.size());
      std::memcpy(sum.data() + chunk.range.begin, root.data(), root.size_bytes());
    } else if (!s.send_in_place) {
      s.EncodeOwn(leaves, chunk);
    }
  });
  if (s.world_size > 1) s.PostSlices(leaves);
}

void TreeReducer::Continue() {
  State& s = *state_;
  if (s.world_size == 1) return;
  s.exchange.Wait();
  s.ForEachChunk(s.own_chunks,
                 [&](int thread, const Chunk& chunk) { s.CombineChunk(chunk.range, thread); });
  s.PostSum();
}

void TreeReducer::Finish() {
  State& s = *state_;
  if (s.world_size == 1) return;
  s.exchange.Wait();
  if (!s.exact()) s.DecodeSum();
}

}  // namespace renzan
