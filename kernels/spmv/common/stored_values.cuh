#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <kernels/cuda_vector.cuh>
#include <kernels/spmv/common/common_values.hpp>

/// Values of a whole matrix in the type that takes the fewest bytes; products and sums are of T all the same.
namespace rmsp::kernels {

/// In place of the type that values are stored as, where a constant stands for all of them.
struct NoValues {};

/// An operator's copy of the values.
template <class T>
class CopiedValues {
public:
    /// Finds out how the shard's values can be stored, makes room for `entries` of them, and lets fill(V*) queue their
    /// copies, unless a constant stands for all. Waits for the stream; where there is no room everything is as it was.
    template <class F>
    void renew(const CsrShard<T>& shard, std::int64_t entries, const Context& context, F&& fill)
    {
        renew(common_values(shard, context), entries, context, fill);
    }

    /// renew() where it is known how values can be stored; does not wait.
    template <class F>
    void renew(const CommonValues<T>& common, std::int64_t entries, const Context& context, F&& fill)
    {
        visit(common, [&]<class V>(V) {
            if constexpr (std::is_same_v<V, NoValues>) {
                values_ = {};
            } else {
                const std::size_t bytes = static_cast<std::size_t>(entries) * sizeof(V);
                if (values_.size() != bytes) {
                    values_ = DeviceArray<std::byte>(*context.memory, bytes);
                }
                fill(reinterpret_cast<V*>(values_.data()));
            }
        });
        common_ = common;
    }

    /// Calls f with a value of the type that they are stored as.
    template <class F>
    void visit(F&& f) const
    {
        visit(common_, f);
    }

    const void* data() const { return values_.data(); }
    T constant() const { return common_.first; }
    std::int64_t bytes() const { return static_cast<std::int64_t>(values_.size()); }

private:
    template <class F>
    static void visit(const CommonValues<T>& common, F&& f)
    {
        if (common.constant) {
            f(NoValues{});
        } else if (common.floats) {
            f(float{});
        } else {
            f(T{});
        }
    }

    CommonValues<T> common_;
    DeviceArray<std::byte> values_;
};

/// The values of one tile that a lane has: `n` consecutive ones of 32 n, in vectors of 16 bytes, the first of each
/// lane, then the second of each.
template <class V, int n>
struct LaneValues {
    V stored[n];

    static constexpr int width = cuda::Vector<V>::width;
    using Vector = typename cuda::Vector<V>::type;

    __device__ __forceinline__ void load(const void* values, std::int64_t tile, int lane)
    {
        const auto* from = reinterpret_cast<const Vector*>(static_cast<const V*>(values) + tile * (32 * n)) + lane;
#pragma unroll
        for (int v = 0; v < n / width; ++v) {
            cuda::unpack(__ldcs(from + 32 * v), stored + width * v);
        }
    }
    __device__ __forceinline__ void store(V* values, std::int64_t tile, int lane) const
    {
        auto* to = reinterpret_cast<Vector*>(values + tile * (32 * n)) + lane;
#pragma unroll
        for (int v = 0; v < n / width; ++v) {
            to[32 * v] = cuda::pack(stored + width * v);
        }
    }
    template <class T>
    __device__ __forceinline__ T get(int k, T /*constant*/) const
    {
        return static_cast<T>(stored[k]);
    }
};

template <int n>
struct LaneValues<NoValues, n> {
    __device__ __forceinline__ void load(const void* /*values*/, std::int64_t /*tile*/, int /*lane*/) {}
    template <class T>
    __device__ __forceinline__ T get(int /*k*/, T constant) const
    {
        return constant;
    }
};

}  // namespace rmsp::kernels
