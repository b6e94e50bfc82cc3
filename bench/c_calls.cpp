// What a call of the C interface takes beyond the C++ call that it makes: on a matrix so small that the calls are what
// takes time. Calls of both interfaces take turns; medians, and their difference.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <rmsp/rmsp.h>
#include <rmsp/rmsp.hpp>

#include "program.hpp"

namespace {

void check(rmsp_status status)
{
    if (status != RMSP_SUCCESS) {
        throw rmsp::Error(static_cast<rmsp::ErrorCode>(status), rmsp_last_error());
    }
}

double median(std::vector<double>& seconds)
{
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return *middle;
}

/// Times `calls` calls of each, a `batch` of one and of the other in turn, and prints a line. `end` waits for what a
/// batch has left to do, outside its time.
template <class Cpp, class C, class End>
void compare(const char* name, int calls, int batch, const Cpp& cpp, const C& c, const End& end)
{
    std::vector<double> of_cpp;
    std::vector<double> of_c;
    const auto time = [&](std::vector<double>& into, const auto& call) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < batch; ++i) {
            call();
        }
        into.push_back(seconds_since(begin) / batch);
        end();
    };
    for (int i = 0; i < calls; i += batch) {
        time(of_cpp, cpp);
        time(of_c, c);
    }
    const double a = median(of_cpp);
    const double b = median(of_c);
    fmt::print("{:<27}  C++ {:9.1f} ns, C {:9.1f} ns, difference {:8.1f} ns\n", name, 1e9 * a, 1e9 * b, 1e9 * (b - a));
}

int run(const std::string& devices, int calls)
{
    const std::vector<int> row_ptr{0, 2, 3};
    const std::vector<int> col_idx{0, 1, 1};
    const std::vector<double> values{1, 2, 3};
    const std::vector<double> x{1, 1};
    std::vector<double> y(2);

    rmsp::Runtime runtime({.devices = devices});
    auto matrix = runtime.distribute(rmsp::CsrView<double>{2, 2, 3, row_ptr.data(), col_idx.data(), values.data()});
    auto vector = matrix.make_y();

    rmsp_options* options = nullptr;
    rmsp_runtime* c_runtime = nullptr;
    rmsp_matrix* c_matrix = nullptr;
    rmsp_vector* c_vector = nullptr;
    check(rmsp_options_create(&options));
    check(rmsp_options_set(options, "runtime.devices", devices.c_str()));
    check(rmsp_options_set(options, "runtime.cache", "off"));
    check(rmsp_runtime_create(options, &c_runtime));
    check(rmsp_matrix_create_csr(c_runtime, 2, 2, 3, row_ptr.data(), col_idx.data(), values.data(), RMSP_INT32,
                                 RMSP_INT32, 0, RMSP_DOUBLE, options, &c_matrix));
    check(rmsp_vector_create_y(c_matrix, RMSP_ORDER_MATRIX, &c_vector));

    std::int64_t size = 0;
    compare(
        "size of a vector", 100 * calls, 1000, [&] { size += vector.size(); },
        [&] {
            std::int64_t own = 0;
            check(rmsp_vector_size(c_vector, &own));
            size += own;
        },
        [] {});
    compare(
        "product of host arrays", calls, 20, [&] { matrix.apply(2, x.data(), 0, y.data()); },
        [&] { check(rmsp_matrix_apply(c_matrix, 2, x.data(), 0, y.data())); }, [] {});
    if (runtime.devices().front().kind != rmsp::DeviceKind::host) {
        // Arrays in the GPU's memory: what vectors have there.
        auto from = matrix.make_y();
        double* const x_there = from.local(0).data();
        double* const y_there = vector.local(0).data();
        compare(
            "product in a stream's order", calls, 20,
            [&] { static_cast<void>(matrix.apply_async(2, x_there, 0, y_there, rmsp::StreamRef{})); },
            [&] { check(rmsp_matrix_apply_on_stream(c_matrix, 2, x_there, 0, y_there, nullptr)); },
            [&] {
                runtime.synchronize();
                check(rmsp_runtime_synchronize(c_runtime));
            });
    }

    rmsp_vector_destroy(c_vector);
    rmsp_matrix_destroy(c_matrix);
    rmsp_runtime_destroy(c_runtime);
    rmsp_options_destroy(options);
    return size > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv)
{
    std::string devices = "host:1";
    int calls = 20000;
    CLI::App app{"What a call of the C interface takes beyond the C++ one"};
    app.add_option("--devices", devices, "as runtime.devices")->capture_default_str();
    app.add_option("--calls", calls, "timed products by each interface")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    return report_errors([&] { return run(devices, calls); });
}
