#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <rmsp/rmsp.hpp>

#include "matrices.hpp"

/// Matrices in every format that a runtime takes.
namespace rmsp::test {

/// How a matrix is given to the runtime.
enum class Given { csr, csc, coo_by_row, coo_by_column, coo_unsorted };
inline constexpr Given every_way[] = {Given::csr, Given::csc, Given::coo_by_row, Given::coo_by_column,
                                      Given::coo_unsorted};

inline const char* name_of(Given given)
{
    constexpr const char* names[] = {"csr", "csc", "coo by row", "coo by column", "coo unsorted"};
    return names[static_cast<int>(given)];
}

/// A matrix in one of the formats, with arrays of its own.
template <class T>
class Arrays {
public:
    Arrays(const CsrMatrix<T>& a, Given given) : a_(a), given_(given)
    {
        switch (given) {
            case Given::csr:
                break;
            case Given::csc:
                csc_ = to_csc(a.view());
                break;
            case Given::coo_by_row:
                coo_ = to_coo(a.view());
                break;
            case Given::coo_by_column:
                csc_ = to_csc(a.view());
                coo_ = to_coo(csc_.view());
                break;
            case Given::coo_unsorted:
                coo_ = shuffled(to_coo(a.view()));
                break;
        }
    }

    DistributedMatrix<T> distribute(Runtime& runtime, const DistributeOptions& options) const
    {
        return given_ == Given::csr   ? runtime.distribute(a_.view(), options)
               : given_ == Given::csc ? runtime.distribute(csc_.view(), options)
                                      : runtime.distribute(coo_.view(), options);
    }
    /// The values in the order of these arrays.
    HostVector<T>& values()
    {
        return given_ == Given::csr ? a_.values : given_ == Given::csc ? csc_.values : coo_.values;
    }

private:
    CsrMatrix<T> a_;
    CscMatrix<T> csc_;
    CooMatrix<T> coo_;
    Given given_;
};

/// The hard matrices, and those that are hard by columns.
template <class T>
std::vector<std::pair<std::string, CsrMatrix<T>>> matrices()
{
    std::vector<std::pair<std::string, CsrMatrix<T>>> all;
    for (auto& [name, a] : hard_matrices<T>()) {
        if (a.rows != a.cols) {
            const CscView<T> turned = transpose(a.view());
            all.emplace_back(std::string(name) + ", transposed", to_csr(turned));
        }
        all.emplace_back(name, std::move(a));
    }
    return all;
}

/// The entries of each row by column, those at one place by value.
template <class T>
std::vector<std::vector<std::pair<std::int64_t, T>>> entries_by_row(const CsrMatrix<T>& a)
{
    std::vector<std::vector<std::pair<std::int64_t, T>>> rows(static_cast<std::size_t>(a.rows));
    for (std::size_t row = 0; row < rows.size(); ++row) {
        for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
            rows[row].emplace_back(a.col_idx[k], a.values[static_cast<std::size_t>(k)]);
        }
        std::sort(rows[row].begin(), rows[row].end());
    }
    return rows;
}

template <class T>
void expect_same_entries(const CsrMatrix<T>& got, const CsrMatrix<T>& expected, const std::string& name)
{
    validate(got.view());
    EXPECT_EQ(got.rows, expected.rows) << name;
    EXPECT_EQ(got.cols, expected.cols) << name;
    EXPECT_EQ(entries_by_row(got), entries_by_row(expected)) << name;
}

}  // namespace rmsp::test
