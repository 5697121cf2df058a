#include "renzan/comm/tree_reduce.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "renzan/base/error.h"
#include "renzan/comm/tree_blocks.h"
#include "renzan/comm/virtual_workers.h"

namespace renzan {
namespace {

// The number of values that a thread reduces through the whole tree at a time: a few arrays of this
// length fit into the L1 cache.
constexpr size_t kChunk = 2048;

// Arrays of at most this many bytes are sent to all workers whole, and each adds all of them: one
// exchange instead of two. Between two workers this sends no more bytes than two exchanges would.
constexpr size_t kSmallBytes = size_t{16} << 10, kSmallBytesOfTwo = size_t{64} << 10;

// Slices are aligned to cache lines.
constexpr size_t kSliceAlignment = 16;

struct Range {
  size_t begin, end;
  size_t size() const { return end - begin; }
};

bool IsFloat32Sum(const ReduceFormat& format) {
  return format.element == ElementType::kFloat32 && format.op == ReduceOp::kSum;
}

struct Chunk {
  size_t slice;  // index of the slice it is in
  Range range;
};

}  // namespace

struct TreeReducer::State {
  Communicator& communicator;
  ThreadPool& pool;
  const size_t length;
  const ReduceFormat format;
  const size_t element_bytes;
  const CombineFunction combine;           // used without a codec
  const std::string reduction, gathering;  // the operations' names
  const size_t rank, world_size;

  std::vector<std::vector<TreeBlock>> blocks;  // per worker
  size_t total_blocks = 0;
  IndexRange own_leaves;
  std::vector<std::pair<size_t, size_t>> additions;  // over all workers' blocks
  std::vector<Range> slices;                         // per worker
  std::vector<Chunk> chunks;                         // of the whole array
  std::vector<Chunk> own_chunks;                     // of this worker's slice

  // [world_size][block][slice], as sent on the wire. Without a codec, blocks are sent in place,
  // each in an exchange of its own; so is the only block of a small array. Nothing is sent to this
  // worker itself: with a codec, its part is read from `send`.
  bool send_in_place = false;
  size_t most_blocks = 0;     // of any worker
  bool one_exchange = false;  // each worker's slice is the whole array
  std::vector<std::vector<std::byte>> send, received;
  std::vector<std::byte> gather_send;
  std::vector<std::vector<std::byte>> gathered;
  // Per thread: copies of a chunk's blocks that cannot be added to in place. With a codec these are
  // all blocks, decoded; otherwise only this worker's own.
  std::vector<std::vector<std::byte>> scratch;
  std::vector<std::vector<std::byte*>> nodes;  // per thread: of a chunk, one per block
  // The parts of an exchange, per worker.
  std::vector<std::span<const std::byte>> from;
  std::vector<std::span<std::byte>> to;
  // Of the current reduction.
  std::vector<const std::byte*> own_blocks;
  std::byte* sum = nullptr;
  std::deque<Exchange> exchanges;  // last, so that they end before the buffers do

  State(Communicator& communicator, ThreadPool& pool, int num_virtual_workers, size_t length,
        const ReduceFormat& format, const std::string& what);

  bool exact() const { return format.wire == FloatType::kFloat32; }
  // On the wire.
  size_t Bytes(size_t n) const {
    return exact() ? n * element_bytes : EncodedBytes(format.wire, n);
  }
  // Without a codec, node[sum] and node[term] hold elements; with one, float32.
  void Add(std::byte* sum, const std::byte* term, size_t n) const;

  // Reduces this worker's own leaves in [chunk) to its blocks; a block's sum is stored in its first
  // leaf.
  void ReduceOwn(std::span<const std::span<float>> leaves, Range range) const;
  // The sum when there is only one worker.
  void CombineOwn(Range range) const;
  void EncodeOwn(const Chunk& chunk);
  // Of this worker's slice: adds all workers' blocks in tree order.
  void CombineChunk(Range range, int thread);
  // Block i of worker p in this worker's slice from `offset` on, in a place where it can be added
  // to; `n` elements of `scratch` are available for it.
  std::byte* NodeOf(size_t p, size_t i, size_t offset, size_t n, std::byte* scratch);

  void PostSlices();
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
                          size_t length, const ReduceFormat& format, const std::string& what)
    : communicator(communicator),
      pool(pool),
      length(length),
      format(format),
      element_bytes(BytesOf(format.element)),
      combine(Combine(format.element, format.op)),
      reduction("reduction of " + what),
      gathering("sum of " + what),
      rank(static_cast<size_t>(communicator.rank())),
      world_size(static_cast<size_t>(communicator.world_size())) {
  CHECK(num_virtual_workers >= 1 && combine != nullptr);
  CHECK(exact() || IsFloat32Sum(format));
  std::vector<TreeBlock> all;
  for (int r = 0; r < communicator.world_size(); ++r) {
    blocks.push_back(
        MaximalBlocks(VirtualWorkerRange(num_virtual_workers, communicator.world_size(), r)));
    all.insert(all.end(), blocks.back().begin(), blocks.back().end());
    most_blocks = std::max(most_blocks, blocks.back().size());
  }
  own_leaves =
      VirtualWorkerRange(num_virtual_workers, communicator.world_size(), communicator.rank());
  own_blocks.resize(blocks[rank].size());
  total_blocks = all.size();
  additions = TreeAdditions(all);

  one_exchange = world_size > 1 &&
                 length * element_bytes <= (world_size == 2 ? kSmallBytesOfTwo : kSmallBytes);
  const size_t groups = (length + kSliceAlignment - 1) / kSliceAlignment;
  for (size_t p = 0; p < world_size; ++p) {
    const auto bound = [&](size_t i) {
      return std::min(length, groups * i / world_size * kSliceAlignment);
    };
    slices.push_back(one_exchange ? Range{0, length} : Range{bound(p), bound(p + 1)});
    if (one_exchange && p != rank) continue;
    for (size_t begin = slices[p].begin; begin < slices[p].end; begin += kChunk)
      chunks.push_back({p, {begin, std::min(begin + kChunk, slices[p].end)}});
  }
  for (const Chunk& chunk : chunks)
    if (chunk.slice == rank) own_chunks.push_back(chunk);
  nodes.resize(static_cast<size_t>(pool.num_threads()));
  for (std::vector<std::byte*>& of_thread : nodes) of_thread.reserve(total_blocks);
  if (world_size == 1) return;
  from.resize(world_size);
  to.resize(world_size);

  send_in_place = exact() && (!one_exchange || own_blocks.size() == 1);
  const size_t num_exchanges = exact() && !one_exchange ? most_blocks : 1;
  for (size_t i = 0; i < num_exchanges; ++i) exchanges.emplace_back(communicator);
  for (size_t p = 0; p < world_size; ++p) {
    const bool sends = !send_in_place && (!one_exchange || p == rank);
    send.emplace_back(sends ? Bytes(own_blocks.size() * slices[p].size()) : 0);
    received.emplace_back(p == rank ? 0 : Bytes(blocks[p].size() * slices[rank].size()));
    gathered.emplace_back(exact() || one_exchange || p == rank ? 0 : Bytes(slices[p].size()));
  }
  const size_t nodes_in_scratch = exact() ? own_blocks.size() : total_blocks;
  scratch.assign(static_cast<size_t>(pool.num_threads()),
                 std::vector<std::byte>(nodes_in_scratch * kChunk * element_bytes));
  if (!exact() && !one_exchange) gather_send.resize(Bytes(slices[rank].size()));
}

void TreeReducer::State::Add(std::byte* sum, const std::byte* term, size_t n) const {
  if (!IsFloat32Sum(format)) return combine(sum, term, n);
  AddRoundTrip(format.wire, {reinterpret_cast<float*>(sum), n},
               {reinterpret_cast<const float*>(term), n});
}

void TreeReducer::State::ReduceOwn(std::span<const std::span<float>> leaves, Range range) const {
  const auto part = [&](int leaf) {
    return leaves[static_cast<size_t>(leaf - own_leaves.begin)].subspan(range.begin, range.size());
  };
  for (const TreeBlock& block : blocks[rank]) {
    const int end = block.begin + block.size;
    for (int leaf = block.begin; leaf < end; ++leaf) RoundTrip(format.wire, part(leaf));
    for (int stride = 1; stride < block.size; stride *= 2)
      for (int leaf = block.begin; leaf < end; leaf += 2 * stride)
        AddRoundTrip(format.wire, part(leaf), part(leaf + stride));
  }
}

void TreeReducer::State::CombineOwn(Range range) const {
  const size_t offset = range.begin * element_bytes;
  // The blocks decrease in size, so the tree adds them from the right.
  std::byte* const to = sum + offset;
  if (own_blocks.back() + offset != to)
    std::memcpy(to, own_blocks.back() + offset, range.size() * element_bytes);
  for (size_t i = own_blocks.size() - 1; i-- > 0;) Add(to, own_blocks[i] + offset, range.size());
}

void TreeReducer::State::EncodeOwn(const Chunk& chunk) {
  const Range slice = slices[chunk.slice];
  for (size_t i = 0; i < own_blocks.size(); ++i) {
    const std::byte* const values = own_blocks[i] + chunk.range.begin * element_bytes;
    std::byte* const to =
        send[chunk.slice].data() + Bytes(i * slice.size() + chunk.range.begin - slice.begin);
    if (exact())
      std::memcpy(to, values, Bytes(chunk.range.size()));
    else
      Encode(format.wire, {reinterpret_cast<const float*>(values), chunk.range.size()}, to);
  }
}

void TreeReducer::State::PostSlices() {
  for (size_t i = 0; i < exchanges.size(); ++i) {
    for (size_t p = 0; p < world_size; ++p) {
      if (p == rank) continue;
      from[p] = send[one_exchange ? rank : p];
      to[p] = received[p];
      if (send_in_place)
        from[p] = i < own_blocks.size()
                      ? std::span(own_blocks[i] + Bytes(slices[p].begin), Bytes(slices[p].size()))
                      : std::span<const std::byte>();
      if (exchanges.size() > 1) {
        const size_t bytes = i < blocks[p].size() ? Bytes(slices[rank].size()) : 0;
        to[p] = to[p].subspan(bytes * i, bytes);
      }
    }
    exchanges[i].Post(reduction.c_str(), from, to);
  }
}

std::byte* TreeReducer::State::NodeOf(size_t p, size_t i, size_t offset, size_t n,
                                      std::byte* scratch) {
  const Range slice = slices[rank];
  if (!exact()) {
    const std::vector<std::byte>& encoded = p == rank ? send[rank] : received[p];
    Decode(format.wire, encoded.data() + Bytes(i * slice.size() + offset),
           {reinterpret_cast<float*>(scratch), n});
    return scratch;
  }
  if (p != rank) return received[p].data() + Bytes(i * slice.size() + offset);
  // The sum may be the first of the blocks.
  const std::byte* const values = own_blocks[i] + Bytes(slice.begin + offset);
  if (values == sum + Bytes(slice.begin + offset)) return const_cast<std::byte*>(values);
  std::memcpy(scratch, values, Bytes(n));
  return scratch;
}

void TreeReducer::State::CombineChunk(Range range, int thread) {
  const size_t offset = range.begin - slices[rank].begin;
  std::vector<std::byte*>& node = nodes[static_cast<size_t>(thread)];
  std::byte* place = scratch[static_cast<size_t>(thread)].data();
  node.clear();
  for (size_t p = 0; p < world_size; ++p) {
    for (size_t i = 0; i < blocks[p].size(); ++i) {
      node.push_back(NodeOf(p, i, offset, range.size(), place));
      if (node.back() == place) place += kChunk * element_bytes;
    }
  }
  for (const auto& [left, right] : additions) Add(node[left], node[right], range.size());
  std::byte* const to = sum + range.begin * element_bytes;
  if (!exact() && !one_exchange)
    Encode(format.wire, {reinterpret_cast<const float*>(node[0]), range.size()},
           gather_send.data() + Bytes(offset));
  else if (node[0] != to)
    std::memcpy(to, node[0], range.size() * element_bytes);
}

void TreeReducer::State::PostSum() {
  const Range slice = slices[rank];
  const std::span<const std::byte> own =
      exact() ? std::span(sum + Bytes(slice.begin), Bytes(slice.size())) : std::span(gather_send);
  for (size_t p = 0; p < world_size; ++p) {
    if (p == rank) continue;
    from[p] = own;
    to[p] = exact() ? std::span(sum + Bytes(slices[p].begin), Bytes(slices[p].size()))
                    : std::span(gathered[p]);
  }
  exchanges[0].Post(gathering.c_str(), from, to);
}

void TreeReducer::State::DecodeSum() {
  ForEachChunk(chunks, [&](int, const Chunk& chunk) {
    const std::vector<std::byte>& encoded =
        chunk.slice == rank ? gather_send : gathered[chunk.slice];
    Decode(format.wire, encoded.data() + Bytes(chunk.range.begin - slices[chunk.slice].begin),
           {reinterpret_cast<float*>(sum) + chunk.range.begin, chunk.range.size()});
  });
}

TreeReducer::TreeReducer(Communicator& communicator, ThreadPool& pool, int num_virtual_workers,
                         size_t length, const ReduceFormat& format, const std::string& what)
    : state_(
          std::make_unique<State>(communicator, pool, num_virtual_workers, length, format, what)) {}

TreeReducer::~TreeReducer() = default;

int64_t TreeReducer::MemoryFor(int num_virtual_workers, int world_size, int rank, int64_t length,
                               FloatType wire) {
  if (world_size == 1) return 0;
  int64_t own = 0, others = 0;  // blocks
  for (int p = 0; p < world_size; ++p)
    (p == rank ? own : others) +=
        std::ssize(MaximalBlocks(VirtualWorkerRange(num_virtual_workers, world_size, p)));
  const auto bytes = [&](int64_t n) {
    return static_cast<int64_t>(EncodedBytes(wire, static_cast<size_t>(n)));
  };
  const int64_t received = bytes(others * length / world_size);
  return wire == FloatType::kFloat32 ? received : received + bytes((own + 1) * length);
}

void TreeReducer::Start(std::span<const std::span<float>> leaves, std::span<float> sum) {
  State& s = *state_;
  CHECK(IsFloat32Sum(s.format));
  CHECK(leaves.size() == static_cast<size_t>(s.own_leaves.size()));
  CHECK(sum.size() == s.length);
  for (const std::span<float> leaf : leaves) CHECK(leaf.size() == s.length);
  s.sum = reinterpret_cast<std::byte*>(sum.data());
  for (size_t i = 0; i < s.own_blocks.size(); ++i) {
    const int leaf = s.blocks[s.rank][i].begin - s.own_leaves.begin;
    s.own_blocks[i] = reinterpret_cast<const std::byte*>(leaves[static_cast<size_t>(leaf)].data());
  }
  s.ForEachChunk(s.chunks, [&](int, const Chunk& chunk) {
    s.ReduceOwn(leaves, chunk.range);
    if (s.world_size == 1)
      s.CombineOwn(chunk.range);
    else if (!s.send_in_place)
      s.EncodeOwn(chunk);
  });
  if (s.world_size > 1) s.PostSlices();
}

void TreeReducer::StartBlocks(std::span<const std::byte* const> blocks, std::byte* sum) {
  State& s = *state_;
  CHECK(blocks.size() == s.own_blocks.size());
  s.sum = sum;
  s.own_blocks.assign(blocks.begin(), blocks.end());
  if (s.world_size == 1) {
    s.ForEachChunk(s.chunks, [&](int, const Chunk& chunk) { s.CombineOwn(chunk.range); });
    return;
  }
  if (!s.send_in_place)
    s.ForEachChunk(s.chunks, [&](int, const Chunk& chunk) { s.EncodeOwn(chunk); });
  s.PostSlices();
}

void TreeReducer::Continue() {
  State& s = *state_;
  if (s.world_size == 1) return;
  for (Exchange& exchange : s.exchanges) exchange.Wait();
  s.ForEachChunk(s.own_chunks,
                 [&](int thread, const Chunk& chunk) { s.CombineChunk(chunk.range, thread); });
  if (!s.one_exchange) s.PostSum();
}

void TreeReducer::Finish() {
  State& s = *state_;
  if (s.world_size == 1 || s.one_exchange) return;
  s.exchanges[0].Wait();
  if (!s.exact()) s.DecodeSum();
}

}  // namespace renzan
