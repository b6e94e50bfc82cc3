#include "apps/mspmv_mpi/spgemm.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <rmsp/io.hpp>
#include <rmsp/value_types.hpp>

#include "apps/mspmv/random_vector.hpp"
#include "apps/mspmv/second_matrix.hpp"
#include "apps/mspmv_mpi/load.hpp"
#include "apps/mspmv_mpi/vectors.hpp"

namespace rmsp::mpi {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

/// This process's rows of both factors.
template <class T>
struct Factors {
    ClusterRows<T> a;
    ClusterRows<T> b;
};

template <class T>
Factors<T> load(const Config& config, Cluster& cluster, Json& report, Json& own)
{
    const std::string& product = config.spgemm.product;
    const Balance balance = distribute_options(config).balance;
    if (product == "aat" || product == "ata") {
        CsrMatrix<T> a;
        CsrMatrix<T> b;
        on_first(MPI_COMM_WORLD, [&] {
            a = load_matrix<T>(config.matrix);
            b = transposed<T>(a.view());
            if (product == "ata") {
                std::swap(a, b);
            }
        });
        if (!config.matrix.file.empty()) {
            report["read"] = {{"in_parts", false}, {"reason", "spgemm.product needs the transposed matrix"}};
        }
        return {cluster.scatter(a, balance), cluster.scatter(b, balance)};
    }
    Factors<T> factors{load_rows<T>(cluster, config.matrix, balance, nullptr, report, own), {}};
    if (product == "ab") {
        Json of_b = Json::object();
        Json read_here = Json::object();
        factors.b = load_rows<T>(cluster, mspmv::second_matrix(config), balance, nullptr, of_b, read_here);
        if (of_b.contains("read")) {
            report["read_b"] = of_b["read"];
        }
    } else {
        factors.b = factors.a;
    }
    return factors;
}

std::int64_t rows_of_all(std::int64_t own)
{
    std::int64_t all = 0;
    MPI_Allreduce(&own, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/// Of a column's entries on all processes: each process's share of y = A x with x known everywhere.
template <class T>
HostVector<T> multiply(Cluster& cluster, const ClusterRows<T>& part, const HostVector<T>& x)
{
    DistributeOptions options;
    options.x_layout = Layout::rows;
    options.alignment = RowAlignment::row;
    ClusterMatrix<T> a = cluster.distribute(part.rows.view(), part.first_row, options);
    const Shares of_x{MPI_COMM_WORLD, a.column_offsets()};
    auto in = a.make_x();
    auto out = a.make_y();
    in.upload(x.data() + of_x.first());
    a.apply(T{1}, in, T{0}, out);
    HostVector<T> y(static_cast<std::size_t>(part.rows.rows));
    out.download(y.data());
    return y;
}

template <class T>
HostVector<T> multiply_everywhere(Cluster& cluster, const ClusterRows<T>& part, const HostVector<T>& x,
                                  const std::vector<std::int64_t>& offsets)
{
    return everywhere({MPI_COMM_WORLD, offsets}, multiply(cluster, part, x));
}

template <class T>
ClusterRows<T> magnitudes(const ClusterRows<T>& part)
{
    ClusterRows<T> all = part;
    std::transform(all.rows.values.begin(), all.rows.values.end(), all.rows.values.begin(),
                   [](T v) { return std::abs(v); });
    return all;
}

template <class T>
std::int64_t longest_row(const CsrMatrix<T>& a)
{
    std::int64_t longest = 0;
    for (std::int64_t row = 0; row < a.rows; ++row) {
        const auto i = static_cast<std::size_t>(row);
        longest = std::max(longest, a.row_ptr[i + 1] - a.row_ptr[i]);
    }
    return longest;
}

/// The largest difference of C v and alpha A (B v) over its bound, of this process's rows; above 1: wrong.
template <class T>
double largest_error(Cluster& cluster, const ClusterRows<T>& a, const ClusterRows<T>& b, const ClusterRows<T>& c,
                     double alpha, std::int64_t seed, const std::vector<std::int64_t>& b_offsets)
{
    HostVector<T> v = mspmv::random_vector<T>(c.rows.cols, seed, 1);
    const HostVector<T> found = multiply(cluster, c, v);
    const HostVector<T> expected = multiply(cluster, a, multiply_everywhere(cluster, b, v, b_offsets));
    std::transform(v.begin(), v.end(), v.begin(), [](T x) { return std::abs(x); });
    const HostVector<T> bound =
        multiply(cluster, magnitudes(a), multiply_everywhere(cluster, magnitudes(b), v, b_offsets));
    const auto terms = static_cast<double>(longest_row(a.rows) + longest_row(c.rows) + 8);
    double most = 0;  // a row of B is as long as any
    MPI_Allreduce(&terms, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const double own_b = static_cast<double>(longest_row(b.rows));
    double most_b = 0;
    MPI_Allreduce(&own_b, &most_b, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const double eps = double{std::numeric_limits<T>::epsilon()};
    double largest = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        const double wanted = alpha * static_cast<double>(expected[i]);
        const double room = (most + most_b) * eps * std::abs(alpha) * static_cast<double>(bound[i]);
        const double error = std::abs(static_cast<double>(found[i]) - wanted);
        largest = std::max(largest, error <= room ? 0.0 : std::isfinite(error / room) ? error / room : 1e300);
    }
    return largest;
}

}  // namespace

void check_spgemm(const Config& config)
{
    const auto refuse = [](const char* key, const std::string& value, const char* why) {
        throw Error(ErrorCode::usage, fmt::format("{} is \"{}\", but mspmv-mpi spgemm {}", key, value, why));
    };
    if (!config.spgemm.output.empty()) {
        refuse("spgemm.output", config.spgemm.output, "leaves the rows of C where they are");
    }
    if (config.spgemm.prune_below > 0) {
        refuse("spgemm.prune_below", fmt::format("{}", config.spgemm.prune_below), "prunes nothing");
    }
    const bool second = config.spgemm.file.empty() != config.spgemm.generate.empty();
    if (config.spgemm.product == "ab" && !second) {
        throw Error(ErrorCode::usage, "spgemm.product \"ab\" needs exactly one of spgemm.file and spgemm.generate");
    }
}

template <class T>
Json run_spgemm(const Config& config, Cluster& cluster, Json& report, Json& own)
{
    const auto [a, b] = load<T>(config, cluster, report, own);
    const std::int64_t a_rows = rows_of_all(a.rows.rows);
    const std::int64_t b_rows = rows_of_all(b.rows.rows);
    if (a.rows.cols != b_rows) {
        throw Error(ErrorCode::usage, fmt::format("A is {} x {} and B {} x {}: B needs as many rows as A columns",
                                                  a_rows, a.rows.cols, b_rows, b.rows.cols));
    }
    std::vector<std::int64_t> b_offsets(static_cast<std::size_t>(cluster.size()) + 1);
    MPI_Allgather(&b.first_row, 1, MPI_INT64_T, b_offsets.data(), 1, MPI_INT64_T, MPI_COMM_WORLD);
    b_offsets.back() = a.rows.cols;

    auto began = Clock::now();
    ClusterProduct<T> product(cluster, a.rows.view(), a.first_row, b.rows.view(), b.first_row, spgemm_options(config));
    const double prepared = seconds_since(began);
    const T alpha = static_cast<T>(config.run.alpha);
    std::vector<double> seconds;
    for (std::int64_t i = -config.spgemm.warmup; i < config.spgemm.iterations; ++i) {
        double wait = 0;
        cluster.sum({&wait, 1});  // all begin together
        began = Clock::now();
        product.compute(alpha);
        if (i >= 0) {
            seconds.push_back(seconds_since(began));
        }
    }
    std::sort(seconds.begin(), seconds.end());
    const ClusterRows<T> c = product.download();
    double counts[3] = {static_cast<double>(c.rows.nnz()), static_cast<double>(product.local().plan().products),
                        static_cast<double>(product.fetched_nonzeros())};
    cluster.sum(counts);
    own["rows"] = a.rows.rows;
    own["nonzeros"] = a.rows.nnz();
    own["rows_of_b"] = b.rows.rows;
    own["fetched_rows"] = product.fetched_rows();
    own["fetched_nonzeros"] = product.fetched_nonzeros();
    own["nonzeros_of_c"] = c.rows.nnz();
    Json found{{"product", config.spgemm.product},
               {"nonzeros", std::llround(counts[0])},
               {"multiplications", std::llround(counts[1])},
               {"fetched_nonzeros", std::llround(counts[2])},
               {"setup_seconds", prepared},
               {"median_seconds", seconds[seconds.size() / 2]},
               {"min_seconds", seconds.front()}};
    if (config.run.verify) {
        const double worst = largest_error(cluster, a, b, c, config.run.alpha, config.matrix.seed, b_offsets);
        double wrong = worst > 1 ? 1 : 0;
        cluster.sum({&wrong, 1});
        found["verified"] = wrong == 0;
        if (wrong != 0) {
            throw Error(ErrorCode::verification,
                        fmt::format("C v differs from A (B v) on {} of {} processes", wrong, cluster.size()));
        }
    }
    return found;
}

#define RMSP_INSTANTIATE(T) template Json run_spgemm<T>(const Config&, Cluster&, Json&, Json&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::mpi
