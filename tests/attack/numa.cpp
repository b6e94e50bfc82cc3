#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <numa/binding.hpp>
#include <numa/pages.hpp>
#include <rmsp/rmsp.hpp>

#include "runtime/matrix/matrix_state.hpp"
#include "runtime/matrix/vector_state.hpp"

/// Where memory lies on a machine of several NUMA nodes, read back by move_pages(2). One line for each finding, the
/// last one "passed" or "failed". scripts/attack numa runs it on an emulated machine.
namespace {

using rmsp::detail::MatrixAccess;
using rmsp::detail::VectorAccess;
using Nodes = std::map<int, std::int64_t>;

bool failed = false;

void expect(bool good, const std::string& what)
{
    std::printf("%s  %s\n", good ? "ok    " : "FAILED", what.c_str());
    failed = failed || !good;
}

template <class T>
Nodes nodes_of(const T* p, std::int64_t n)
{
    return rmsp::numa::nodes_of_pages(p, static_cast<std::size_t>(n) * sizeof(T), rmsp::numa::system_move_pages);
}

std::string text(const Nodes& nodes)
{
    std::string out;
    for (const auto& [node, bytes] : nodes) {
        out +=
            (out.empty() ? "node " : ", node ") + std::to_string(node) + ": " + std::to_string(bytes / 1024) + " KiB";
    }
    return out.empty() ? "no pages" : out;
}

/// All but a huge page at each end of a part, which moves as a whole with what the device beside it reads.
bool mostly_on(const Nodes& nodes, int node)
{
    std::int64_t all = 0;
    for (const auto& [of, bytes] : nodes) {
        all += bytes;
    }
    const auto found = nodes.find(node);
    constexpr std::int64_t huge_page = std::int64_t{2} << 20;
    return found != nodes.end() && all - found->second <= std::min(all / 4, 2 * huge_page);
}

rmsp::CsrMatrix<double> bands(std::int64_t rows, std::int64_t width)
{
    rmsp::CsrMatrix<double> a;
    a.rows = a.cols = rows;
    a.row_ptr.resize(static_cast<std::size_t>(rows + 1));
    a.values.resize(static_cast<std::size_t>(rows * width));
    std::vector<std::int32_t> columns;
    for (std::int64_t row = 0; row <= rows; ++row) {
        a.row_ptr[static_cast<std::size_t>(row)] = row * width;
        for (std::int64_t k = 0; row < rows && k < width; ++k) {
            columns.push_back(static_cast<std::int32_t>((row + k) % rows));
            a.values[columns.size() - 1] = 1.0 + static_cast<double>(k);
        }
    }
    a.col_idx.visit([&](auto& to) { to.assign(columns.begin(), columns.end()); });
    return a;
}

void check_product(rmsp::DistributedMatrix<double>& matrix, const rmsp::CsrMatrix<double>& a, const std::string& what)
{
    const std::vector<double> x(static_cast<std::size_t>(a.cols), 0.5);
    std::vector<double> y(static_cast<std::size_t>(a.rows));
    matrix.apply(1.0, x.data(), 0.0, y.data());
    expect(rmsp::verify_spmv(a.view(), 1.0, x.data(), 0.0, y.data(), y.data()).passed, what + ": the product is right");
}

void check_streamed(rmsp::Runtime& runtime, rmsp::StreamPlacement placement, const std::string& name)
{
    // Parts of several huge pages, on any number of nodes.
    const rmsp::CsrMatrix<double> a = bands(60'000 * static_cast<std::int64_t>(runtime.devices().size()), 40);
    rmsp::DistributeOptions options;
    options.mode = rmsp::Mode::streamed;
    options.placement = placement;
    const Nodes before = nodes_of(a.values.data(), a.nnz());
    auto matrix = runtime.distribute(a.view(), options);
    const auto devices = runtime.devices();
    const double* const read = MatrixAccess::state(matrix)->origin.source->a.values;
    bool everywhere = true;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        const rmsp::PartialCsr& part = matrix.plan().partition.parts[i];
        const Nodes nodes = nodes_of(read + part.start_idx, part.nnz());
        std::printf("        %s: device %zu of node %d reads values on %s\n", name.c_str(), i, devices[i].numa_node,
                    text(nodes).c_str());
        everywhere = everywhere && mostly_on(nodes, devices[i].numa_node);
    }
    const bool kept = placement == rmsp::StreamPlacement::keep;
    expect(everywhere != kept, name + (kept ? ": some devices read other nodes' memory, as is to be shown"
                                            : ": each device reads its own node's memory"));
    if (placement != rmsp::StreamPlacement::move) {
        expect(nodes_of(a.values.data(), a.nnz()) == before, name + ": the caller's pages are where they were");
    }
    for (const std::string& note : MatrixAccess::state(matrix)->record.notes) {
        std::printf("        report: %s\n", note.c_str());
    }
    check_product(matrix, a, name);
}

void check_vectors(rmsp::Runtime& runtime)
{
    const rmsp::CsrMatrix<double> a = bands(400'000, 2);
    auto matrix = runtime.distribute(a.view());
    const std::vector<double> ones(static_cast<std::size_t>(a.rows), 1.0);
    for (auto [name, vector] : {std::pair{"x", matrix.make_x(rmsp::Layout::rows)}, std::pair{"y", matrix.make_y()}}) {
        vector.upload(ones.data());
        const auto& state = *VectorAccess::state(vector);
        for (std::size_t i = 0; i < state.slices.size(); ++i) {
            const Nodes nodes = nodes_of(state.slices[i], state.offsets[i + 1] - state.offsets[i]);
            const int node = runtime.devices()[i].numa_node;
            expect(mostly_on(nodes, node), std::string(name) + " by rows: device " + std::to_string(i) + " of node " +
                                               std::to_string(node) + " has its slice on " + text(nodes));
        }
    }
}

void check_spanning()
{
    rmsp::RuntimeOptions options;
    options.devices = "host:1";
    rmsp::Runtime runtime(options);
    const rmsp::CsrMatrix<double> a = bands(200'000, 20);
    auto matrix = runtime.distribute(a.view());
    const auto& shard = MatrixAccess::state(matrix)->shards[0]->owned;
    const Nodes nodes = nodes_of(shard.values, shard.nnz);
    bool several = nodes.size() > 1;
    for (const auto& [node, bytes] : nodes) {
        several = several && 3 * bytes >= a.nnz() * 8 / static_cast<std::int64_t>(nodes.size());
    }
    expect(several, "a device over all nodes has its matrix on " + text(nodes));
    check_product(matrix, a, "a device over all nodes");
}

}  // namespace

int main()
{
    try {
        rmsp::RuntimeOptions options;
        options.devices = "auto";  // a host device for each node
        rmsp::Runtime runtime(options);
        std::printf("        %zu NUMA nodes, %zu devices\n", runtime.topology().nodes.size(), runtime.devices().size());
        expect(runtime.topology().nodes.size() >= 2, "the machine has several NUMA nodes");
        check_streamed(runtime, rmsp::StreamPlacement::keep, "keep");
        check_streamed(runtime, rmsp::StreamPlacement::move, "move");
        check_streamed(runtime, rmsp::StreamPlacement::copy, "copy");
        check_vectors(runtime);
        check_spanning();
    } catch (const std::exception& e) {
        expect(false, e.what());
    }
    std::printf("%s\n", failed ? "failed" : "passed");
    return failed ? 1 : 0;
}
