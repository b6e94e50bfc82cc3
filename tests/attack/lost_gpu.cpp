// A kernel traps on the last of the GPUs: what has a part on it fails by its name, what has none goes on, what was
// there comes back on the others, and everything ends. For two GPUs or more. Exit status 0: all that holds; 77: too few
// GPUs. Where a kernel traps, CUDA ends all work of the process, whatever connects the GPUs: so far this fails on two,
// with each of `--transports peer`, `nccl` and `host`.
#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <rmsp/rmsp.hpp>
#include <runtime/matrix/matrix_state.hpp>
#include <runtime/node/node.hpp>

#include "trap.hpp"

namespace {

int failures = 0;

void expect(bool holds, const char* what)
{
    fmt::print("{} {}\n", holds ? "  " : "NO", what);
    std::fflush(stdout);
    failures += holds ? 0 : 1;
}

bool multiplies(rmsp::DistributedMatrix<double>& matrix, const rmsp::CsrMatrix<double>& a)
{
    std::vector<double> x(static_cast<std::size_t>(a.cols));
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<double>(i % 7) - 3;
    }
    std::vector<double> y(static_cast<std::size_t>(a.rows));
    matrix.apply(1.0, x.data(), 0.0, y.data());
    bool right = rmsp::verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed;
    auto there_x = matrix.make_x(rmsp::Layout::rows);
    auto there_y = matrix.make_y();
    there_x.upload(x.data());
    matrix.apply(1.0, there_x, 0.0, there_y);
    there_y.download(y.data());
    right = right && rmsp::verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed;
    return right;
}

/// Whether it throws an error of a device that has all these parts.
bool fails_by_name(const std::function<void()>& f, const std::vector<std::string>& parts)
{
    try {
        f();
    } catch (const rmsp::Error& e) {
        fmt::print("   says: {}\n", e.what());
        bool named = e.code() == rmsp::ErrorCode::device;
        for (const std::string& part : parts) {
            named = named && std::string(e.what()).find(part) != std::string::npos;
        }
        return named;
    }
    return false;
}

int attack(const std::vector<std::string>& transports)
{
    const auto a = rmsp::generate<double>("stencil7 30 30 30");
    rmsp::RuntimeOptions automatic;
    automatic.transports = transports;
    rmsp::Runtime runtime(automatic);
    const auto infos = runtime.devices();
    if (infos.front().kind != rmsp::DeviceKind::cuda) {
        fmt::print("there is no GPU\n");
        return 77;
    }
    const auto gpus = infos.size();
    fmt::print("{} GPUs, transport \"{}\"\n", gpus, rmsp::detail::RuntimeAccess::state(runtime)->transport_name());
    const int last = infos.back().index;
    const std::string name = fmt::format("cuda:{} ", last);
    rmsp::DistributeOptions on_all;
    on_all.devices = static_cast<int>(gpus);
    rmsp::DistributeOptions on_one;
    on_one.devices = 1;
    auto everywhere = runtime.distribute(a.view(), on_all);
    auto first = runtime.distribute(a.view(), on_one);
    expect(multiplies(everywhere, a) && multiplies(first, a), "before: both matrices multiply");

    auto trapped = rmsp::detail::RuntimeAccess::state(runtime)->submit(
        [rank = static_cast<int>(gpus) - 1](rmsp::engine::Worker& worker, rmsp::engine::Rendezvous&) {
            if (worker.rank() == rank) {
                queue_trap(worker.context().stream);
            }
        });
    expect(trapped.wait_for(std::chrono::seconds(20)) == std::future_status::ready, "the job that trapped ends");
    expect(fails_by_name([&] { trapped.get(); }, {name, "is lost"}), "its error names the GPU");
    // The worst that a caller's thread can have.
    make_current(last);
    expect(fails_by_name([&] { (void)multiplies(everywhere, a); }, {name, "is lost"}),
           "a matrix with a part on it fails by its name");
    const auto told = runtime.devices();
    expect(!told.back().loss.empty() && (gpus == 1 || told.front().loss.empty()), "Runtime::devices() says which one");
    expect(runtime.metrics().devices.back().lost, "so do the metrics");
    if (gpus == 1) {
        expect(fails_by_name([&] { runtime.redistribute(everywhere, a.view()); }, {"every device"}),
               "there is nowhere to bring the matrix");
        expect(fails_by_name([&] { rmsp::Runtime refused(automatic); }, {"every GPU is lost"}),
               "a new runtime says so");
        rmsp::RuntimeOptions on_host;
        on_host.devices = "host:2x1";
        rmsp::Runtime host(on_host);
        auto there = host.distribute(a.view());
        expect(multiplies(there, a), "host devices multiply");
        return failures == 0 ? 0 : 1;
    }
    expect(multiplies(first, a), "a matrix with no part on it goes on");
    {
        rmsp::Runtime another(automatic);
        expect(another.devices().size() == gpus - 1, "a new runtime leaves it out");
        auto there = another.distribute(a.view());
        expect(multiplies(there, a), "and multiplies");
    }
    expect(fails_by_name(
               [&] {
                   rmsp::RuntimeOptions by_number = automatic;
                   by_number.devices = std::to_string(last);
                   rmsp::Runtime refused(by_number);
               },
               {"is lost"}),
           "its number is refused");
    runtime.redistribute(everywhere, a.view());
    expect(runtime.devices().size() == gpus - 1 && multiplies(everywhere, a),
           "the matrix comes back on the healthy ones");
    expect(multiplies(first, a), "the other one is where it was");
    return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv)
{
    std::vector<std::string> transports;
    if (argc > 1) {
        std::istringstream names(argc == 3 && std::string(argv[1]) == "--transports" ? argv[2] : "");
        for (std::string name; std::getline(names, name, ',');) {
            transports.push_back(name);
        }
        if (transports.empty()) {
            std::fprintf(stderr, "usage: attack_lost_gpu [--transports NAME[,NAME...]]\n");
            return 2;
        }
    }
    try {
        const int status = attack(transports);
        fmt::print("{}\n", status == 0 ? "passed, and all of it ended" : status == 77 ? "left out" : "not passed");
        return status;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "attack_lost_gpu: error: %s\n", e.what());
        return 1;
    }
}
