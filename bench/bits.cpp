// Prints a hash of the bits of every kind of result that the library computes: the same before and after a change that
// is to change none. A line is "CASE HASH", or "CASE error MESSAGE" where the library refuses. Kernels are named, or
// chosen by the model alone (determinism "run"), so that nothing depends on times; those that keep no determinism are
// run where values are small integers, whose sums are the same in any order. Hashes belong to one machine and compiler.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <rmsp/rmsp.hpp>

#include "bits_input.hpp"
#include "program.hpp"

namespace {

using rmsp::Determinism, rmsp::DistributeOptions, rmsp::Layout, rmsp::Order;

/// 64-bit FNV-1a.
class Hash {
public:
    template <class T>
    Hash& add(const T* values, std::size_t n)
    {
        const auto* bytes = reinterpret_cast<const unsigned char*>(values);
        for (std::size_t i = 0; i < n * sizeof(T); ++i) {
            value_ = (value_ ^ bytes[i]) * 0x100000001b3u;
        }
        return *this;
    }
    template <class V>
    Hash& add(const V& values)
    {
        return add(values.data(), values.size());
    }
    Hash& add(const rmsp::IndexArray& indices)
    {
        return indices.view().visit([&](const auto* data) -> Hash& { return add(data, indices.size()); });
    }
    Hash& add(std::int64_t number) { return add(&number, 1); }
    template <class T>
    Hash& add(const rmsp::CsrMatrix<T>& a)
    {
        return add(a.rows).add(a.cols).add(a.row_ptr).add(a.col_idx).add(a.values);
    }
    template <class T>
    Hash& add(const rmsp::CscMatrix<T>& a)
    {
        return add(a.rows).add(a.cols).add(a.col_ptr).add(a.row_idx).add(a.values);
    }
    template <class T>
    Hash& add(const rmsp::CooMatrix<T>& a)
    {
        return add(a.rows).add(a.cols).add(a.row_idx).add(a.col_idx).add(a.values);
    }
    std::uint64_t value() const { return value_; }

private:
    std::uint64_t value_ = 0xcbf29ce484222325u;
};

/// Which cases to run, and where their lines go.
class Output {
public:
    explicit Output(std::string filter) : filter_(std::move(filter)) {}
    /// Whether the cases of a group, which share a matrix on the devices, are asked for.
    bool wants(const std::string& group) const { return group.find(filter_) != std::string::npos; }

    /// Prints the hash that `f(Hash&)` makes, or why it could not. False: it could not.
    template <class F>
    bool line(const std::string& name, const F& f) const
    {
        try {
            Hash hash;
            f(hash);
            fmt::print("{} {:016x}\n", name, hash.value());
            return true;
        } catch (const std::exception& e) {
            const std::string message = e.what();
            fmt::print("{} error {}\n", name, message.substr(0, std::min<std::size_t>(80, message.find('\n'))));
            return false;
        }
    }

private:
    std::string filter_;
};

enum class Vectors { host, replicated, rows, kernel_order };

Layout layout_of(Vectors where) { return where == Vectors::replicated ? Layout::replicated : Layout::rows; }
Order order_of(Vectors where) { return where == Vectors::kernel_order ? Order::kernel : Order::matrix; }

/// With vectors on the devices; does not wait.
template <class T>
std::future<void> start(rmsp::DistributedMatrix<T>& a, bool transposed, T alpha, const rmsp::DistributedVector<T>& x,
                        T beta, rmsp::DistributedVector<T>& y)
{
    return transposed ? a.apply_transposed_async(alpha, x, beta, y) : a.apply_async(alpha, x, beta, y);
}

/// y = alpha A x + beta y or, transposed, alpha A^T x + beta y. With beta == 0, y is NaN before.
template <class T>
std::vector<T> product(rmsp::DistributedMatrix<T>& a, const Input<T>& in, Vectors where, bool transposed, T alpha,
                       T beta)
{
    std::vector<T> y(in.y.begin(), in.y.begin() + (transposed ? a.cols() : a.rows()));
    if (beta == T(0)) {
        std::fill(y.begin(), y.end(), std::numeric_limits<T>::quiet_NaN());
    }
    if (where == Vectors::host) {
        transposed     ? a.apply_transposed(alpha, in.x.data(), beta, y.data())
        : beta == T(0) ? a.apply(alpha, in.x.data(), beta, y.data())
                       : a.apply_async(alpha, in.x.data(), beta, y.data()).get();
        return y;
    }
    auto x_there = transposed ? a.make_y(order_of(where)) : a.make_x(layout_of(where), order_of(where));
    auto y_there = transposed ? a.make_x(Layout::rows, order_of(where)) : a.make_y(order_of(where));
    x_there.upload(in.x.data());
    y_there.upload(y.data());
    start(a, transposed, alpha, x_there, beta, y_there).get();
    y_there.download(y.data());
    return y;
}

/// Distributes, then multiplies in many ways, or in few.
template <class T>
void products(const Output& out, const std::string& group, rmsp::Runtime& runtime, const Input<T>& in,
              const std::string& format, const DistributeOptions& options, bool many)
{
    rmsp::DistributedMatrix<T> a;
    const auto prepare = [&](Hash& hash) {
        a = distribute(runtime, in, format, options);
        for (const rmsp::ShardPlan& shard : a.plan().shards) {
            hash.add(shard.kernel).add(shard.part.start_idx).add(shard.part.start_row).add(shard.part.end_row);
        }
    };
    if (!out.wants(group) || !out.line(group, prepare)) {
        return;
    }
    const auto multiply = [&](const char* name, Vectors where, bool transposed, T alpha, T beta) {
        return out.line(group + name, [&](Hash& hash) { hash.add(product(a, in, where, transposed, alpha, beta)); });
    };
    multiply("/A/host/2,-1", Vectors::host, false, 2, -1);
    multiply("/A/rows/1,0", Vectors::rows, false, 1, 0);
    const bool transposable = multiply("/AT/rows/2,-1", Vectors::rows, true, 2, -1);
    if (!many) {
        return;
    }
    multiply("/A/host/1,0", Vectors::host, false, 1, 0);
    multiply("/A/rows/2,-1", Vectors::rows, false, 2, -1);
    multiply("/A/replicated/2,-1", Vectors::replicated, false, 2, -1);
    multiply("/A/kernel-order/1,0", Vectors::kernel_order, false, 1, 0);
    multiply("/A/kernel-order/2,-1", Vectors::kernel_order, false, 2, -1);
    if (transposable) {
        multiply("/AT/host/1,0", Vectors::host, true, 1, 0);
        multiply("/AT/rows/1,0", Vectors::rows, true, 1, 0);
    }
    if (options.mode == rmsp::Mode::resident) {
        out.line(group + "/new-values", [&](Hash& hash) {
            a.update_values(in.new_values().data());
            hash.add(product<T>(a, in, Vectors::host, false, 2, -1));
        });
    }
}

/// What can run on these devices, and "auto", of a family and format; determinism is at most "run".
std::vector<rmsp::KernelInfo> kernels_for(const rmsp::Runtime& runtime, const std::string& family, rmsp::Format format)
{
    std::vector<rmsp::KernelInfo> all(1);
    all.front().name = "auto";
    all.front().determinism = Determinism::run;
    for (rmsp::KernelInfo info : rmsp::list_kernels()) {
        if (info.compiled && info.family == family && info.format == format &&
            info.device == runtime.devices().front().kind) {
            info.determinism = std::min(info.determinism, Determinism::run);
            all.push_back(std::move(info));
        }
    }
    return all;
}

/// Of the kernels that multiply it: what is streamed and sorted gets pointers.
rmsp::Format shard_format(const std::string& format, bool streamed)
{
    return format.starts_with("csr") || (streamed && (format == "coo-row" || format == "coo-sort")) ? rmsp::Format::csr
           : format.starts_with("csc") || (streamed && format == "coo-column")                      ? rmsp::Format::csc
                                                                                                    : rmsp::Format::coo;
}

/// Every kernel on every matrix, and every option on a few; `narrow`: what kernels have no part in.
template <class T>
void spmv_cases(const Output& out, const std::string& prefix, rmsp::Runtime& runtime,
                const std::vector<Input<T>>& inputs, bool narrow)
{
    enum Scope { every_input, every_format, csr };
    struct Setting {
        const char* name;
        Scope scope;
        std::function<void(DistributeOptions&)> change;
    };
    using O = DistributeOptions;
    using rmsp::Exchange, rmsp::RowAlignment;
    const auto streamed = [](O& o, std::int64_t bytes) { o.mode = rmsp::Mode::streamed, o.chunk_bytes = bytes; };
    constexpr auto automatic = rmsp::StreamEncoding::automatic;
    const std::vector<Setting> settings{
        {"resident", every_input, [](O&) {}},
        {"streamed", every_input, [=](O& o) { streamed(o, 16384); }},
        {"encoded", every_input, [=](O& o) { streamed(o, 16384), o.encoding = automatic; }},
        {"row", every_format, [](O& o) { o.alignment = RowAlignment::row; }},
        {"near-row", csr, [](O& o) { o.alignment = RowAlignment::automatic; }},
        {"equal-rows", every_format, [](O& o) { o.strategy = rmsp::PartitionStrategy::rows; }},
        {"entries", csr, [](O& o) { o.exchange = Exchange::entries; }},
        {"entries-row", csr, [](O& o) { o.exchange = Exchange::entries, o.alignment = RowAlignment::row; }},
        {"any-exchange", csr, [](O& o) { o.exchange = Exchange::automatic; }},
        {"transposed", every_format, [](O& o) { o.transposed = true, o.exchange = Exchange::entries; }},
        {"floats", csr, [](O& o) { o.values = rmsp::StoredValues::floats; }},
        {"host-pointers", csr, [](O& o) { o.row_pointers = rmsp::RowPointers::host; }},
        {"replicated", csr, [](O& o) { o.x_layout = Layout::replicated; }},
        {"often", csr, [](O& o) { o.expected_applies = 1000; }},
        {"device-count", every_format, [](O& o) { o.determinism = Determinism::device_count; }},
        {"one-device", csr, [](O& o) { o.devices = 1; }},
        {"borrowed", csr, [](O& o) { o.borrow = true; }},
        {"merge-peer", every_format, [](O& o) { o.merge = "peer"; }},
        {"merge-nccl", every_format, [](O& o) { o.merge = "nccl"; }},
        {"merge-host", every_format, [](O& o) { o.merge = "host"; }},
        {"streamed-small", every_format, [=](O& o) { streamed(o, 1024); }},
        {"streamed-default", csr, [=](O& o) { streamed(o, 0); }},
        {"streamed-unpinned", csr, [=](O& o) { streamed(o, 4096), o.pin = false; }},
        {"streamed-row", csr, [=](O& o) { streamed(o, 4096), o.alignment = RowAlignment::row; }},
        {"streamed-device-count", csr, [=](O& o) { streamed(o, 4096), o.determinism = Determinism::device_count; }},
        {"encoded-default", csr, [=](O& o) { streamed(o, 0), o.encoding = automatic; }},
    };
    for (const Setting& setting : settings) {
        for (const std::string format : formats) {
            DistributeOptions options;
            options.alignment = RowAlignment::exact;
            options.balance = rmsp::Balance::nonzeros;
            options.exchange = Exchange::ranges;
            setting.change(options);
            const Determinism least = options.determinism;
            const auto kernels =
                kernels_for(runtime, "spmv", shard_format(format, options.mode == rmsp::Mode::streamed));
            for (const rmsp::KernelInfo& kernel : kernels) {
                for (const Input<T>& in : inputs) {
                    const bool wanted = in.name == "hub-integer" || (sizeof(T) == 8 && in.name == "rmat") ||
                                        (setting.scope == every_input && (format == "csr" || in.name == "wide"));
                    if (!wanted || (narrow && kernel.name != "auto") || (setting.scope == csr && format != "csr") ||
                        (kernel.determinism == Determinism::none && !in.exact)) {
                        continue;
                    }
                    options.kernel = kernel.name;
                    options.determinism = std::max(least, kernel.determinism);
                    products(out, fmt::format("{}/{}/{}/{}/{}", prefix, setting.name, format, kernel.name, in.name),
                             runtime, in, format, options, !narrow && setting.scope == every_input);
                }
            }
        }
    }
}

/// Operations between vectors, and an iteration with them that waits for nothing but its norms.
template <class T>
void vector_cases(const Output& out, const std::string& prefix, rmsp::Runtime& runtime, const Input<T>& in)
{
    const std::string group = fmt::format("{}/vectors/{}", prefix, in.name);
    if (!out.wants(group) || !in.square()) {
        return;
    }
    rmsp::DistributedMatrix<T> a;
    const bool gpus = runtime.devices().front().kind == rmsp::DeviceKind::cuda;
    const auto prepare = [&](Hash&) {
        a = runtime.distribute(in.csr.view(), {.balance = rmsp::Balance::nonzeros,
                                               .kernel = gpus ? "sell-reordered" : "auto",  // has an order of its own
                                               .determinism = Determinism::run});
    };
    if (!out.line(group, prepare)) {
        return;
    }
    for (const Vectors where : {Vectors::replicated, Vectors::rows, Vectors::kernel_order}) {
        const char* const names[] = {"host", "replicated", "rows", "kernel-order"};
        const std::string name = fmt::format("{}/{}", group, names[static_cast<int>(where)]);
        auto x = a.make_x(layout_of(where), order_of(where));
        auto y = a.make_x(layout_of(where), order_of(where));
        std::vector<T> result(in.x.size());
        const auto operation = [&](const char* what, const auto& f) {
            out.line(fmt::format("{}/{}", name, what), [&](Hash& hash) {
                x.upload(in.x.data());
                y.upload(in.y.data());
                f(hash);
                y.download(result.data());
                hash.add(result);
            });
        };
        const auto add = [](Hash& hash, T sum) { hash.add(&sum, 1); };
        operation("axpy", [&](Hash&) { rmsp::axpy(T(-0.7), x, y); });
        operation("scal", [&](Hash&) { rmsp::scal(T(1.3), y); });
        operation("copy", [&](Hash&) { rmsp::copy(x, y); });
        operation("fill", [&](Hash&) { y.fill(T(0.1)); });
        operation("dot", [&](Hash& hash) { add(hash, rmsp::dot(x, y)); });
        operation("norm2", [&](Hash& hash) { add(hash, rmsp::norm2(x)); });
        operation("iteration", [&](Hash& hash) {
            for (int i = 0; i < 5 && where != Vectors::replicated; ++i) {
                static_cast<void>(start(a, false, T(1), x, T(0.5), y));
                const T norm = rmsp::norm2(y);
                add(hash, norm);
                rmsp::scal(norm > T(0) ? 1 / norm : T(1), y);
                rmsp::axpy(T(0.25), y, x);
            }
        });
    }
}

template <class T>
void spgemm_cases(const Output& out, const std::string& prefix, rmsp::Runtime& runtime, const Input<T>& in)
{
    const auto a = in.csr.view();
    if (a.nnz > 30000) {
        return;
    }
    const auto at = rmsp::transposed(a);
    const auto values = in.new_values();
    const auto restriction =
        make_input<T>("", Values::integer, rmsp::random_uniform<T>((a.rows + 2) / 3, a.rows, 4)).csr;
    const auto prolongation = rmsp::transposed(restriction.view());
    for (const rmsp::KernelInfo& kernel : kernels_for(runtime, "spgemm", rmsp::Format::csr)) {
        const std::string group = fmt::format("{}/spgemm/{}/{}", prefix, kernel.name, in.name);
        const bool atomic = runtime.devices().front().kind == rmsp::DeviceKind::cuda;  // even what "auto" takes
        if (!out.wants(group) || (atomic && !in.exact)) {
            continue;
        }
        const auto line = [&](const std::string& name, const auto& f) { out.line(group + "/" + name, f); };
        rmsp::SpgemmOptions options;
        options.kernel = kernel.name;
        options.determinism = atomic ? Determinism::none : kernel.determinism;
        const auto times_transpose = [&](const std::string& name, const auto& change) {
            rmsp::SpgemmOptions wanted = options;
            change(wanted);
            line("A*AT" + name, [&](Hash& hash) { hash.add(rmsp::multiply<T>(runtime, a, at.view(), wanted)); });
        };
        using O = rmsp::SpgemmOptions;
        times_transpose("", [](O&) {});
        times_transpose("/limited", [](O& o) { o.memory_limit = 3e6; });
        times_transpose("/pruned", [&](O& o) { o.prune_below = in.exact ? 3 : 0.3; });
        if (in.exact) {
            for (const std::string name :
                 {"scatter", "scatter-1", "scatter-2", "scatter-4", "scatter-8", "hash", "window", "chunks"}) {
                times_transpose("/" + name, [&](O& o) { o.accumulator = name; });
            }
            for (const std::string name : {"none", "peer", "nccl", "host"}) {
                times_transpose("/from-" + name, [&](O& o) { o.transport = name; });
            }
        }
        if (!in.square()) {
            continue;
        }
        line("2AA-A", [&](Hash& hash) { hash.add(rmsp::multiply_add<T>(runtime, 2, a, a, -1, a, options)); });
        line("RAP", [&](Hash& hash) {
            rmsp::TripleProduct<T> rap(runtime, restriction.view(), a, prolongation.view(), options);
            hash.add(rap.compute()).add(rap.compute(values.data()));
        });
        line("A*A", [&](Hash& hash) {
            rmsp::SparseProduct<T> c(runtime, a, a, options);
            c.compute(T(2));
            hash.add(c.download());
            auto matrix = c.distribute({.alignment = rmsp::RowAlignment::row,
                                        .balance = rmsp::Balance::nonzeros,
                                        .determinism = Determinism::run});
            hash.add(product<T>(matrix, in, Vectors::host, false, 1, 0));
            c.update_values(values.data(), nullptr);
            c.compute();
            c.renew(matrix);
            hash.add(c.download()).add(product<T>(matrix, in, Vectors::host, false, 1, 0));
        });
        for (const auto alignment : {rmsp::RowAlignment::row, rmsp::RowAlignment::exact}) {
            line(alignment == rmsp::RowAlignment::row ? "resident-row" : "resident-exact", [&](Hash& hash) {
                auto factor = runtime.distribute(
                    a, {.alignment = alignment, .balance = rmsp::Balance::nonzeros, .determinism = Determinism::run});
                rmsp::SparseProduct<T> square(runtime, factor, factor, options);
                square.compute();
                rmsp::SparseProduct<T> cube(runtime, square, a, options);
                cube.compute();
                hash.add(square.download()).add(cube.download());
            });
        }
    }
}

/// What happens on the host, or the same on a GPU: conversions, renumbering, matrix algebra.
template <class T>
void matrix_cases(const Output& out, const std::string& prefix, rmsp::Runtime& runtime, const Input<T>& in)
{
    const std::string group = fmt::format("{}/matrix/{}", prefix, in.name);
    if (!out.wants(group)) {
        return;
    }
    const auto line = [&](const std::string& name, const auto& f) { out.line(group + "/" + name, f); };
    const auto csr = in.csr.view();
    const auto csc = in.csc.view();
    const auto coo = in.shuffled.view();
    line("input", [&](Hash& hash) { hash.add(in.csr).add(in.csc).add(in.by_row).add(in.by_column).add(in.shuffled); });
    line("to_csr", [&](Hash& hash) { hash.add(rmsp::to_csr(csc)).add(rmsp::to_csr(coo)); });
    line("to_csc", [&](Hash& hash) { hash.add(rmsp::to_csc(coo)); });
    line("sort", [&](Hash& hash) { hash.add(rmsp::sort_by_row(coo)).add(rmsp::sort_by_column(coo)); });
    line("device/to_csr", [&](Hash& hash) { hash.add(to_csr(runtime, csc)).add(to_csr(runtime, coo)); });
    line("device/to_csc", [&](Hash& hash) { hash.add(to_csc(runtime, csr)).add(to_csc(runtime, coo)); });
    line("device/to_coo", [&](Hash& hash) { hash.add(to_coo(runtime, csr)).add(to_coo(runtime, csc)); });
    line("transposed", [&](Hash& hash) { hash.add(rmsp::transposed(csr)); });
    line("pruned", [&](Hash& hash) { hash.add(rmsp::pruned(csr, in.exact ? 3 : 0.4)); });
    line("add", [&](Hash& hash) { hash.add(rmsp::add(T(2), csr, T(-0.7), csr)); });
    line("plus_identity", [&](Hash& hash) { hash.add(rmsp::plus_identity(csr)); });
    line("kronecker_ones", [&](Hash& hash) { hash.add(rmsp::kronecker_ones(csr, 2)); });
    line("renumbered", [&](Hash& hash) {
        const auto row_at = rmsp::mesh_order(csr);
        std::vector<T> there(row_at.size());
        std::vector<T> back(row_at.size());
        rmsp::renumber<T>(row_at, in.x.data(), there.data());
        rmsp::restore<T>(row_at, in.y.data(), back.data());
        hash.add(row_at).add(rmsp::renumbered(csr, row_at)).add(there).add(back);
    });
}

template <class T>
void run_all(const Output& out, const std::string& devices, bool quick)
{
    const std::vector<Input<T>> inputs = make_inputs<T>(quick);
    const auto cases = [&](const std::string& name, const rmsp::RuntimeOptions& options) {
        const std::string prefix = fmt::format("{}{}/{}", devices, name, sizeof(T) == 8 ? "double" : "float");
        const bool all = name.empty();
        out.line(prefix, [&](Hash& hash) {
            rmsp::Runtime runtime(options);
            hash.add(static_cast<std::int64_t>(runtime.devices().size()));
            spmv_cases(out, prefix, runtime, inputs, !all);
            for (const Input<T>& in : inputs) {
                if (all || in.name == "hub-integer" || in.name == "rmat") {
                    vector_cases(out, prefix, runtime, in);
                    spgemm_cases(out, prefix, runtime, in);
                }
                if (all) {
                    matrix_cases(out, prefix, runtime, in);
                }
            }
        });
    };
    rmsp::RuntimeOptions options;
    options.devices = devices;
    options.limit_gbs = 1000;  // given, since choices depend on it
    cases("", options);
    const std::vector<rmsp::DeviceInfo> opened = rmsp::Runtime(options).devices();
    if (opened.size() == 1) {
        return;
    }
    if (opened.front().kind == rmsp::DeviceKind::cuda) {
        for (const char* transport : {"peer", "nccl", "host"}) {
            options.transports = {transport};
            cases(fmt::format("+{}", transport), options);
        }
        options.transports.clear();
    }
    options.one_thread = true;
    cases("+one-thread", options);
    options.one_thread = false;
    for (std::size_t i = 0; i < opened.size(); ++i) {
        options.weights.push_back(1.0 + 0.5 * static_cast<double>(i));
    }
    cases("+weights", options);
}

}  // namespace

int main(int argc, char** argv)
{
    std::vector<std::string> device_sets;
    std::string filter;
    bool quick = false;
    CLI::App app("Prints a hash of every kind of result, to compare two builds of librmsp on one machine");
    app.add_option("--devices", device_sets, "device sets, each as runtime.devices has it")
        ->type_name("SET...")
        ->required();
    app.add_option("--filter", filter, "only groups of cases whose names hold this: spgemm, double/encoded/csr");
    app.add_flag("--quick", quick, "tiny matrices");
    CLI11_PARSE(app, argc, argv);
    return report_errors([&] {
        const Output out(filter);
        for (const std::string& devices : device_sets) {
            run_all<double>(out, devices, quick);
            run_all<float>(out, devices, quick);
        }
        return 0;
    });
}
