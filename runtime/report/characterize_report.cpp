#include <rmsp/characterize.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/text.hpp"
#include "runtime/report/report_parts.hpp"

namespace rmsp {
namespace {

using report::Json;

/// What gains less is not worth a sentence.
constexpr double least_gain = 1.02;
/// Times what its bytes take: a product that takes longer is bound by something else.
constexpr double most_of_bytes = 2;

double over(std::int64_t part, std::int64_t whole)
{
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

Json traffic_json(const Traffic& t) { return {{"words", t.words}, {"bytes", t.bytes}}; }

Json cache_json(const SimulatedCache& cache)
{
    if (!cache.done) {
        return nullptr;
    }
    return {{"bytes", cache.bytes()},
            {"read_bytes", cache.read_bytes},
            {"written_bytes", cache.written_bytes},
            {"compulsory_bytes", cache.compulsory_bytes},
            {"uncached_bytes", cache.uncached_bytes}};
}

std::string operation(const Characterization& c) { return c.product ? "C = A B" : "y = A x"; }

std::string method_text(const UpperBound& upper)
{
    if (upper.method == "one part") {
        return "everything fits the fast memory";
    }
    const std::string how =
        upper.method == "multiplies" ? "a vertex for each multiply"
        : upper.method == "rows"
            ? "coarse: a vertex for each row, too many multiplies for more"
            : "rows in their order, cut where the fast memory is full: less than by the partitioner";
    return fmt::format("{} parts, {}; partitioner {}", text::grouped(upper.parts), how, upper.partitioner);
}

std::string of_lower(const CharacterizeReport& r, std::int64_t bytes)
{
    return fmt::format("{}, {:.2f} times the lower bound", text::bytes(bytes), over(bytes, r.found.lower().bytes));
}

std::string orders_text(const CharacterizeReport& r)
{
    using Align = text::Table::Align;
    text::Table table({{"order", Align::left},
                       {"simulated cache", Align::right},
                       {"of lower", Align::right},
                       {"cut by rows", Align::right},
                       {"of lower", Align::right},
                       {"measured", Align::right}});
    const std::int64_t lower = r.found.lower().bytes;
    for (const OrderTraffic& order : r.found.orders) {
        table.add({order.name, order.cache.done ? text::bytes(order.cache.bytes()) : "-",
                   order.cache.done ? fmt::format("{:.2f}", over(order.cache.bytes(), lower)) : "-",
                   text::bytes(order.cut.bytes), fmt::format("{:.2f}", over(order.cut.bytes, lower)),
                   order.seconds > 0 ? text::seconds(order.seconds) : "-"});
    }
    return table.to_text(2);
}

void advise_on_bound(const CharacterizeReport& r, std::vector<std::string>& out)
{
    const Characterization& c = r.found;
    const double intensity = c.flops() / static_cast<double>(c.lower().bytes);
    std::string first =
        fmt::format("In whatever order, it does at most {:.3f} operations for each byte moved", intensity);
    if (r.limit_gbs <= 0) {
        out.push_back(first + '.');
        return;
    }
    const double roof = intensity * r.limit_gbs;
    const double least = static_cast<double>(c.lower().bytes) / (r.limit_gbs * 1e9);
    first +=
        fmt::format(": {:.1f} GB/s allow {:.2f} GFLOP/s, a product in {}.", r.limit_gbs, roof, text::seconds(least));
    if (r.peak_gflops > 0) {
        first +=
            roof < r.peak_gflops
                ? fmt::format(" The arithmetic could do {:.1f}: memory is the bound.", r.peak_gflops)
                : fmt::format(" The arithmetic does {:.1f}, which is less: arithmetic is the bound.", r.peak_gflops);
    }
    out.push_back(std::move(first));
    if (r.seconds > 0) {
        out.push_back(
            fmt::format("Measured: {}, {:.2f} GFLOP/s, {:.2f} times what the lower bound takes{}.",
                        text::seconds(r.seconds), c.flops() / r.seconds * 1e-9, r.seconds / least,
                        r.seconds < least ? ": the operands stay in a cache, which is faster than the memory" : ""));
    }
}

void advise_on_order(const CharacterizeReport& r, std::vector<std::string>& out)
{
    const Characterization& c = r.found;
    if (c.cache.done) {
        std::string text = fmt::format("By rows, a cache of {} moves {:.2f} times the lower bound",
                                       rmsp::text::bytes(c.fast_bytes), r.cache_ratio());
        if (r.cache_ratio() < least_gain) {
            text += ": no order moves noticeably less.";
        } else if (r.cache_ratio() < least_gain * r.upper_ratio()) {
            text += fmt::format(
                "; the order of its multiplies that was found moves {:.2f} times. Whether there is a "
                "better one is open.",
                r.upper_ratio());
        } else {
            text += fmt::format(". An order of its multiplies moves {:.2f} times: {} of the traffic is the order's.",
                                r.upper_ratio(), rmsp::text::percent(1 - r.upper_ratio() / r.cache_ratio()));
        }
        out.push_back(std::move(text));
        const double seconds = r.limit_gbs > 0 ? static_cast<double>(c.cache.bytes()) / (r.limit_gbs * 1e9) : 0;
        if (seconds > 0 && r.seconds > most_of_bytes * seconds) {
            out.push_back(
                fmt::format("To move what that cache does takes {}, so bytes are not what most of the measured "
                            "time goes to.",
                            rmsp::text::seconds(seconds)));
        }
    }
    if (c.orders.size() < 2) {
        return;
    }
    const bool simulated = c.orders.front().cache.done;
    const auto bytes = [&](const OrderTraffic& o) { return simulated ? o.cache.bytes() : o.cut.bytes; };
    const auto best = std::min_element(c.orders.begin(), c.orders.end(),
                                       [&](const auto& x, const auto& y) { return bytes(x) < bytes(y); });
    const OrderTraffic& none = c.orders.front();
    if (static_cast<double>(bytes(none)) < least_gain * static_cast<double>(bytes(*best))) {
        out.emplace_back("Another numbering of its rows moves no less: none, mesh, degree and partition were tried.");
        return;
    }
    std::string text =
        fmt::format("Numbered anew (order {}), {} moves {} instead of {}, {} less", best->name,
                    simulated ? "the cache" : "a cut by rows", rmsp::text::bytes(bytes(*best)),
                    rmsp::text::bytes(bytes(none)), rmsp::text::percent(1 - over(bytes(*best), bytes(none))));
    if (none.seconds > 0 && best->seconds > 0) {
        text += fmt::format("; measured {} instead of {}", rmsp::text::seconds(best->seconds),
                            rmsp::text::seconds(none.seconds));
    }
    out.push_back(text + '.');
}

void advise_on_plan(const CharacterizeReport& r, std::vector<std::string>& out)
{
    if (!r.kernels.empty()) {
        const KernelCandidate& first = r.kernels.front();
        const auto in_place =
            std::find_if(r.kernels.begin(), r.kernels.end(), [](const KernelCandidate& k) { return !k.own_format; });
        std::string text = fmt::format("Format: {} is predicted to be the fastest on one device, {}", first.kernel,
                                       rmsp::text::seconds(first.predicted_seconds));
        if (first.own_format && in_place != r.kernels.end() && first.predicted_seconds > 0) {
            text += fmt::format(", {:.2f} times as fast as {} on the CSR arrays",
                                in_place->predicted_seconds / first.predicted_seconds, in_place->kernel);
        }
        out.push_back(text + '.');
    }
    if (r.devices.size() < 2) {
        return;
    }
    const auto best = std::min_element(r.devices.begin(), r.devices.end(), [](const auto& x, const auto& y) {
        return x.predicted_seconds < y.predicted_seconds;
    });
    const double one = r.devices.front().predicted_seconds;
    if (one > 0 && best->devices > 1 && one > least_gain * best->predicted_seconds) {
        out.push_back(fmt::format("Devices: {} of them are predicted to take {}, {:.2f} times as fast as one.",
                                  best->devices, text::seconds(best->predicted_seconds),
                                  one / best->predicted_seconds));
    } else if (one > 0) {
        out.emplace_back("Devices: more than one are not predicted to be faster.");
    }
}

Json rows_json(const Characterization& c)
{
    return {{"shortest", c.shortest_row},        {"longest", c.row_lengths.longest_row},
            {"mean", c.row_lengths.mean},        {"deviation", c.row_lengths.deviation},
            {"empty", c.row_lengths.empty_rows}, {"histogram", c.row_histogram}};
}

Json orders_json(const Characterization& c)
{
    Json orders = Json::array();
    for (const OrderTraffic& order : c.orders) {
        orders.push_back({{"order", order.name},
                          {"cache", cache_json(order.cache)},
                          {"cut", traffic_json(order.cut)},
                          {"seconds", order.seconds > 0 ? Json(order.seconds) : Json(nullptr)}});
    }
    return orders;
}

Json plan_json(const CharacterizeReport& r)
{
    Json kernels = Json::array();
    for (const KernelCandidate& k : r.kernels) {
        kernels.push_back({{"kernel", k.kernel},
                           {"own_format", k.own_format},
                           {"bytes", k.bytes},
                           {"seconds", k.predicted_seconds},
                           {"prepare_seconds", k.prepare_seconds}});
    }
    Json devices = Json::array();
    for (const auto& d : r.devices) {
        devices.push_back({{"devices", d.devices}, {"seconds", d.predicted_seconds}});
    }
    return {{"kernels", std::move(kernels)}, {"devices", std::move(devices)}};
}

}  // namespace

double CharacterizeReport::cache_ratio() const
{
    return found.cache.done ? over(found.cache.bytes(), found.lower().bytes) : 0;
}

double CharacterizeReport::upper_ratio() const { return over(found.upper.moved.bytes, found.lower().bytes); }

std::vector<std::string> CharacterizeReport::advice() const
{
    std::vector<std::string> out;
    if (found.multiplies == 0) {
        out.emplace_back("There is nothing to multiply.");
        return out;
    }
    advise_on_bound(*this, out);
    advise_on_order(*this, out);
    advise_on_plan(*this, out);
    return out;
}

std::string CharacterizeReport::to_text() const
{
    const Characterization& c = found;
    const RowStatistics& rows = c.row_lengths;
    std::string out = text::wrapped("A             ", a);
    if (c.product) {
        out += text::wrapped("B             ", b);
    }
    out += text::wrapped("Machine       ", topology);
    out += report::library_text(context);
    out += fmt::format("\nOperation     {}, {}\n", operation(c), c.precision);
    out += fmt::format("  A           {} x {}, {} nonzeros\n", text::grouped(c.rows), text::grouped(c.inner),
                       text::grouped(c.a_nnz));
    out += fmt::format("  rows of A   {} to {} nonzeros, mean {:.2f}, deviation {:.2f}; {} empty\n",
                       text::grouped(c.shortest_row), text::grouped(rows.longest_row), rows.mean, rows.deviation,
                       text::grouped(rows.empty_rows));
    if (c.product) {
        out += fmt::format("  B           {} x {}, {} nonzeros\n", text::grouped(c.inner), text::grouped(c.cols),
                           text::grouped(c.b_nnz));
        out += fmt::format("  C           {} nonzeros, {:.2f} multiplies for each\n", text::grouped(c.c_nnz),
                           c.compression());
    }
    out += fmt::format("  operations  {} ({} multiplies), at most {:.3f} for each word\n",
                       text::grouped(2 * c.multiplies), text::grouped(c.multiplies), c.intensity_per_word());

    out += fmt::format("\nBytes moved   with a fast memory of {}, lines of {} B\n", text::bytes(c.fast_bytes),
                       c.line_bytes);
    out += fmt::format("  footprint   {}, {} words: all that is used, once\n", text::bytes(c.footprint.bytes),
                       text::grouped(c.footprint.words));
    if (c.product) {
        out += fmt::format(
            "  1.72 N / sqrt(C)  {}\n",
            text::bytes(static_cast<std::int64_t>(c.multiply_bound_words * static_cast<double>(c.value_bytes))));
    }
    out += fmt::format("  upper       {}\n", of_lower(*this, c.upper.moved.bytes));
    out += text::wrapped("              ", method_text(c.upper));
    out += c.cache.done
               ? fmt::format("  by rows     {}, in a simulated cache; {} without one\n",
                             of_lower(*this, c.cache.bytes()), text::bytes(c.cache.uncached_bytes))
               : fmt::format("  by rows     not simulated: {} multiplies are too many\n", text::grouped(c.multiplies));
    if (!c.orders.empty()) {
        out += "\nOrders        of rows and columns\n" + orders_text(*this);
    }
    out += "\nIn words\n";
    for (const std::string& sentence : advice()) {
        out += text::wrapped("  - ", sentence);
    }
    return out + report::notes_text(notes);
}

std::string CharacterizeReport::to_json() const
{
    const Characterization& c = found;
    Json about = report::context_json(context);
    about["a"] = a;
    about["b"] = b;
    about["topology"] = topology;
    about["notes"] = notes;
    const Json upper = {{"method", c.upper.method},       {"partitioner", c.upper.partitioner},
                        {"parts", c.upper.parts},         {"partitions", c.upper.partitions},
                        {"words", c.upper.moved.words},   {"bytes", c.upper.moved.bytes},
                        {"of_lower", this->upper_ratio()}};
    const Json document = {
        {"schema", "rmsp-characterize-1"},
        {"context", about},
        {"matrix",
         {{"operation", operation(c)},
          {"precision", c.precision},
          {"rows", c.rows},
          {"inner", c.inner},
          {"cols", c.cols},
          {"a_nonzeros", c.a_nnz},
          {"b_nonzeros", c.b_nnz},
          {"c_nonzeros", c.c_nnz},
          {"multiplies", c.multiplies},
          {"flops", c.flops()},
          {"compression", c.compression()},
          {"flops_per_word", c.intensity_per_word()},
          {"row_lengths", rows_json(c)}}},
        {"bounds",
         {{"fast_bytes", c.fast_bytes},
          {"line_bytes", c.line_bytes},
          {"footprint", traffic_json(c.footprint)},
          {"multiply_bound_words", c.multiply_bound_words},
          {"lower", traffic_json(c.lower())},
          {"upper", upper},
          {"cache", cache_json(c.cache)}}},
        {"orders", orders_json(c)},
        {"measured", {{"how", measured}, {"seconds", seconds}, {"limit_gbs", limit_gbs}, {"peak_gflops", peak_gflops}}},
        {"predicted", plan_json(*this)},
        {"advice", advice()}};
    return document.dump(2) + '\n';
}

}  // namespace rmsp
