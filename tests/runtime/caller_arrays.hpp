#pragma once

// Arrays of callers of every kind, for tests: in the memory of a device, counting from 1, in blocks.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "matrices.hpp"
#include "runtime/node/node.hpp"

namespace rmsp::test {

/// Arrays in the memory of a runtime's last device.
class There {
public:
    explicit There(Runtime& runtime) : runtime_(detail::RuntimeAccess::state(runtime)) {}
    There(const There&) = delete;
    There& operator=(const There&) = delete;
    ~There()
    {
        on_last([&](engine::Worker&) { arrays_.clear(); });
    }
    template <class U>
    U* put(const U* entries, std::int64_t n)
    {
        const auto bytes = static_cast<std::size_t>(n) * sizeof(U);
        void* place = nullptr;
        on_last([&](engine::Worker& worker) {
            place = arrays_.emplace_back(worker.device(), std::max<std::size_t>(bytes, 1)).data();
            worker.device().upload(worker.stream(), place, entries, bytes);
        });
        return static_cast<U*>(place);
    }
    template <class U>
    std::vector<U> get(const U* array, std::int64_t n)
    {
        std::vector<U> entries(static_cast<std::size_t>(n));
        on_last([&](engine::Worker& worker) {
            worker.device().download(worker.stream(), entries.data(), array, entries.size() * sizeof(U));
        });
        return entries;
    }
    IndexView put(IndexView indices, std::int64_t n)
    {
        return indices.visit([&](const auto* from) { return IndexView(put(from, n)); });
    }

private:
    template <class F>
    void on_last(const F& f)
    {
        runtime_
            ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
                if (worker.rank() + 1 == runtime_->devices()) {
                    f(worker);
                    worker.stream().synchronize();
                }
            })
            .get();
    }

    std::shared_ptr<detail::RuntimeState> runtime_;
    std::vector<kernels::DeviceArray<std::byte>> arrays_;
};

/// The indices of a matrix, from 1 on.
template <class I>
std::vector<I> from_one(IndexView indices, std::int64_t n)
{
    std::vector<I> out;
    for (std::int64_t i = 0; i < n; ++i) {
        out.push_back(static_cast<I>(indices[i] + 1));
    }
    return out;
}

template <class T>
void check_product(DistributedMatrix<T>& matrix, const CsrMatrix<T>& a, const char* name)
{
    const auto x = random_vector<T>(a.cols, 1);
    std::vector<T> y(static_cast<std::size_t>(a.rows));
    matrix.apply(T{1}, x.data(), T{0}, y.data());
    EXPECT_TRUE(verify_spmv<T>(a.view(), T{1}, x.data(), T{0}, nullptr, y.data()).passed) << name;
}

/// A matrix of 3 x 2 blocks, of height 2 and width 3, and its values by rows and by columns of blocks.
struct Blocks {
    std::vector<int> row_ptr{1, 3, 3, 4};
    std::vector<std::int64_t> col_idx{2, 1, 2};
    std::vector<double> by_row;
    std::vector<double> by_column;

    Blocks() : by_row(18), by_column(18)
    {
        for (std::size_t k = 0; k < 3; ++k) {
            for (std::size_t r = 0; r < 2; ++r) {
                for (std::size_t c = 0; c < 3; ++c) {
                    by_row[6 * k + 3 * r + c] = by_column[6 * k + 2 * c + r] =
                        static_cast<double>(100 * k + 10 * r + c);
                }
            }
        }
    }
    BsrView<double> view(BlockOrder order) const
    {
        const auto& values = order == BlockOrder::by_row ? by_row : by_column;
        return {3, 2, 3, row_ptr.data(), col_idx.data(), values.data(), 2, 3, order, 1};
    }
};

}  // namespace rmsp::test
