// A program of the library's public API that goes on where a request fails: what fails is tried once more. Exit status
// 0: every result was right, and each step succeeded at the latest at its second try; the code of the Error if a step
// failed twice; 9 if a result was wrong. Arguments: the rows of its matrix (64) and the devices (host:2x1).
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <vector>

#include <rmsp/rmsp.hpp>

namespace {

/// Runs a step, a second time if it failed. \return 0, or the second failure's code
int step(const char* name, const std::function<void()>& body)
{
    int code = 0;
    for (int attempt = 0; attempt < 2; ++attempt) {
        try {
            body();
            return 0;
        } catch (const rmsp::Error& e) {
            std::fprintf(stderr, "service: error: %s: %s\n", name, e.what());
            code = static_cast<int>(e.code());
        } catch (const std::bad_alloc&) {
            std::fprintf(stderr, "service: error: %s: out of host memory\n", name);
            code = static_cast<int>(rmsp::ErrorCode::out_of_memory);
        } catch (const std::exception& e) {
            std::fprintf(stderr, "service: error: %s: %s\n", name, e.what());
            code = static_cast<int>(rmsp::ErrorCode::internal);
        }
    }
    return code;
}

int run(std::int64_t rows, const char* devices)
{
    std::vector<std::int64_t> row_ptr;
    std::vector<std::int32_t> col_idx;
    std::vector<double> values;
    std::vector<double> x;
    std::vector<double> y;
    std::optional<rmsp::Runtime> runtime;
    std::optional<rmsp::DistributedMatrix<double>> matrix;
    std::optional<rmsp::SparseProduct<double>> square;
    rmsp::CsrView<double> a;
    bool wrong = false;
    int code = 0;
    const auto then = [&](const char* name, const std::function<void()>& body) {
        code = code != 0 ? code : step(name, body);
    };
    then("make the matrix", [&] {
        row_ptr.assign(1, 0);
        col_idx.clear();
        values.clear();
        for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t k = 0; k <= i % 5; ++k) {
                col_idx.push_back(static_cast<std::int32_t>((i + k * 7) % rows));
                values.push_back(static_cast<double>(1 + k));
            }
            row_ptr.push_back(static_cast<std::int64_t>(values.size()));
        }
        x.assign(static_cast<std::size_t>(rows), 1.0);
        y.assign(static_cast<std::size_t>(rows), 0.0);
        a = {rows, rows, static_cast<std::int64_t>(values.size()), row_ptr.data(), col_idx.data(), values.data()};
    });
    const auto check = [&] {
        for (std::int64_t i = 0; i < rows; ++i) {
            const auto terms = static_cast<double>(i % 5 + 1);
            wrong = wrong || y[static_cast<std::size_t>(i)] != terms * (terms + 1) / 2;
        }
    };
    then("open the runtime", [&] {
        rmsp::RuntimeOptions options;
        options.devices = devices;
        options.cache = "off";
        runtime.emplace(options);
    });
    then("distribute", [&] { matrix.emplace(runtime->distribute(a)); });
    then("apply", [&] {
        matrix->apply(1.0, x.data(), 0.0, y.data());
        check();
    });
    then("apply with vectors on the devices", [&] {
        auto there_x = matrix->make_x(rmsp::Layout::rows);
        auto there_y = matrix->make_y();
        there_x.upload(x.data());
        matrix->apply(1.0, there_x, 0.0, there_y);
        y.assign(static_cast<std::size_t>(rows), 0.0);
        there_y.download(y.data());
        check();
    });
    then("square", [&] {
        square.emplace(*runtime, a, a);
        square->compute();
        const rmsp::CsrMatrix<double> c = square->download();
        const rmsp::Verification v = rmsp::verify_spgemm<double>(a, a, 1.0, c.view(), c.rows);
        wrong = wrong || !v.passed;
    });
    then("apply again", [&] {
        y.assign(static_cast<std::size_t>(rows), 0.0);
        matrix->apply(1.0, x.data(), 0.0, y.data());
        check();
    });
    return wrong ? 9 : code;
}

}  // namespace

int main(int argc, char** argv)
{
    try {
        return run(argc > 1 ? std::atoi(argv[1]) : 64, argc > 2 ? argv[2] : "host:2x1");
    } catch (const std::exception& e) {
        std::fprintf(stderr, "service: error: %s\n", e.what());
        return static_cast<int>(rmsp::ErrorCode::out_of_memory);
    }
}
