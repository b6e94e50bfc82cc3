#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <rmsp/plan.hpp>

#include "core/text.hpp"
#include "runtime/plan/cluster_text.hpp"

namespace rmsp {
namespace {

/// Reasons of the placements with the devices that each holds for, in order of the first.
std::string placement_reasons(const std::vector<ShardPlan>& shards)
{
    std::vector<std::pair<std::string, std::vector<int>>> groups;
    for (const ShardPlan& shard : shards) {
        const auto same = std::find_if(groups.begin(), groups.end(),
                                       [&](const auto& group) { return group.first == shard.placement.reason; });
        if (same == groups.end()) {
            groups.push_back({shard.placement.reason, {shard.device}});
        } else {
            same->second.push_back(shard.device);
        }
    }
    std::string out;
    for (const auto& [reason, devices] : groups) {
        if (!reason.empty()) {
            out += text::wrapped("  placed      ", fmt::format("{} {}: {}", devices.size() == 1 ? "device" : "devices",
                                                               text::ranges(devices), reason));
        }
    }
    return out;
}

double listed_seconds(const KernelCandidate& c)
{
    return c.measured_seconds > 0 ? c.measured_seconds : c.predicted_seconds;
}

/// Why the kernel was taken although others are listed as faster; "" where none is.
std::string reason_against_faster(const ShardPlan& shard, std::int64_t applies)
{
    const auto chosen = std::find_if(shard.candidates.begin(), shard.candidates.end(),
                                     [&](const KernelCandidate& c) { return c.kernel == shard.kernel; });
    std::string out;
    for (const KernelCandidate& c : shard.candidates) {
        if (chosen == shard.candidates.end() || !(listed_seconds(c) < listed_seconds(*chosen))) {
            continue;
        }
        if (chosen->measured_seconds > 0 && !(c.measured_seconds > 0)) {
            out += fmt::format("; {} is predicted only, and what was measured counts first", c.kernel);
        } else if (c.prepare_seconds > chosen->prepare_seconds && applies > 0) {
            const double gain = chosen->predicted_seconds - c.predicted_seconds;
            out += fmt::format("; {} needs a format that takes {} to make, and {} applies gain {}", c.kernel,
                               text::seconds(c.prepare_seconds), text::grouped(applies),
                               text::seconds(gain * static_cast<double>(applies)));
        }
    }
    return out;
}

std::string predictions_text(const Plan& plan)
{
    if (plan.predictions.empty()) {
        return "";
    }
    using Align = text::Table::Align;
    text::Table table({{"devices", Align::right}, {"an apply", Align::right}, {"speed-up", Align::right}});
    const double one = plan.predictions.front().seconds;
    for (const DevicePrediction& p : plan.predictions) {
        table.add({fmt::format("{}", p.devices), text::seconds(p.seconds),
                   p.seconds > 0 ? fmt::format("{:.2f}", one / p.seconds) : "-"});
    }
    return table.to_text(14);
}

/// What the kernels were chosen among, for the device where the choice matters most: the one with the most nonzeros.
std::string choice_text(const Plan& plan)
{
    const std::vector<ShardPlan>& shards = plan.shards;
    const auto largest = std::max_element(shards.begin(), shards.end(), [](const ShardPlan& a, const ShardPlan& b) {
        return (a.candidates.empty() ? -1 : a.part.nnz()) < (b.candidates.empty() ? -1 : b.part.nnz());
    });
    if (largest == shards.end() || largest->candidates.size() < 2) {
        return "";
    }
    std::string list;
    for (const KernelCandidate& c : largest->candidates) {
        list += fmt::format("{}{} {}{}", list.empty() ? "" : ", ", c.kernel, text::seconds(listed_seconds(c)),
                            c.measured_seconds > 0 ? " measured" : "");
    }
    std::string out =
        fmt::format("device {}: {} {}; {}", largest->device, largest->kernel, largest->kernel_reason, list);
    if (largest->break_even_applies > 0) {
        out += fmt::format("; its format pays after {:.0f} applies", std::ceil(largest->break_even_applies));
    }
    return text::wrapped("  kernels     ", out + reason_against_faster(*largest, plan.expected_applies));
}

/// "csr", "coo by column"
std::string format_text(const Plan& plan)
{
    const char* const order = plan.order == CooOrder::by_row      ? "by row"
                              : plan.order == CooOrder::by_column ? "by column"
                                                                  : "unsorted";
    return plan.format == Format::coo ? fmt::format("coo {}", order) : to_string(plan.format);
}

std::string shard_table(const Plan& plan, std::size_t name_limit)
{
    using Align = text::Table::Align;
    text::Table table({{"device", Align::left},
                       {"node", Align::right},
                       {"hw threads", Align::left},
                       {plan.order == CooOrder::by_column ? "columns" : "rows", Align::right},
                       {"nonzeros", Align::right},
                       {"matrix", Align::right},
                       {"vectors", Align::right},
                       {"kernel", Align::left}});
    for (const ShardPlan& shard : plan.shards) {
        const Placement& placement = shard.placement;
        table.add({text::shortened(shard.device_name, name_limit),
                   placement.node < 0 ? "-" : fmt::format("{}", placement.node),
                   text::shortened(text::ranges(placement.cpus), 13), text::grouped(shard.part.rows()),
                   text::grouped(shard.part.nnz()), text::bytes(shard.matrix_bytes), text::bytes(shard.vector_bytes),
                   text::shortened(shard.kernel.empty() ? "-" : shard.kernel, 18)});
    }
    return table.to_text(2);
}

}  // namespace

std::string Plan::to_text() const
{
    std::string out = text::wrapped(
        "Plan          ", fmt::format("{} x {}, {} nonzeros, {}, {}, {}, {} {}", text::grouped(rows),
                                      text::grouped(cols), text::grouped(nnz), format_text(*this), precision, mode,
                                      shards.size(), shards.size() == 1 ? "device" : "devices"));
    // Long device names are cut only where the table would be wider than a page.
    std::string table = shard_table(*this, 48);
    for (std::size_t line = 0; line < table.size(); line = table.find('\n', line) + 1) {
        if (table.find('\n', line) - line > text::width) {
            table = shard_table(*this, 24);
            break;
        }
    }
    std::int64_t split_rows = 0;
    for (const ShardPlan& shard : shards) {
        split_rows += shard.part.start_flag ? 1 : 0;
    }
    out += table;
    out += placement_reasons(shards);
    out += choice_text(*this);
    const char* const line = order == CooOrder::by_column ? "column" : "row";
    std::string balance = fmt::format("nonzeros within {} of the fair share; {} {}{} cut between devices",
                                      text::percent(nonzero_imbalance), split_rows, line, split_rows == 1 ? "" : "s");
    if (time_imbalance >= 0) {
        balance += fmt::format("; the kernels' times within {} of their mean", text::percent(time_imbalance));
    }
    if (moves > 0) {
        balance += fmt::format(", with equal nonzeros {}: the cuts were moved{}", text::percent(first_time_imbalance),
                               moves == 1 ? "" : fmt::format(" {} times", moves));
    }
    out += text::wrapped("  balance     ", balance);
    out += text::wrapped("  transport   ",
                         transport_reason.empty() ? transport : fmt::format("{}: {}", transport, transport_reason));
    if (merge != "none") {
        out += text::wrapped(
            "  merge       ",
            fmt::format("{}: partial results of y, at most {} to a device{}", merge, text::bytes(merge_bytes),
                        merge_seconds > 0 ? ", about " + text::seconds(merge_seconds) : ""));
    }
    if (exchange == "ranges" || exchange == "entries") {
        std::int64_t largest = 0;
        for (const ShardPlan& shard : shards) {
            largest = std::max(largest, shard.halo_entries);
        }
        out += text::wrapped("  exchange    ", fmt::format("of an x by rows by {}, at most {} entries to a device",
                                                           exchange, text::grouped(largest)));
    }
    if (devices > 0 && devices < static_cast<int>(shards.size())) {
        out += text::wrapped("  devices     ",
                             fmt::format("parts on {} of {}: {}", devices, shards.size(), devices_reason));
    }
    if (const double predicted = predicted_seconds(); predicted > 0) {
        out += text::wrapped(
            "  predicted   ",
            fmt::format(
                "{} an apply{}, by each device's bandwidth and what is known of its kernel", text::seconds(predicted),
                expected_applies > 0 ? fmt::format(", {} for {} of them",
                                                   text::seconds(predicted * static_cast<double>(expected_applies)),
                                                   text::grouped(expected_applies))
                                     : ""));
    }
    return out + predictions_text(*this) + plan::cluster_text(cluster);
}

double Plan::predicted_seconds() const
{
    double slowest = 0;
    for (const ShardPlan& shard : shards) {
        if (shard.part.nnz() > 0 && !(shard.predicted_seconds > 0)) {
            return 0;
        }
        slowest = std::max(slowest, shard.predicted_seconds);
    }
    return slowest > 0 ? slowest + merge_seconds : 0;
}

}  // namespace rmsp
