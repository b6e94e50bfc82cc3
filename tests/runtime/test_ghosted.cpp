#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/device_link.hpp>
#include <rmsp/ghosted.hpp>

#include "matrices.hpp"

// Rows whose ghosts this process itself has: what it sends is what it receives, so that one process shows what several
// do.
namespace rmsp::test {
namespace {

class Alone : public Processes {
public:
    void sum(std::span<double>) override {}
    double of_first(double value) override { return value; }
};

/// Entries that leave and come back to the same process: entry i that is sent is ghost i.
class Placed : public GhostExchange {
public:
    DevicePlaces place(std::span<const int> sent, std::span<const int> ghosts, int devices) override
    {
        EXPECT_TRUE(sent_to_.empty()) << "placed twice";
        sent_from_.assign(sent.begin(), sent.end());
        sent_to_.assign(ghosts.begin(), ghosts.end());
        sent_ = place_entries(sent, ghosts, devices);
        ghosts_ = place_entries(ghosts, sent, devices);
        return {sent_.places, ghosts_.places};
    }

protected:
    // Of each entry:
    std::vector<int> sent_from_;
    std::vector<int> sent_to_;
    LinkedEntries sent_;
    LinkedEntries ghosts_;
};

/// Brings entries from one array to the other.
class Loopback : public Placed {
public:
    Loopback(std::size_t entries, std::size_t entry_bytes, bool on_devices)
        : entries_(entries), entry_bytes_(entry_bytes), on_devices_(on_devices)
    {
    }
    void begin(const void* send, void* receive, bool /*backwards*/) override
    {
        EXPECT_FALSE(on_devices_);
        ++begun;
        if (entries_ > 0) {
            std::memcpy(receive, send, entries_ * entry_bytes_);
        }
    }
    void begin_on(std::span<const DeviceArrays> devices, bool backwards) override
    {
        ++begun;
        for (std::size_t i = 0; i < entries_; ++i) {
            auto from = static_cast<std::size_t>(sent_from_[i]);
            auto to = static_cast<std::size_t>(sent_to_[i]);
            auto at = static_cast<std::size_t>(sent_.places[i]) * entry_bytes_;
            auto place = static_cast<std::size_t>(ghosts_.places[i]) * entry_bytes_;
            if (backwards) {
                std::swap(from, to);
                std::swap(at, place);
            }
            std::memcpy(static_cast<std::byte*>(devices[to].to) + place,
                        static_cast<const std::byte*>(devices[from].from) + at, entry_bytes_);
        }
    }
    void end() override { ++ended; }
    bool on_devices() const override { return on_devices_; }

    int begun = 0;
    int ended = 0;

private:
    const std::size_t entries_;
    const std::size_t entry_bytes_;
    const bool on_devices_;
};

/// Whose exchanges are waited for at the end of a call.
class AloneOnLink : public Alone {
public:
    explicit AloneOnLink(std::shared_ptr<DeviceLink> link) : link_(std::move(link)) {}
    void settle() override { link_->end(); }

private:
    const std::shared_ptr<DeviceLink> link_;
};

/// The same by a link of GPUs to each other and to themselves.
class LinkedLoopback : public Placed {
public:
    LinkedLoopback(std::shared_ptr<DeviceLink> link, std::size_t entry_bytes, bool in_stream_order = false)
        : link_(std::move(link)), entry_bytes_(entry_bytes), in_stream_order_(in_stream_order)
    {
    }
    void begin(const void*, void*, bool) override { FAIL() << "in host memory"; }
    void begin_on(std::span<const DeviceArrays> devices, bool backwards) override
    {
        const LinkedEntries& to = backwards ? ghosts_ : sent_;
        const LinkedEntries& from = backwards ? sent_ : ghosts_;
        link_->begin(devices, in_two(to.messages), in_two(from.messages), entry_bytes_);
    }
    void end() override
    {
        EXPECT_FALSE(in_stream_order_);
        link_->end();
    }
    bool on_devices() const override { return true; }
    bool in_stream_order() const override { return in_stream_order_; }

private:
    /// Several messages between the same two GPUs.
    static std::vector<LinkMessages> in_two(const std::vector<LinkMessages>& all)
    {
        std::vector<LinkMessages> out;
        for (const LinkMessages& of_gpu : all) {
            LinkMessages& parts = out.emplace_back();
            for (const LinkMessage& whole : of_gpu) {
                const std::int64_t third = whole.count / 3;
                for (const LinkMessage& part : {LinkMessage{whole.gpu, whole.first, third},
                                                LinkMessage{whole.gpu, whole.first + third, whole.count - third}}) {
                    if (part.count > 0) {
                        parts.push_back(part);
                    }
                }
            }
        }
        return out;
    }

    const std::shared_ptr<DeviceLink> link_;
    const std::size_t entry_bytes_;
    const bool in_stream_order_;
};

/// A random matrix of n own columns, and ghosts in every `stride`-th row: two of them, which are any own columns.
template <class T>
struct Rows {
    explicit Rows(std::int64_t n, std::int64_t stride) : own(n)
    {
        std::vector<std::int64_t> lengths;
        for (std::int64_t i = 0; i < n; ++i) {
            lengths.push_back(1 + i % 5);
        }
        const CsrMatrix<T> inside = with_row_lengths<T>(lengths, n);
        rows.rows = n;
        rows.row_ptr.push_back(0);
        std::vector<std::int64_t> columns;
        inside.view().col_idx.visit([&](const auto* from) {
            for (std::int64_t i = 0; i < n; ++i) {
                const auto row = static_cast<std::size_t>(i);
                const auto add = [&](std::int64_t column, T value) {
                    columns.push_back(column);
                    rows.values.push_back(value);
                };
                for (std::int64_t k = inside.row_ptr[row]; k < inside.row_ptr[row + 1]; ++k) {
                    add(from[k], inside.values[static_cast<std::size_t>(k)]);
                }
                if (i % stride == stride - 1) {
                    for (const std::int64_t column : {7 * i % n, (3 * i + 1) % n}) {
                        add(n + static_cast<std::int64_t>(sent.size()), T{2} + static_cast<T>(i) / 8);
                        sent.push_back(column);
                    }
                }
                rows.row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
            }
        });
        rows.cols = n + static_cast<std::int64_t>(sent.size());
        rows.col_idx = IndexArray(index_type_for(rows.cols), columns.size());
        rows.col_idx.visit([&](auto& to) {
            for (std::size_t i = 0; i < columns.size(); ++i) {
                to[i] = static_cast<typename std::decay_t<decltype(to)>::value_type>(columns[i]);
            }
        });
    }

    GhostedMatrix<T> distribute(Runtime& runtime, std::shared_ptr<GhostExchange> exchange,
                                const DistributeOptions& options = {},
                                std::shared_ptr<Processes> processes = std::make_shared<Alone>()) const
    {
        GhostedRows<T> ghosted;
        ghosted.rows = rows.view();
        ghosted.own_cols = own;
        ghosted.sent = sent;
        ghosted.exchange = std::move(exchange);
        ghosted.processes = std::move(processes);
        return GhostedMatrix<T>(runtime, ghosted, options);
    }

    /// alpha A x + beta y, or with A^T, where ghosts are the columns that they stand for.
    std::vector<double> product(double alpha, const std::vector<T>& x, double beta, const std::vector<T>& y,
                                bool of_transpose) const
    {
        std::vector<double> out(y.begin(), y.end());
        for (double& entry : out) {
            entry *= beta;
        }
        rows.view().col_idx.visit([&](const auto* columns) {
            for (std::size_t i = 0; i < static_cast<std::size_t>(own); ++i) {
                for (auto k = static_cast<std::size_t>(rows.row_ptr[i]);
                     k < static_cast<std::size_t>(rows.row_ptr[i + 1]); ++k) {
                    const auto given = static_cast<std::int64_t>(columns[k]);
                    const auto column =
                        static_cast<std::size_t>(given < own ? given : sent[static_cast<std::size_t>(given - own)]);
                    out[of_transpose ? column : i] +=
                        alpha * static_cast<double>(rows.values[k]) * static_cast<double>(x[of_transpose ? i : column]);
                }
            }
        });
        return out;
    }

    std::int64_t own;
    CsrMatrix<T> rows;
    std::vector<std::int64_t> sent;
};

class Ghosted : public MachineTest {};

template <class T>
std::vector<T> downloaded(const DistributedVector<T>& vector)
{
    std::vector<T> out(static_cast<std::size_t>(vector.size()));
    vector.download(out.data());
    return out;
}

template <class T>
void expect_near(const std::vector<T>& found, const std::vector<double>& wanted)
{
    for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_NEAR(found[i], wanted[i], (sizeof(T) == 4 ? 1e-3 : 1e-11) * (1 + std::abs(wanted[i]))) << "entry " << i;
    }
}

/// Products with A and A^T, also of new values. Returns those with A.
template <class T>
std::vector<T> check_products(Runtime& runtime, Rows<T> rows, const std::shared_ptr<GhostExchange>& exchange,
                              DistributeOptions options = {},
                              const std::shared_ptr<Processes>& processes = std::make_shared<Alone>())
{
    options.transposed = options.determinism != Determinism::device_count;
    auto a = rows.distribute(runtime, exchange, options, processes);
    const auto x = random_vector<T>(rows.own, 3);
    const auto y = random_vector<T>(rows.own, 4);
    std::vector<T> all;
    for (int turn = 0; turn < 2; ++turn) {
        for (const double beta : {0.0, -0.5}) {
            auto from = a.own().make_x(Layout::rows);
            auto to = a.own().make_y();
            from.upload(x.data());
            to.upload(y.data());
            a.apply(T{3}, from, static_cast<T>(beta), to);
            const std::vector<T> found = downloaded(to);
            expect_near(found, rows.product(3, x, beta, y, false));
            all.insert(all.end(), found.begin(), found.end());

            if (options.determinism == Determinism::device_count) {
                continue;  // of products with A alone
            }
            auto back_from = a.own().make_y();
            auto back = a.own().make_x(Layout::rows);
            back_from.upload(x.data());
            back.upload(y.data());
            a.apply_transposed(T{3}, back_from, static_cast<T>(beta), back);
            expect_near(downloaded(back), rows.product(3, x, beta, y, true));
        }
        for (T& value : rows.rows.values) {
            value = value * T{0.5} + T{0.25};
        }
        a.update_values(rows.rows.values.data());
    }
    return all;
}

constexpr std::int64_t few = 7;     ///< rows with ghosts are this far apart: they are multiplied by themselves
constexpr std::int64_t many = 2;    ///< all rows are multiplied
constexpr std::int64_t none = 500;  ///< there are none

TEST_P(Ghosted, ProductsThroughHostMemory)
{
    Runtime runtime(options_for(GetParam()));
    for (const std::int64_t stride : {few, many, none, std::int64_t{1}}) {
        SCOPED_TRACE(stride);
        const Rows<double> rows(240, stride);
        const auto exchange = std::make_shared<Loopback>(rows.sent.size(), sizeof(double), false);
        check_products(runtime, rows, exchange);
        EXPECT_EQ(exchange->begun, 8);
        EXPECT_EQ(exchange->ended, 8);
        const Rows<float> floats(240, stride);
        check_products(runtime, floats, std::make_shared<Loopback>(floats.sent.size(), sizeof(float), false));
    }
}

TEST_P(Ghosted, ProductsThroughMemoryOfTheDevices)
{
    Runtime runtime(options_for(GetParam()));
    if (runtime.devices().front().kind != DeviceKind::host) {
        GTEST_SKIP() << "this exchange copies in host memory";
    }
    for (const std::int64_t stride : {few, many, none}) {
        for (const Determinism determinism : {Determinism::none, Determinism::run, Determinism::device_count}) {
            SCOPED_TRACE(stride);
            const Rows<double> rows(240, stride);
            DistributeOptions options;
            options.determinism = determinism;
            if (determinism == Determinism::device_count) {
                options.kernel = "csr-openmp";
            }
            const auto host = check_products(
                runtime, rows, std::make_shared<Loopback>(rows.sent.size(), sizeof(double), false), options);
            const auto device = check_products(
                runtime, rows, std::make_shared<Loopback>(rows.sent.size(), sizeof(double), true), options);
            EXPECT_EQ(host, device);
        }
    }
}

TEST_P(Ghosted, ProductsByALinkOfGpus)
{
    Runtime runtime(options_for(GetParam()));
    if (const std::string why = why_no_device_link(runtime); !why.empty()) {
        GTEST_SKIP() << why;
    }
    DeviceLinkOptions linked;
    linked.size = static_cast<int>(runtime.devices().size());
    linked.id = make_device_link_id();
    const auto link = connect_device_link(runtime, linked);
    for (const std::int64_t stride : {few, many, none, std::int64_t{1}}) {
        SCOPED_TRACE(stride);
        const Rows<double> rows(4000, stride);
        DistributeOptions options;
        options.determinism = Determinism::run;
        const auto host =
            check_products(runtime, rows, std::make_shared<Loopback>(rows.sent.size(), sizeof(double), false), options);
        const auto gpu = check_products(runtime, rows, std::make_shared<LinkedLoopback>(link, sizeof(double)), options);
        EXPECT_EQ(host, gpu);
        const auto in_order =
            check_products(runtime, rows, std::make_shared<LinkedLoopback>(link, sizeof(double), true), options,
                           std::make_shared<AloneOnLink>(link));
        EXPECT_EQ(host, in_order);
        const Rows<float> floats(4000, stride);
        check_products(runtime, floats, std::make_shared<LinkedLoopback>(link, sizeof(float)));
    }
    link->give_up();
    EXPECT_FALSE(link->usable());
    EXPECT_THROW(link->end(), Error);
}

TEST(DeviceLinks, AreOfGpusAlone)
{
    const Runtime runtime({.devices = "host:1"});
    EXPECT_EQ(why_no_device_link(runtime), "NCCL is for GPUs");
    EXPECT_THROW((void)connect_device_link(runtime, {}), Error);
}

INSTANTIATE_TEST_SUITE_P(All, Ghosted, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
