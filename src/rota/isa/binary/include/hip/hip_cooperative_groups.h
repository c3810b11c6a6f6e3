// rota's small stand-in for HIP's device headers, where no ROCm is installed: groups of threads, up to a workgroup.
//
// A grid's sync() is lacking: it needs a launch that the stand-in knows nothing of.
#ifndef ROTA_HIP_COOPERATIVE_GROUPS_H
#define ROTA_HIP_COOPERATIVE_GROUPS_H

#include "hip_runtime.h"

namespace cooperative_groups {

#define ROTA_OF_GROUP __attribute__((device, always_inline, nodebug))

ROTA_DEVICE unsigned rota_items() { return blockDim.x * blockDim.y * blockDim.z; }
ROTA_DEVICE unsigned rota_item() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

// Any group: a workgroup, a tile of a wave with a power of two of lanes, or the lanes that came here together.
class thread_group {
 public:
  ROTA_OF_GROUP unsigned size() const { return rota_size; }
  ROTA_OF_GROUP unsigned num_threads() const { return rota_size; }
  ROTA_OF_GROUP unsigned thread_rank() const { return rota_rank; }
  ROTA_OF_GROUP bool is_valid() const { return rota_size != 0; }
  ROTA_OF_GROUP void sync() const {
    if (rota_whole)
      __syncthreads();
    else
      rota_wave_barrier();
  }

 protected:
  ROTA_OF_GROUP thread_group(bool whole, unsigned size, unsigned rank)
      : rota_whole(whole), rota_size(size), rota_rank(rank) {}
  bool rota_whole;
  unsigned rota_size, rota_rank;
};

class thread_block : public thread_group {
 public:
  ROTA_OF_GROUP thread_block() : thread_group(true, rota_items(), rota_item()) {}
  ROTA_OF_GROUP static void sync() { __syncthreads(); }
  ROTA_OF_GROUP static unsigned thread_rank() { return rota_item(); }
  ROTA_OF_GROUP static unsigned size() { return rota_items(); }
  ROTA_OF_GROUP static unsigned num_threads() { return rota_items(); }
  ROTA_OF_GROUP static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  ROTA_OF_GROUP static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  ROTA_OF_GROUP static dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
  ROTA_OF_GROUP static dim3 dim_threads() { return group_dim(); }
};
ROTA_DEVICE thread_block this_thread_block() { return thread_block(); }

class grid_group {
 public:
  ROTA_OF_GROUP static unsigned long long thread_rank() {
    unsigned long long block = blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    return block * rota_items() + rota_item();
  }
  ROTA_OF_GROUP static unsigned long long size() {
    return (unsigned long long)gridDim.x * gridDim.y * gridDim.z * rota_items();
  }
  ROTA_OF_GROUP static unsigned long long num_threads() { return size(); }
  ROTA_OF_GROUP static dim3 group_dim() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
};
ROTA_DEVICE grid_group this_grid() { return grid_group(); }

class coalesced_group : public thread_group {
 public:
  ROTA_OF_GROUP explicit coalesced_group(unsigned long long mask)
      : thread_group(false, __popcll(mask), __popcll(mask & __lanemask_lt())), rota_mask(mask) {}
  ROTA_OF_GROUP static void sync() { rota_wave_barrier(); }
  template <typename T>
  ROTA_OF_GROUP T shfl(T value, unsigned rank) const {
    return rota_from_lane(value, rota_lane(rank % rota_size));
  }
  template <typename T>
  ROTA_OF_GROUP T shfl_down(T value, unsigned delta) const {
    return rota_from_lane(value, rota_lane(rota_rank + delta < rota_size ? rota_rank + delta : rota_rank));
  }
  template <typename T>
  ROTA_OF_GROUP T shfl_up(T value, unsigned delta) const {
    return rota_from_lane(value, rota_lane(rota_rank >= delta ? rota_rank - delta : rota_rank));
  }
  ROTA_OF_GROUP int any(int predicate) const { return (__ballot(predicate) & rota_mask) != 0; }
  ROTA_OF_GROUP int all(int predicate) const { return (__ballot(predicate) & rota_mask) == rota_mask; }

 private:
  ROTA_OF_GROUP int rota_lane(unsigned rank) const {  // of the mask's bits, the one with `rank` others below it
    unsigned long long rest = rota_mask;
    for (unsigned k = 0; k < rank; k++) rest &= rest - 1;
    return __ffsll(rest) - 1;
  }
  unsigned long long rota_mask;
};
ROTA_DEVICE coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <unsigned Size, typename Parent = void>
class thread_block_tile : public thread_group {
  static_assert(Size >= 1 && Size <= (unsigned)warpSize && (Size & (Size - 1)) == 0,
                "a tile has a power of two of lanes, at most a wave");

 public:
  ROTA_OF_GROUP thread_block_tile() : thread_group(false, Size, rota_item() % Size) {}
  template <typename Other>
  ROTA_OF_GROUP thread_block_tile(const thread_block_tile<Size, Other> &) : thread_block_tile() {}
  ROTA_OF_GROUP static void sync() { rota_wave_barrier(); }
  ROTA_OF_GROUP static constexpr unsigned size() { return Size; }
  ROTA_OF_GROUP static constexpr unsigned num_threads() { return Size; }
  ROTA_OF_GROUP static unsigned thread_rank() { return rota_item() % Size; }
  ROTA_OF_GROUP static unsigned meta_group_rank() { return rota_item() / Size; }
  ROTA_OF_GROUP static unsigned meta_group_size() { return (rota_items() + Size - 1) / Size; }
  template <typename T>
  ROTA_OF_GROUP T shfl(T value, int rank) const {
    return __shfl(value, rank, Size);
  }
  template <typename T>
  ROTA_OF_GROUP T shfl_up(T value, unsigned delta) const {
    return __shfl_up(value, delta, Size);
  }
  template <typename T>
  ROTA_OF_GROUP T shfl_down(T value, unsigned delta) const {
    return __shfl_down(value, delta, Size);
  }
  template <typename T>
  ROTA_OF_GROUP T shfl_xor(T value, int mask) const {
    return __shfl_xor(value, mask, Size);
  }
  ROTA_OF_GROUP unsigned long long ballot(int predicate) const {
    unsigned first = __lane_id() / Size * Size;
    return __ballot(predicate) >> first & (~0ull >> (64 - Size));
  }
  ROTA_OF_GROUP int any(int predicate) const { return ballot(predicate) != 0; }
  ROTA_OF_GROUP int all(int predicate) const { return ballot(!predicate) == 0; }
};

template <unsigned Size, typename Parent>
ROTA_DEVICE thread_block_tile<Size, Parent> tiled_partition(const Parent &) {
  return thread_block_tile<Size, Parent>();
}

template <typename Group>
ROTA_DEVICE void sync(const Group &group) {
  group.sync();
}

}  // namespace cooperative_groups

#endif
