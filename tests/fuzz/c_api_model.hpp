#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <rmsp/rmsp.h>

/// What fuzz_c_api expects of matrices and vectors, computed by the plainest loops there are. Numbers are small
/// multiples of 1/16 wherever possible: sums of them are exact in float and in any order, so that results are compared
/// by ==. What is not `exact` is not compared.
namespace rmsp::fuzz {

/// Ends the process where librmsp did what it may not do.
inline void require(bool holds, const char* what)
{
    if (!holds) {
        std::fprintf(stderr, "fuzz_c_api: %s (last error: %s)\n", what, rmsp_last_error());
        std::abort();
    }
}

/// The fuzzed bytes, spent one after the other; zeros once there are no more.
class Input {
public:
    Input(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
    bool more() const { return at_ < end_; }
    unsigned byte() { return more() ? *at_++ : 0U; }
    unsigned below(std::size_t end) { return byte() % static_cast<unsigned>(end); }
    /// One of sixteen times or so, if the bytes are random.
    bool seldom() { return byte() >= 240; }
    template <class T, std::size_t count>
    const T& one_of(const T (&of)[count])
    {
        return of[below(count)];
    }

private:
    const std::uint8_t* at_;
    const std::uint8_t* end_;
};

/// Numbers from one byte, so that inputs stay short.
class Numbers {
public:
    explicit Numbers(Input& in) : state_(in.byte() * 2654435761U + 12345U), wild_(in.seldom()) {}
    std::int64_t below(std::int64_t end)
    {
        state_ = state_ * 1664525U + 1013904223U;
        return end > 0 ? static_cast<std::int64_t>(state_ >> 8U) % end : 0;
    }
    /// A multiple of a quarter, at most 8; if the byte says so, one that nothing is exact with.
    double value()
    {
        static constexpr double wild[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 5e-324, 1e-40, 1e38};
        return wild_ ? wild[below(8)] : static_cast<double>(below(65) - 32) / 4;
    }
    bool are_exact() const { return !wild_; }

private:
    std::uint32_t state_;
    bool wild_;
};

struct Entry {
    std::int64_t row;
    std::int64_t col;
    double value;
};

struct Matrix {
    rmsp_value_type type = RMSP_DOUBLE;
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::vector<Entry> entries{};  ///< in the order of the arrays
    bool exact = true;
    bool in_order = true;           ///< new values come in the order of the entries
    bool valid = true;              ///< a matrix at all; of views of the caller's arrays alone
    const void* values = nullptr;   ///< the caller's, where they are used as long as the matrix
    std::shared_ptr<bool> alive{};  ///< its runtime; none: a host matrix
};

/// Beyond it no arrays are made.
inline constexpr std::int64_t most_entries = 4096;
/// Under sanitizers no request for memory may fail: `new` ends the process.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
/// A size; one that memory would be asked for in vain may become one that no matrix can have.
inline std::int64_t possible(std::int64_t size) { return sanitized && size > most_entries ? INT64_MAX : size; }
inline bool is_small(const Matrix& a) { return a.rows <= most_entries && a.cols <= most_entries; }

/// Whether each is a multiple of `unit` up to `most` in magnitude.
inline bool are_multiples(const std::vector<double>& entries, double unit, double most)
{
    for (const double entry : entries) {
        if (!(std::fabs(entry) <= most) || entry / unit != std::floor(entry / unit)) {
            return false;
        }
    }
    return true;
}

inline bool are_exact(const std::vector<double>& entries) { return are_multiples(entries, 1.0 / 16, 64); }
struct Vector {
    rmsp_value_type type = RMSP_DOUBLE;
    std::vector<double> entries{};
    bool exact = false;
    bool shared = false;            ///< other handles may mean the same vector
    std::shared_ptr<bool> alive{};  ///< its runtime

    /// What it holds now; none: nobody knows.
    void set(const std::optional<std::vector<double>>& now)
    {
        exact = now && !shared && are_exact(*now);
        entries = now ? *now : entries;
    }
};

inline bool is_exact(double scalar) { return scalar == 0.5 || are_multiples({scalar}, 1, 2); }

/// alpha A x + beta y, or with A^T; none if it need not be exact.
inline std::optional<std::vector<double>> product(const Matrix& a, bool transposed, double alpha, const Vector& x,
                                                  double beta, const Vector& y)
{
    if (!a.exact || !x.exact || !is_exact(alpha) || !is_exact(beta) || (beta != 0 && !y.exact)) {
        return {};
    }
    std::vector<double> out(static_cast<std::size_t>(transposed ? a.cols : a.rows), 0.0);
    for (const Entry& entry : a.entries) {
        const auto to = static_cast<std::size_t>(transposed ? entry.col : entry.row);
        const auto from = static_cast<std::size_t>(transposed ? entry.row : entry.col);
        out[to] += alpha * entry.value * x.entries.at(from);
    }
    for (std::size_t i = 0; beta != 0 && i < out.size(); ++i) {
        out[i] += beta * y.entries.at(i);
    }
    return out;
}

using Places = std::map<std::pair<std::int64_t, std::int64_t>, double>;

/// The entries by their places, those at the same place added up; zeros count as none.
inline Places places_of(const Matrix& a)
{
    Places places;
    for (const Entry& entry : a.entries) {
        places[{entry.row, entry.col}] += entry.value;
    }
    std::erase_if(places, [](const auto& place) { return place.second == 0; });
    return places;
}

/// Whether entries are small enough for products to be exact.
inline bool entries_are_exact(const Matrix& a)
{
    std::vector<double> values;
    for (const Entry& entry : a.entries) {
        values.push_back(entry.value);
    }
    return are_multiples(values, 0.25, 8);
}

/// alpha A B; not exact if it need not be.
inline Matrix product(double alpha, const Matrix& a, const Matrix& b)
{
    Matrix c{.type = a.type, .rows = a.rows, .cols = b.cols, .in_order = false};
    c.exact = a.exact && b.exact && is_exact(alpha);
    for (const Entry& of_a : a.entries) {
        for (const Entry& of_b : b.entries) {
            if (c.exact && of_a.col == of_b.row) {
                c.entries.push_back({of_a.row, of_b.col, alpha * of_a.value * of_b.value});
            }
        }
    }
    return c;
}

inline void require_same(const Matrix& is, const Matrix& expected, const char* what)
{
    require(is.type == expected.type && is.rows == expected.rows && is.cols == expected.cols, what);
    require(!is.exact || !expected.exact || places_of(is) == places_of(expected), what);
}

inline void require_same(const std::vector<double>& is, const std::optional<std::vector<double>>& expected,
                         const char* what)
{
    require(!expected || is == *expected, what);
}

/// Reads an array of values.
inline std::vector<double> read(const void* array, rmsp_value_type type, std::size_t count)
{
    std::vector<double> out;
    for (std::size_t i = 0; i < count; ++i) {
        out.push_back(type == RMSP_FLOAT ? static_cast<double>(static_cast<const float*>(array)[i])
                                         : static_cast<const double*>(array)[i]);
    }
    return out;
}

inline void write(void* array, rmsp_value_type type, const std::vector<double>& values)
{
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (type == RMSP_FLOAT) {
            static_cast<float*>(array)[i] = static_cast<float>(values[i]);
        } else {
            static_cast<double*>(array)[i] = values[i];
        }
    }
}

/// The arrays of the calls of an input, each of exactly the bytes that it needs, so that sanitizers see what is read
/// beyond.
class Arena {
public:
    void* bytes(std::size_t count)
    {
        kept_.emplace_back(std::malloc(count), &std::free);
        return kept_.back().get();
    }
    void* values(rmsp_value_type type, const std::vector<double>& values)
    {
        void* const array = bytes(values.size() * (type == RMSP_FLOAT ? sizeof(float) : sizeof(double)));
        write(array, type, values);
        return array;
    }
    void* indices(rmsp_index_type type, const std::vector<std::int64_t>& indices)
    {
        void* const array = bytes(indices.size() * (type == RMSP_INT32 ? 4 : 8));
        for (std::size_t i = 0; i < indices.size(); ++i) {
            if (type == RMSP_INT32) {
                static_cast<std::int32_t*>(array)[i] = static_cast<std::int32_t>(indices[i]);
            } else {
                static_cast<std::int64_t*>(array)[i] = indices[i];
            }
        }
        return array;
    }

private:
    std::vector<std::unique_ptr<void, decltype(&std::free)>> kept_;
};

}  // namespace rmsp::fuzz
