#include "apps/mspmv_mpi/doctor.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/version.hpp>

namespace rmsp::mpi {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using Bytes = std::vector<unsigned char>;

constexpr int tag = 0;
constexpr int turns = 3;            ///< of which the fastest counts
constexpr int short_messages = 50;  ///< there and back, in a turn
constexpr std::int64_t short_bytes = 8;

/// What one pair measured.
struct Link {
    double latency_seconds = std::numeric_limits<double>::infinity();  ///< of a short message, one way
    double one_way = std::numeric_limits<double>::infinity();          ///< seconds of a large one
    double both_ways = std::numeric_limits<double>::infinity();        ///< of two at once
    double wrong = 0;                                                  ///< messages that arrived changed
};

/// This process's side of a pair.
class Pair {
public:
    Pair(MPI_Comm communicator, int other, bool first, const LinkOptions& options)
        : communicator_(communicator),
          other_(other),
          first_(first),
          out_(static_cast<std::size_t>(options.bytes)),
          in_(out_.size()),
          end_(Clock::now() +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.time_limit_seconds)))
    {
    }

    Link measure()
    {
        Link link;
        const auto large = static_cast<std::int64_t>(out_.size());
        for (int turn = 0; turn < turns; ++turn) {
            const auto best = [&](double& least, double seconds) { least = std::min(least, seconds); };
            best(link.latency_seconds, there_and_back(short_bytes, short_messages, link) / 2);
            best(link.one_way, there_and_back(large, 1, link) / 2);
            best(link.both_ways, at_once(large, link));
        }
        return link;
    }

private:
    /// Seconds of a message there and one back, the mean of some.
    double there_and_back(std::int64_t bytes, int times, Link& link)
    {
        fill(bytes);
        const auto began = Clock::now();
        for (int i = 0; i < times; ++i) {
            if (first_) {
                finish({send(bytes)});
                finish({receive(bytes)});
            } else {
                finish({receive(bytes)});
                finish({send(bytes)});
            }
        }
        const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
        compare(bytes, link);
        return seconds / times;
    }

    double at_once(std::int64_t bytes, Link& link)
    {
        there_and_back(short_bytes, 1, link);  // both begin together
        fill(bytes);
        const auto began = Clock::now();
        finish({receive(bytes), send(bytes)});
        const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
        compare(bytes, link);
        return seconds;
    }

    void fill(std::int64_t bytes)
    {
        ++round_;
        for (std::int64_t i = 0; i<bytes; i += bytes> 64 ? 61 : 1) {
            out_[static_cast<std::size_t>(i)] = pattern(i, first_);
            in_[static_cast<std::size_t>(i)] = 0;
        }
    }
    void compare(std::int64_t bytes, Link& link) const
    {
        for (std::int64_t i = 0; i<bytes; i += bytes> 64 ? 61 : 1) {
            if (in_[static_cast<std::size_t>(i)] != pattern(i, !first_)) {
                link.wrong += 1;
                return;
            }
        }
    }
    unsigned char pattern(std::int64_t i, bool of_first) const
    {
        return static_cast<unsigned char>(1 + (i * 131 + round_ * 17 + (of_first ? 0 : 101)) % 255);
    }

    MPI_Request send(std::int64_t bytes)
    {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Isend(out_.data(), static_cast<int>(bytes), MPI_BYTE, other_, tag, communicator_, &request);
        return request;
    }
    MPI_Request receive(std::int64_t bytes)
    {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Irecv(in_.data(), static_cast<int>(bytes), MPI_BYTE, other_, tag, communicator_, &request);
        return request;
    }
    void finish(std::vector<MPI_Request> requests) const
    {
        for (int looks = 1;; ++looks) {
            int done = 0;
            MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
            if (done != 0) {
                return;
            }
            if (looks % 1024 == 0) {
                std::this_thread::yield();  // processes may share a core
                if (Clock::now() > end_) {
                    throw Error(ErrorCode::device,
                                fmt::format("messages with process {} did not arrive in time", other_));
                }
            }
        }
    }

    const MPI_Comm communicator_;
    const int other_;
    const bool first_;
    Bytes out_;
    Bytes in_;
    std::int64_t round_ = 0;
    const Clock::time_point end_;
};

/// Waits without taking the cores of those that are measured.
void meet(MPI_Comm communicator)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(communicator, &request);
    for (int done = 0; done == 0;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done == 0) {
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
    }
}

/// What all processes know of a pair then. Collective.
Link measure_pair(MPI_Comm communicator, int rank, int first, int second, const LinkOptions& options)
{
    Link link;
    if (rank == first || rank == second) {
        link = Pair(communicator, rank == first ? second : first, rank == first, options).measure();
    }
    meet(communicator);
    // As the first of the two has it, but for what the other one received.
    std::array<double, 4> numbers{link.latency_seconds, link.one_way, link.both_ways, link.wrong};
    MPI_Bcast(numbers.data(), 3, MPI_DOUBLE, first, communicator);
    MPI_Allreduce(&link.wrong, &numbers[3], 1, MPI_DOUBLE, MPI_SUM, communicator);
    return {numbers[0], numbers[1], numbers[2], numbers[3]};
}

double gbs_of(std::int64_t bytes, double seconds) { return static_cast<double>(bytes) / seconds * 1e-9; }

/// \throws Error(device) where messages arrived changed
void require_intact(double wrong)
{
    if (wrong > 0) {
        throw Error(ErrorCode::device, fmt::format("{:g} messages arrived changed", wrong));
    }
}

/// The processor name of each process.
std::vector<std::string> node_names(MPI_Comm communicator, int size)
{
    std::array<char, MPI_MAX_PROCESSOR_NAME> own{};
    int length = 0;
    MPI_Get_processor_name(own.data(), &length);
    std::vector<char> all(own.size() * static_cast<std::size_t>(size));
    MPI_Allgather(own.data(), static_cast<int>(own.size()), MPI_CHAR, all.data(), static_cast<int>(own.size()),
                  MPI_CHAR, communicator);
    std::vector<std::string> names;
    for (std::size_t p = 0; p < static_cast<std::size_t>(size); ++p) {
        names.emplace_back(&all[p * own.size()]);
    }
    return names;
}

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace

Json measure_links(MPI_Comm communicator, const LinkOptions& options)
{
    if (options.bytes < short_bytes || options.bytes > (std::int64_t{1} << 30) || !(options.time_limit_seconds > 0)) {
        throw Error(ErrorCode::usage,
                    fmt::format("messages of {} bytes in {} s: from {} bytes to 1 GiB can be measured, "
                                "in more than 0 s",
                                options.bytes, options.time_limit_seconds, short_bytes));
    }
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &size);
    const std::vector<std::string> nodes = node_names(communicator, size);
    Json pairs = Json::array();
    double wrong = 0;
    std::vector<double> latencies;
    std::vector<double> bandwidths;
    for (int first = 0; first < size; ++first) {
        for (int second = first + 1; second < size; ++second) {
            const Link link = measure_pair(communicator, rank, first, second, options);
            wrong += link.wrong;
            const auto gbs = [&](double seconds) { return gbs_of(options.bytes, seconds); };
            const bool between_nodes =
                nodes[static_cast<std::size_t>(first)] != nodes[static_cast<std::size_t>(second)];
            pairs.push_back({{"from", first},
                             {"to", second},
                             {"between_nodes", between_nodes},
                             {"latency_us", link.latency_seconds * 1e6},
                             {"one_way_gbs", gbs(link.one_way)},
                             {"both_ways_gbs", 2 * gbs(link.both_ways)},
                             {"intact", link.wrong == 0}});
            if (between_nodes) {
                latencies.push_back(link.latency_seconds * 1e6);
                bandwidths.push_back(gbs(link.one_way));
            }
        }
    }
    require_intact(wrong);
    Json report{{"schema", "rmsp-links-1"},
                {"librmsp", version()},
                {"bytes", options.bytes},
                {"processes", nodes},
                {"pairs", std::move(pairs)}};
    if (!latencies.empty()) {
        report["network"] = {{"bandwidth_gbs", median(bandwidths)}, {"latency_us", median(latencies)}};
    }
    return report;
}

Network measure_network(MPI_Comm communicator, const LinkOptions& options)
{
    constexpr std::size_t most_pairs = 16;
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &size);
    const std::vector<std::string> nodes = node_names(communicator, size);
    std::vector<int> all;
    std::vector<int> between;
    for (int first = 0; first + 1 < size; ++first) {
        const auto at = static_cast<std::size_t>(first);
        all.push_back(first);
        if (nodes[at] != nodes[at + 1]) {
            between.push_back(first);
        }
    }
    const std::vector<int>& from = between.empty() ? all : between;
    const std::size_t pairs = std::min(from.size(), most_pairs);
    std::vector<double> latencies;
    std::vector<double> bandwidths;
    double wrong = 0;
    for (std::size_t i = 0; i < pairs; ++i) {
        const int first = from[i * from.size() / pairs];
        const Link link = measure_pair(communicator, rank, first, first + 1, options);
        wrong += link.wrong;
        latencies.push_back(link.latency_seconds * 1e6);
        bandwidths.push_back(gbs_of(options.bytes, link.one_way));
    }
    require_intact(wrong);
    return {median(bandwidths), pairs > 0 ? 1 : 0, median(latencies)};
}

std::string links_text(const Json& report)
{
    std::string text =
        fmt::format("Links between {} processes, messages of {} bytes in host memory, one pair at a time\n",
                    report["processes"].size(), report["bytes"].get<std::int64_t>());
    for (std::size_t p = 0; p < report["processes"].size(); ++p) {
        text += fmt::format("  process {}: {}\n", p, report["processes"][p].get<std::string>());
    }
    if (report["pairs"].empty()) {
        return text + "  no pairs: start two processes or more\n";
    }
    text += "  from    to  between    latency    one way  both ways\n";
    for (const Json& pair : report["pairs"]) {
        text += fmt::format("  {:>4}  {:>4}  {:<7} {:>7.2f} us {:>5.2f} GB/s {:>5.2f} GB/s\n", pair["from"].get<int>(),
                            pair["to"].get<int>(), pair["between_nodes"].get<bool>() ? "nodes" : "cores",
                            pair["latency_us"].get<double>(), pair["one_way_gbs"].get<double>(),
                            pair["both_ways_gbs"].get<double>());
    }
    if (report.contains("network")) {
        text += fmt::format(
            "\nFor the description of such a machine (docs/topology.md), the median of the pairs between nodes:\n"
            "[network]\nbandwidth_gbs = {:.3g}\nlatency_us = {:.3g}\n",
            report["network"]["bandwidth_gbs"].get<double>(), report["network"]["latency_us"].get<double>());
    }
    return text;
}

}  // namespace rmsp::mpi
