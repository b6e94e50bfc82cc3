// A runtime as a service: clients of their own threads, most with a small matrix and some with a large one, each of
// which waits for its product before it asks for the next one. How many products a second, how long clients wait, and
// how evenly clients of a kind are served: on each thread's own terms (JobOptions), in the order of acceptance, with a
// mutex around every product, and by one thread that does the clients' products in turn. Before that, what a product
// costs one thread alone.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <rmsp/rmsp.hpp>

#include "program.hpp"

namespace {

using Clock = std::chrono::steady_clock;

struct Client {
    rmsp::DistributedMatrix<double>* matrix = nullptr;
    bool large = false;
    std::vector<double> x;
    std::vector<double> y;
    std::vector<double> seconds;  ///< of each product, from the call to the result
};

struct Settings {
    std::string devices = "auto";
    int clients = 16;
    int large_clients = 4;
    int small_grid = 12;
    int large_grid = 64;
    double seconds = 2;
    std::string json;
};

double percentile(std::vector<double> seconds, double share)
{
    if (seconds.empty()) {
        return 0;
    }
    const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(seconds.size() - 1));
    std::nth_element(seconds.begin(), seconds.begin() + at, seconds.end());
    return seconds[static_cast<std::size_t>(at)];
}

enum class Way { options, order, mutex, one_thread };
constexpr std::pair<Way, const char*> ways[] = {{Way::options, "job options"},
                                                {Way::order, "order of acceptance"},
                                                {Way::mutex, "mutex"},
                                                {Way::one_thread, "one thread"}};

std::future<void> ask(Client& client, Way way)
{
    if (way == Way::options) {
        return client.matrix->apply_async(1.0, client.x.data(), 0.0, client.y.data(), rmsp::JobOptions{});
    }
    return client.matrix->apply_async(1.0, client.x.data(), 0.0, client.y.data());
}

void serve(std::vector<Client>& clients, Way way, double seconds)
{
    std::mutex mutex;
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    const auto once = [&](Client& client) {
        const auto begin = Clock::now();
        if (way == Way::mutex) {
            const std::lock_guard lock(mutex);
            ask(client, way).get();
        } else {
            ask(client, way).get();
        }
        client.seconds.push_back(seconds_since(begin));
    };
    if (way == Way::one_thread) {
        // A client's wait begins when the one before it is served.
        std::vector<Clock::time_point> asked(clients.size(), Clock::now());
        while (Clock::now() < end) {
            for (std::size_t i = 0; i < clients.size(); ++i) {
                ask(clients[i], way).get();
                clients[i].seconds.push_back(seconds_since(asked[i]));
                asked[i] = Clock::now();
            }
        }
        return;
    }
    std::vector<std::jthread> threads;
    for (Client& client : clients) {
        threads.emplace_back([&] {
            while (Clock::now() < end) {
                once(client);
            }
        });
    }
}

nlohmann::ordered_json summary(const std::vector<Client>& clients, bool large, double seconds)
{
    std::vector<double> all;
    std::size_t least = 0;
    std::size_t most = 0;
    for (const Client& client : clients) {
        if (client.large != large) {
            continue;
        }
        all.insert(all.end(), client.seconds.begin(), client.seconds.end());
        least = most == 0 ? client.seconds.size() : std::min(least, client.seconds.size());
        most = std::max(most, client.seconds.size());
    }
    const auto count = static_cast<double>(all.size());
    return {{"products_per_second", count / seconds},
            {"p50_seconds", percentile(all, 0.5)},
            {"p99_seconds", percentile(all, 0.99)},
            {"least_over_most", most > 0 ? static_cast<double>(least) / static_cast<double>(most) : 0}};
}

/// What a product of the small matrix takes one thread that has the devices to itself, with vectors there: the least
/// of several rounds.
nlohmann::ordered_json alone(rmsp::DistributedMatrix<double>& matrix, const rmsp::JobOptions* options)
{
    constexpr int rounds = 20;
    constexpr int products = 500;
    auto x = matrix.make_x(rmsp::Layout::rows);
    auto y = matrix.make_y();
    x.fill(1.0);
    const auto ask_for = [&] {
        return options != nullptr ? matrix.apply_async(1.0, x, 0.0, y, *options) : matrix.apply_async(1.0, x, 0.0, y);
    };
    double waited = 1e9;
    double queued = 1e9;
    for (int round = 0; round < rounds; ++round) {
        auto begin = Clock::now();
        for (int i = 0; i < products; ++i) {
            ask_for().get();
        }
        waited = std::min(waited, seconds_since(begin) / products);
        begin = Clock::now();
        std::future<void> last;
        for (int i = 0; i < products; ++i) {
            last = ask_for();
        }
        last.get();
        queued = std::min(queued, seconds_since(begin) / products);
    }
    return {{"seconds_waited_for", waited}, {"seconds_queued", queued}};
}

int run(const Settings& settings)
{
    rmsp::RuntimeOptions options;
    options.devices = settings.devices;
    rmsp::Runtime runtime(options);
    const auto grid = [](int n) { return rmsp::generate<double>(fmt::format("stencil7 {0} {0} {0}", n)); };
    const auto small = grid(settings.small_grid);
    const auto large = grid(settings.large_grid);
    auto small_matrix = runtime.distribute(small.view());
    auto large_matrix = runtime.distribute(large.view());

    fmt::print("{:<22}{:>26}{:>20}\n", "one thread alone", "each waited for, us", "queued ahead, us");
    auto single = nlohmann::ordered_json::array();
    const rmsp::JobOptions normal;
    for (const auto& [name, job_options] :
         {std::pair{"before there are lanes", static_cast<const rmsp::JobOptions*>(nullptr)},
          {"with options", &normal},
          {"without, among lanes", nullptr}}) {
        auto result = alone(small_matrix, job_options);
        fmt::print("{:<22}{:>26.2f}{:>20.2f}\n", name, 1e6 * result["seconds_waited_for"].get<double>(),
                   1e6 * result["seconds_queued"].get<double>());
        result["name"] = name;
        single.push_back(std::move(result));
    }

    auto results = nlohmann::ordered_json::array();
    fmt::print("{:<22}{:>8}{:>14}{:>12}{:>12}{:>14}\n", "", "clients", "products/s", "p50 us", "p99 us",
               "least / most");
    for (const auto& [way, name] : ways) {
        std::vector<Client> clients(static_cast<std::size_t>(settings.clients));
        for (std::size_t i = 0; i < clients.size(); ++i) {
            Client& client = clients[i];
            client.large = i < static_cast<std::size_t>(settings.large_clients);
            client.matrix = client.large ? &large_matrix : &small_matrix;
            client.x.assign(static_cast<std::size_t>(client.matrix->cols()), 1.0);
            client.y.assign(static_cast<std::size_t>(client.matrix->rows()), 0.0);
        }
        const rmsp::Metrics before = runtime.metrics();
        const auto begin = Clock::now();
        serve(clients, way, settings.seconds);
        const double took = seconds_since(begin);
        const rmsp::Metrics after = runtime.metrics();
        nlohmann::ordered_json result{{"name", name}, {"seconds", took}};
        double busy = 0;
        for (std::size_t i = 0; i < after.devices.size(); ++i) {
            busy += (after.devices[i].busy_seconds - before.devices[i].busy_seconds) / took;
        }
        result["busy_share"] = busy / static_cast<double>(after.devices.size());
        for (const bool is_large : {false, true}) {
            const auto s = summary(clients, is_large, took);
            fmt::print("{:<22}{:>8}{:>14.0f}{:>12.0f}{:>12.0f}{:>14.2f}\n", name, is_large ? "large" : "small",
                       s["products_per_second"].get<double>(), 1e6 * s["p50_seconds"].get<double>(),
                       1e6 * s["p99_seconds"].get<double>(), s["least_over_most"].get<double>());
            result[is_large ? "large" : "small"] = s;
        }
        results.push_back(std::move(result));
    }
    if (!settings.json.empty()) {
        auto context = run_context("bench_service");
        context["devices"] = device_names(runtime);
        context["clients"] = settings.clients;
        context["large_clients"] = settings.large_clients;
        context["small"] = fmt::format("stencil7 {0} {0} {0}", settings.small_grid);
        context["large"] = fmt::format("stencil7 {0} {0} {0}", settings.large_grid);
        const nlohmann::ordered_json document{
            {"schema", results_schema}, {"context", context}, {"alone", single}, {"benchmarks", results}};
        write_file(settings.json, document.dump(2) + "\n");
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    Settings settings;
    CLI::App app("Serves clients of many threads, with small and large products, in four ways");
    app.add_option("--devices", settings.devices, "as runtime.devices");
    app.add_option("--clients", settings.clients, "threads that ask for products")->check(CLI::Range(1, 4096));
    app.add_option("--large", settings.large_clients, "how many of them have the large matrix");
    app.add_option("--small-grid", settings.small_grid,
                   "the small matrix is the 7-point stencil of a cube of this side");
    app.add_option("--large-grid", settings.large_grid, "the same of the large one");
    app.add_option("--seconds", settings.seconds, "of each way");
    app.add_option("--json", settings.json, "file for the results");
    CLI11_PARSE(app, argc, argv);
    return report_errors([&] { return run(settings); });
}
