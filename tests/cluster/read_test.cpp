#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include <rmsp/io.hpp>

#include "tests/cluster/matrices.hpp"

namespace rmsp::test {
namespace {

/// A file of all processes, written by the first one and removed by it.
class SharedFile {
public:
    template <class F>
    SharedFile(const Cluster& cluster, const std::string& name, const F& write)
        : path_(fmt::format("cluster-read-{}-{}", cluster.size(), name)), first_(cluster.rank() == 0)
    {
        if (first_) {
            write(path_);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ~SharedFile()
    {
        MPI_Barrier(MPI_COMM_WORLD);
        if (first_) {
            std::remove(path_.c_str());
        }
    }
    SharedFile(const SharedFile&) = delete;
    SharedFile& operator=(const SharedFile&) = delete;
    const std::string& path() const { return path_; }

private:
    std::string path_;
    bool first_;
};

auto text(const std::string& content)
{
    return [content](const std::string& path) { std::ofstream(path) << content; };
}

/// This process's rows are those of one that reads the file alone, bit for bit, and nobody has read much more than a
/// share. Of files without repeated entries they are cut as those that the first process scatters.
template <class T>
ReadReport check_read(Cluster& cluster, const std::string& path, const ReadOptions& options = {}, bool repeated = false)
{
    ReadReport report;
    const ClusterRows<T> own = cluster.read<T>(path, options, &report);
    const CsrMatrix<T> all = read_matrix<T>(path, options);
    EXPECT_EQ(own.rows.cols, all.cols);
    EXPECT_EQ(own.rows.col_idx.type(), all.col_idx.type());
    const std::int64_t base = all.row_ptr[static_cast<std::size_t>(own.first_row)];
    for (std::int64_t row = 0; row <= own.rows.rows; ++row) {
        EXPECT_EQ(own.rows.row_ptr[static_cast<std::size_t>(row)] + base,
                  all.row_ptr[static_cast<std::size_t>(own.first_row + row)]);
    }
    for (std::int64_t k = 0; k < own.rows.nnz(); ++k) {
        EXPECT_EQ(own.rows.col_idx[k], all.col_idx[base + k]);
        EXPECT_EQ(own.rows.values[static_cast<std::size_t>(k)], all.values[static_cast<std::size_t>(base + k)]);
    }
    double rows = static_cast<double>(own.rows.rows);
    cluster.sum({&rows, 1});
    EXPECT_EQ(rows, static_cast<double>(all.rows));
    if (!repeated) {
        EXPECT_EQ(cluster.scatter(all).first_row, own.first_row);
    }
    return report;
}

TEST(ClusterRead, GivesTheRowsOfOneReader)
{
    Cluster cluster = make_cluster("host:1");
    const auto a = random_uniform<double>(300, 280, 5);
    for (const char* const name : {"a.mtx", "a.npz"}) {
        SCOPED_TRACE(name);
        const SharedFile file(cluster, name, [&](const std::string& path) { write_matrix(path, a.view()); });
        const ReadReport report = check_read<double>(cluster, file.path());
        check_read<float>(cluster, file.path());
        EXPECT_EQ(report.in_parts, cluster.size() > 1) << report.reason;
        EXPECT_LE(report.entries, a.nnz() / cluster.size() + 60);
        double counts[2] = {static_cast<double>(report.entries), static_cast<double>(report.sent)};
        cluster.sum(counts);
        EXPECT_EQ(counts[0], static_cast<double>(a.nnz()));
        // In the order of rows: what is sent are rows around the cuts.
        EXPECT_LE(counts[1], static_cast<double>(cluster.size()) * 60);
    }
}

TEST(ClusterRead, OfSymmetricRepeatedAndArrayFiles)
{
    Cluster cluster = make_cluster("host:1");
    std::string symmetric = "%%MatrixMarket matrix coordinate real symmetric\n40 40 118\n";
    for (int i = 40; i >= 1; --i) {  // rows fall
        for (const int j : {i, i - 3, i - 11}) {
            symmetric += j >= 1 ? fmt::format("{} {} {}\n", i, j, 1.0 / (3 * i + j)) : "";
        }
    }
    const auto entries = std::count(symmetric.begin(), symmetric.end(), '\n') - 2;
    symmetric.replace(symmetric.find("118"), 3, std::to_string(entries));
    {
        const SharedFile file(cluster, "s.mtx", text(symmetric));
        EXPECT_EQ(check_read<double>(cluster, file.path()).in_parts, cluster.size() > 1);
    }
    std::string repeated = "%%MatrixMarket matrix coordinate real general\n7 9 60\n";
    for (int i = 0; i < 60; ++i) {
        repeated += fmt::format("{} {} {}\n", 1 + i * 5 % 7, 1 + i % 2, 0.1 * i + 1e-9);
    }
    {
        const SharedFile file(cluster, "r.mtx", text(repeated));
        check_read<double>(cluster, file.path(), {}, true);
        check_read<double>(cluster, file.path(), {.sum_duplicates = false});
    }
    const SharedFile file(cluster, "d.mtx",
                          text("%%MatrixMarket matrix array real general\n3 2\n1\n0\n\n0.5\n-2\n0\n8\n"));
    check_read<double>(cluster, file.path());
    const SharedFile skew(
        cluster, "k.mtx",
        text("%%MatrixMarket matrix coordinate integer skew-symmetric\n5 5 3\n2 1 3\n5 4 1\n5 1 9\n"));
    check_read<double>(cluster, skew.path());
}

TEST(ClusterRead, OfEmptyAndLongRows)
{
    Cluster cluster = make_cluster("host:1");
    for (const char* const body :
         {"0 0 0\n", "6 4 0\n", "1 9 4\n1 1 1\n1 4 1\n1 7 2\n1 9 1\n",
          "9 9 6\n4 1 1\n4 2 2\n4 3 3\n4 4 4\n4 5 5\n4 6 6\n", "90 9 5\n89 1 1\n90 2 2\n90 3 3\n1 4 4\n1 5 5\n"}) {
        SCOPED_TRACE(body);
        const SharedFile file(cluster, "e.mtx",
                              text(std::string("%%MatrixMarket matrix coordinate real general\n") + body));
        check_read<double>(cluster, file.path());
    }
}

TEST(ClusterRead, CompressedFiles)
{
    Cluster cluster = make_cluster("host:1");
    const auto a = random_uniform<double>(700, 500, 9);
    for (const char* const name : {"c.mtx.gz", "c.mtx.xz", "c.mtx.zst"}) {
        SCOPED_TRACE(name);
        const SharedFile file(cluster, name, [&](const std::string& path) { write_matrix(path, a.view()); });
        const ReadReport report = check_read<double>(cluster, file.path());
        EXPECT_EQ(report.in_parts, cluster.size() > 1) << report.reason;
        double entries = static_cast<double>(report.entries);
        cluster.sum({&entries, 1});
        EXPECT_EQ(entries, static_cast<double>(a.nnz()));
        if (std::string(name).ends_with("gz")) {
            EXPECT_LE(report.entries, a.nnz() / cluster.size() + 600);
        }
    }
    // Cut off: all throw what the one throws that gets there.
    const SharedFile file(cluster, "t.mtx.gz", [&](const std::string& path) {
        write_matrix(path, a.view());
        std::filesystem::resize_file(path, std::filesystem::file_size(path) - 40);
    });
    try {
        (void)cluster.read<double>(file.path());
        FAIL() << "read";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::io);
        EXPECT_NE(std::string(error.what()).find(file.path() + ": truncated gzip file"), std::string::npos)
            << error.what();
    }
    EXPECT_TRUE(cluster.usable());
}

TEST(ClusterRead, ByTheFirstProcessWhereItCannotBeInParts)
{
    Cluster cluster = make_cluster("host:1");
    const auto a = banded<double>(60, 3);
    // A file that only the first process has.
    const SharedFile here(cluster, "f.mtx", [&](const std::string& path) { write_matrix(path, a.view()); });
    const std::string path = cluster.rank() == 0 ? here.path() : "no such file";
    ReadReport of_one;
    const ClusterRows<double> rows = cluster.read<double>(path, {}, &of_one);
    EXPECT_FALSE(of_one.in_parts);
    double count = static_cast<double>(rows.rows.nnz());
    cluster.sum({&count, 1});
    EXPECT_EQ(count, static_cast<double>(a.nnz()));
    if (cluster.size() > 1) {
        EXPECT_EQ(of_one.reason, "process 1 does not see the same file as process 0");
    }
}

TEST(ClusterRead, ErrorsOfOneAreThrownByAll)
{
    Cluster cluster = make_cluster("host:1");
    const auto message = [&](const std::string& path, const ReadOptions& options = {}) -> std::string {
        try {
            (void)cluster.read<double>(path, options);
        } catch (const Error& error) {
            return error.what();
        }
        return {};
    };
    std::string lines = "%%MatrixMarket matrix coordinate real general\n99 99 40\n";
    for (int i = 1; i <= 40; ++i) {
        lines += i == 38 ? "38 0 1\n" : fmt::format("{} {} 1\n", i, i);
    }
    {
        const SharedFile file(cluster, "bad.mtx", text(lines));
        const std::string found = message(file.path());
        EXPECT_NE(found.find(file.path() + ":40:4: column index 0"), std::string::npos) << found;
    }
    const std::string good = lines.substr(0, lines.find("38 0 1"));
    {
        const SharedFile file(cluster, "short.mtx", text(good));
        const std::string found = message(file.path());
        EXPECT_NE(found.find("the file ends after 37 of 40 entries"), std::string::npos) << found;
    }
    {
        const SharedFile file(cluster, "long.mtx", text(good + "38 1 1\n39 1 1\n40 1 1\n41 1 1\n42 1 1\n"));
        const std::string found = message(file.path());
        EXPECT_NE(found.find(":43:1: more than the 40 entries of the size line"), std::string::npos) << found;
    }
    EXPECT_NE(message("no such file").find("no such file: cannot open"), std::string::npos);
    const auto a = banded<double>(40, 2);
    const SharedFile file(cluster, "damaged.npz", [&](const std::string& path) {
        write_matrix(path, a.view());
        std::fstream out(path, std::ios::in | std::ios::out | std::ios::binary);
        out.seekp(-700, std::ios::end);
        out.put('\x55');
    });
    EXPECT_NE(message(file.path()).find("checksum"), std::string::npos) << message(file.path());
    if (cluster.size() > 1) {
        const SharedFile whole(cluster, "w.mtx", [&](const std::string& path) { write_matrix(path, a.view()); });
        const std::string found = message(whole.path(), {.sum_duplicates = cluster.rank() + 1 != cluster.size()});
        EXPECT_NE(found.find("sum_duplicates differs"), std::string::npos) << found;
        EXPECT_NE(message(whole.path(), {.max_bytes = cluster.rank() == 0 ? 0 : 100}).find("w.mtx"), std::string::npos);
        check_read<double>(cluster, whole.path());  // the cluster is usable still
    }
}

}  // namespace
}  // namespace rmsp::test
