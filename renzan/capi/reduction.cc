#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "renzan/base/counted.h"
#include "renzan/base/error.h"
#include "renzan/base/xxhash.h"
#include "renzan/capi/comm.h"
#include "renzan/capi/guard.h"
#include "renzan/comm/streaming_tree.h"
#include "renzan/comm/virtual_workers.h"
#include "renzan/tensor/float_codec.h"

namespace renzan::capi {
namespace {

FloatType WireOf(renzan_dtype wire) {
  if (wire == RENZAN_FLOAT16) return FloatType::kFloat16;
  return wire == RENZAN_BFLOAT16 ? FloatType::kBFloat16 : FloatType::kFloat32;
}

void CheckVirtualWorkers(int virtual_workers, int world_size) {
  if (virtual_workers < world_size)
    Fail(ErrorCode::kUsage, "{} cannot share {}: use at most as many workers, or more virtual ones",
         Counted(world_size, "worker"), Counted(virtual_workers, "virtual worker"));
}

// Writes values[i] * scale to `to`; returns whether all values are finite.
template <class T>
bool Scale(const std::byte* values, size_t n, T scale, T* to) {
  // Branch-free, so that the compiler vectorizes it.
  int not_finite = 0;
  for (size_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, values + i * sizeof(T), sizeof(T));
    not_finite |= !(std::abs(value) <= std::numeric_limits<T>::max());
    to[i] = value * scale;
  }
  return not_finite == 0;
}

}  // namespace
}  // namespace renzan::capi

using namespace renzan;
using namespace renzan::capi;

struct renzan_reduction {
  // Its phase between two sums.
  enum class Phase { kAdding, kScattering, kGathering };

  renzan_comm* comm;
  size_t count;
  ElementType element;
  std::string name;
  StreamingTree tree;
  TreeReducer reducer;
  Phase phase = Phase::kAdding;
  const std::byte* sum = nullptr;
  std::vector<ArrayPart> added;  // kept to avoid allocating it

  renzan_reduction(renzan_comm* comm, int virtual_workers, size_t count, ElementType element,
                   FloatType wire, const std::string& name)
      : comm(comm),
        count(count),
        element(element),
        name(name),
        tree(VirtualWorkerRange(virtual_workers, comm->communicator->world_size(),
                                comm->communicator->rank()),
             count, element, wire),
        reducer(*comm->communicator, comm->pool, virtual_workers, count,
                ReduceFormat{.element = element, .op = ReduceOp::kSum, .wire = wire}, name) {}

  void Expect(Phase wanted, const char* function) const {
    if (phase != wanted)
      Fail(ErrorCode::kUsage, "{} of {}: called out of order (add, start, continue, finish)",
           function, name);
  }

  void CheckParts(const renzan_part* parts, size_t num_parts) const {
    if (num_parts > 0) NeedsArgument(parts, "parts");
    size_t total = 0;
    for (size_t i = 0; i < num_parts; ++i) {
      total += parts[i].count;
      const ElementType type = ElementOf(parts[i].dtype);
      if (type == element) continue;
      if (element == ElementType::kFloat32 &&
          (type == ElementType::kFloat16 || type == ElementType::kBFloat16))
        continue;
      Fail(ErrorCode::kUsage, "{}: part {} is {}, which is not summed in {}", name, i, Name(type),
           Name(element));
    }
    if (total != count)
      Fail(ErrorCode::kUsage, "{}: the parts have {} elements, the reduction {}", name, total,
           count);
  }

  // Writes a part of the sum, at `values`. Returns whether it is finite.
  bool Write(const std::byte* values, const renzan_part& part, double scale) const {
    if (element == ElementType::kFloat64)
      return Scale(values, part.count, scale, static_cast<double*>(part.data));
    if (part.dtype == RENZAN_FLOAT32)
      return Scale(values, part.count, static_cast<float>(scale), static_cast<float*>(part.data));
    const FloatType type = WireOf(part.dtype);
    constexpr size_t kChunk = 1024;
    float scaled[kChunk];
    bool finite = true;
    for (size_t begin = 0; begin < part.count; begin += kChunk) {
      const size_t n = std::min(kChunk, part.count - begin);
      finite &= Scale(values + begin * sizeof(float), n, static_cast<float>(scale), scaled);
      Encode(type, {scaled, n}, static_cast<std::byte*>(part.data) + EncodedBytes(type, begin));
    }
    return finite;
  }
};

namespace {

template <class Body>
renzan_status OnReduction(renzan_reduction* reduction, const Body& body) {
  return Guard([&] {
    NeedsArgument(reduction, "reduction");
    body(*reduction);
  });
}

}  // namespace

renzan_status renzan_virtual_worker_range(int virtual_workers, int world_size, int rank, int* begin,
                                          int* end) {
  return Guard([&] {
    NeedsArgument(begin, "begin");
    NeedsArgument(end, "end");
    if (world_size < 1 || rank < 0 || rank >= world_size)
      Fail(ErrorCode::kUsage, "there is no worker {} of {}", rank, world_size);
    CheckVirtualWorkers(virtual_workers, world_size);
    const IndexRange range = VirtualWorkerRange(virtual_workers, world_size, rank);
    *begin = range.begin;
    *end = range.end;
  });
}

renzan_status renzan_reduction_create(renzan_comm* comm, int virtual_workers, size_t count,
                                      renzan_dtype dtype, renzan_dtype wire, const char* name,
                                      renzan_reduction** reduction) {
  return Guard([&] {
    NeedsArgument(comm, "comm");
    NeedsArgument(name, "name");
    NeedsArgument(reduction, "reduction");
    if (dtype != RENZAN_FLOAT32 && dtype != RENZAN_FLOAT64)
      Fail(ErrorCode::kUsage, "sums are of float32 or float64, not of {}", Name(ElementOf(dtype)));
    if (wire != dtype &&
        (dtype != RENZAN_FLOAT32 || (wire != RENZAN_FLOAT16 && wire != RENZAN_BFLOAT16)))
      Fail(ErrorCode::kUsage, "{} is sent as it is{}, not as {}", Name(ElementOf(dtype)),
           dtype == RENZAN_FLOAT32 ? ", as float16 or as bfloat16" : "", Name(ElementOf(wire)));
    CheckVirtualWorkers(virtual_workers, comm->communicator->world_size());
    const std::lock_guard lock(comm->mutex);
    comm->Agree({.kind = CallKind::kReduction,
                 .element = static_cast<uint32_t>(dtype),
                 .op = static_cast<uint32_t>(wire),
                 .count = count,
                 .virtual_workers = static_cast<uint64_t>(virtual_workers),
                 .name = Xxh3OfBlock(name, std::strlen(name))});
    *reduction =
        new renzan_reduction(comm, virtual_workers, count, ElementOf(dtype), WireOf(wire), name);
  });
}

void renzan_reduction_destroy(renzan_reduction* reduction) {
  Guard([&] {
    if (reduction == nullptr) return;
    const std::lock_guard lock(reduction->comm->mutex);
    delete reduction;
  });
}

renzan_status renzan_reduction_add(renzan_reduction* reduction, const renzan_part* parts,
                                   size_t num_parts) {
  return OnReduction(reduction, [&](renzan_reduction& r) {
    r.Expect(renzan_reduction::Phase::kAdding, "add");
    if (r.tree.complete())
      Fail(ErrorCode::kUsage, "{}: all virtual workers of this worker have been added already",
           r.name);
    r.CheckParts(parts, num_parts);
    r.added.clear();
    for (size_t i = 0; i < num_parts; ++i)
      r.added.push_back({static_cast<const std::byte*>(parts[i].data), parts[i].count,
                         ElementOf(parts[i].dtype)});
    r.tree.Add(r.added);
  });
}

renzan_status renzan_reduction_start(renzan_reduction* reduction) {
  return OnReduction(reduction, [&](renzan_reduction& r) {
    r.Expect(renzan_reduction::Phase::kAdding, "start");
    if (!r.tree.complete())
      Fail(ErrorCode::kUsage, "{}: a virtual worker of this worker has not been added", r.name);
    const std::lock_guard lock(r.comm->mutex);
    // The sum takes the place of the first block, which has been sent by then.
    const std::span<const std::byte* const> blocks = r.tree.blocks();
    r.sum = r.comm->world_size() == 1 ? blocks.back() : blocks.front();
    r.reducer.StartBlocks(blocks, const_cast<std::byte*>(r.sum));
    r.phase = renzan_reduction::Phase::kScattering;
  });
}

renzan_status renzan_reduction_continue(renzan_reduction* reduction) {
  return OnReduction(reduction, [&](renzan_reduction& r) {
    r.Expect(renzan_reduction::Phase::kScattering, "continue");
    const std::lock_guard lock(r.comm->mutex);
    r.reducer.Continue();
    r.phase = renzan_reduction::Phase::kGathering;
  });
}

renzan_status renzan_reduction_finish(renzan_reduction* reduction, const renzan_part* parts,
                                      size_t num_parts, double scale, int* all_finite) {
  return OnReduction(reduction, [&](renzan_reduction& r) {
    r.Expect(renzan_reduction::Phase::kGathering, "finish");
    r.CheckParts(parts, num_parts);
    for (size_t i = 0; i < num_parts; ++i)
      if (parts[i].count > 0) NeedsArgument(parts[i].data, "parts[i].data");
    {
      const std::lock_guard lock(r.comm->mutex);
      r.reducer.Finish();
    }
    bool finite = true;
    const std::byte* values = r.sum;
    for (size_t i = 0; i < num_parts; ++i) {
      finite &= r.Write(values, parts[i], scale);
      values += parts[i].count * BytesOf(r.element);
    }
    if (all_finite != nullptr) *all_finite = finite ? 1 : 0;
    r.tree.Clear();
    r.phase = renzan_reduction::Phase::kAdding;
  });
}

renzan_status renzan_reduction_reset(renzan_reduction* reduction) {
  return OnReduction(reduction, [&](renzan_reduction& r) {
    r.Expect(renzan_reduction::Phase::kAdding, "reset");
    r.tree.Clear();
  });
}

size_t renzan_reduction_num_arrays(const renzan_reduction* reduction) {
  return reduction == nullptr ? 0 : reduction->tree.num_arrays();
}
