#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <ostream>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/rmsp.hpp>

#include "tests/sanitized.hpp"

namespace rmsp::test {

/// A CSR matrix with rows of the given lengths and random columns and values.
template <class T>
CsrMatrix<T> with_row_lengths(const std::vector<std::int64_t>& lengths, std::int64_t cols, unsigned seed = 7)
{
    std::mt19937_64 random(seed);
    CsrMatrix<T> a;
    a.rows = static_cast<std::int64_t>(lengths.size());
    a.cols = cols;
    a.row_ptr.push_back(0);
    for (const auto n : lengths) {
        a.row_ptr.push_back(a.row_ptr.back() + n);
    }
    const std::int64_t nnz = a.row_ptr.back();
    HostVector<std::int32_t> columns(static_cast<std::size_t>(nnz));
    for (auto& c : columns) {
        c = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(std::max<std::int64_t>(1, cols)));
    }
    a.col_idx = IndexArray(std::move(columns));
    a.values.resize(static_cast<std::size_t>(nnz));
    std::uniform_real_distribution<double> value(-1, 1);
    for (auto& v : a.values) {
        v = static_cast<T>(value(random));
    }
    return a;
}

template <class T>
std::vector<T> random_vector(std::int64_t n, unsigned seed)
{
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> value(-1, 1);
    std::vector<T> v(static_cast<std::size_t>(n));
    for (auto& e : v) {
        e = static_cast<T>(value(random));
    }
    return v;
}

/// The shapes that break partitions and merges: name, matrix.
template <class T>
std::vector<std::pair<const char*, CsrMatrix<T>>> hard_matrices()
{
    std::vector<std::pair<const char*, CsrMatrix<T>>> all;
    all.emplace_back("0 x 0", with_row_lengths<T>({}, 0));
    all.emplace_back("0 x 5", with_row_lengths<T>({}, 5));
    all.emplace_back("5 x 0", with_row_lengths<T>({0, 0, 0, 0, 0}, 0));
    all.emplace_back("1 x 1", with_row_lengths<T>({1}, 1));
    all.emplace_back("fewer rows than devices", with_row_lengths<T>({2, 3}, 4));
    all.emplace_back("one dense row", with_row_lengths<T>({5000}, 6000));
    all.emplace_back("dense row in the middle", with_row_lengths<T>({1, 0, 4000, 0, 2, 3}, 5000));
    all.emplace_back("two long rows", with_row_lengths<T>({3000, 3000, 1}, 3000));
    all.emplace_back("empty rows at the ends", with_row_lengths<T>({0, 0, 0, 7, 9, 4, 0, 0, 0, 0}, 20));
    all.emplace_back("all empty", with_row_lengths<T>({0, 0, 0, 0, 0, 0, 0}, 9));
    std::vector<std::int64_t> power_law;
    for (int i = 1; i <= 1500; ++i) {
        power_law.push_back((sanitized ? 3000 : 20000) / i);
    }
    all.emplace_back("power law", with_row_lengths<T>(power_law, 1500));
    std::reverse(power_law.begin(), power_law.end());
    all.emplace_back("power law reversed", with_row_lengths<T>(power_law, 1500));
    all.emplace_back("stencil", stencil27<T>(13, 11, 9));
    return all;
}

/// Rows and columns of a square matrix in the same random order.
template <class T>
CsrMatrix<T> shuffled(const CsrMatrix<T>& a, unsigned seed)
{
    std::vector<std::int64_t> row_at(static_cast<std::size_t>(a.rows));
    std::iota(row_at.begin(), row_at.end(), std::int64_t{0});
    std::shuffle(row_at.begin(), row_at.end(), std::mt19937_64(seed));
    return renumbered(a.view(), row_at);
}

/// The entries of coordinates in a random order.
template <class T>
CooMatrix<T> shuffled(const CooMatrix<T>& a)
{
    std::vector<std::int64_t> from(static_cast<std::size_t>(a.nnz()));
    std::iota(from.begin(), from.end(), std::int64_t{0});
    std::shuffle(from.begin(), from.end(), std::mt19937_64(11));
    CooMatrix<T> out = a;
    const auto permute = [&](auto& to, const auto& entries) {
        for (std::size_t i = 0; i < from.size(); ++i) {
            to[i] = static_cast<std::remove_cvref_t<decltype(to[i])>>(entries[from[i]]);
        }
    };
    permute(out.values, a.values.data());
    out.row_idx.visit([&](auto& to) { permute(to, a.row_idx); });
    out.col_idx.visit([&](auto& to) { permute(to, a.col_idx); });
    return out;
}

/// What f() says in the usage error that it throws; empty if it throws none.
inline std::string usage_message(const std::function<void()>& f)
{
    try {
        f();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::usage);
        return e.what();
    }
    return "";
}

/// Whether CUDA offers this process at least n GPUs; asked once, since opening a GPU takes a while.
inline bool have_gpus(int n)
{
    static std::map<int, bool> answers;
    const auto [answer, asked] = answers.try_emplace(n, true);
    if (asked) {
        RuntimeOptions options;
        options.devices = std::to_string(n - 1);
        try {
            const Runtime runtime(options);
        } catch (const Error&) {
            answer->second = false;
        }
    }
    return answer->second;
}

/// A set of devices and the transport between them, for tests that run on every backend.
struct Machine {
    const char* devices;
    const char* transport;  // "" for the automatic choice
    int gpus;               // needed

    /// Whether GPUs stand for several devices.
    bool shares() const { return std::string_view(devices).starts_with("shared:"); }
    int gpu_devices() const
    {
        const std::string_view names = devices;
        return gpus == 0 ? 0 : 1 + static_cast<int>(std::count(names.begin(), names.end(), ','));
    }
};

inline void PrintTo(const Machine& machine, std::ostream* out) { *out << machine.devices << ' ' << machine.transport; }

/// Skipped where the machine's GPUs are missing.
class MachineTest : public testing::TestWithParam<Machine> {
protected:
    void SetUp() override
    {
        if (GetParam().gpus > 0 && !have_gpus(GetParam().gpus)) {
            GTEST_SKIP() << "needs " << GetParam().gpus << " GPU(s)";
        }
    }
};

inline RuntimeOptions options_for(const Machine& machine)
{
    RuntimeOptions options;
    options.devices = machine.devices;
    if (*machine.transport != '\0') {
        options.transports = {machine.transport};
    }
    return options;
}

/// With a runtime on the machine, which all tests of a suite share: to connect NCCL takes a second.
class RuntimeTest : public MachineTest {
protected:
    static void TearDownTestSuite() { runtimes().clear(); }

    void SetUp() override
    {
        MachineTest::SetUp();
        if (!IsSkipped()) {
            auto& runtime = runtimes()[{GetParam().devices, GetParam().transport}];
            if (!runtime) {
                runtime = std::make_unique<Runtime>(options_for(GetParam()));
            }
            runtime_ = runtime.get();
        }
    }

    Runtime* runtime_ = nullptr;

private:
    static std::map<std::pair<std::string, std::string>, std::unique_ptr<Runtime>>& runtimes()
    {
        static std::map<std::pair<std::string, std::string>, std::unique_ptr<Runtime>> all;
        return all;
    }
};

inline const std::vector<Machine>& machines()
{
    static const std::vector<Machine> all = {
        {"host:1", "", 0},
        {"host:2", "", 0},
        {"host:5x1", "", 0},
        {"0", "", 1},
        {"0,1", "peer", 2},
        {"0,1", "nccl", 2},
        {"0,1", "host", 2},
        {"0,1,2,3", "peer", 4},
        {"0,1,2,3", "nccl", 4},
        {"0,1,2,3", "host", 4},
        {"shared:0,0,0", "peer", 1},
        {"shared:0,0,0", "host", 1},
        {"shared:0,1,0,1", "peer", 2},
    };
    return all;
}

/// "gpu_0_1_nccl": the suffix of a parameterised test.
inline std::string machine_name(const testing::TestParamInfo<Machine>& parameter)
{
    const Machine& machine = parameter.param;
    std::string name = std::string(machine.gpus > 0 ? "gpu_" : "") + machine.devices;
    if (*machine.transport != '\0') {
        name += std::string("_") + machine.transport;
    }
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == ':' || c == ','; }, '_');
    return name;
}

}  // namespace rmsp::test
