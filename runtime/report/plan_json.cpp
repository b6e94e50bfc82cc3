#include <utility>

#include "runtime/report/report_parts.hpp"

namespace rmsp::report {
namespace {

Json step_json(const ClusterStep& s)
{
    return {{"nodes", s.nodes},
            {"rows", s.rows},
            {"ghosts", s.ghosts},
            {"messages", s.messages},
            {"bytes_seconds", s.bytes_seconds},
            {"exchange_seconds", s.exchange_seconds},
            {"latency_seconds", s.latency_seconds},
            {"launch_seconds", s.launch_seconds},
            {"seconds", s.seconds},
            {"limit", s.limit}};
}

Json steps_json(const std::vector<ClusterStep>& steps)
{
    Json all = Json::array();
    for (const ClusterStep& step : steps) {
        all.push_back(step_json(step));
    }
    return all;
}

Json cluster_json(const ClusterPlan& c)
{
    return {{"nodes", c.nodes},
            {"bandwidth_gbs", c.network.bandwidth_gbs},
            {"adapters", c.network.adapters},
            {"latency_us", c.network.latency_us},
            {"step", c.step},
            {"products", c.products},
            {"sums", c.sums},
            {"sums_beside", c.sums_beside},
            {"vector_bytes", c.vector_bytes},
            {"rows", c.rows},
            {"cols", c.cols},
            {"nonzeros", c.nnz},
            {"counted", c.counted},
            {"most_nonzeros", c.most_nonzeros},
            {"planned", step_json(c.planned)},
            {"strong", steps_json(c.strong)},
            {"weak", steps_json(c.weak)}};
}

}  // namespace

std::vector<std::string> device_names(const Plan& plan)
{
    std::vector<std::string> names;
    for (const ShardPlan& shard : plan.shards) {
        names.push_back(shard.device_name);
    }
    return names;
}

Json links_json(const std::vector<MachineLink>& links)
{
    Json all = Json::array();
    for (const MachineLink& link : links) {
        all.push_back({{"kind", link.kind},
                       {"devices", link.gpus},
                       {"nodes", link.nodes},
                       {"gbs", link.gbs},
                       {"switched", link.switched},
                       {"source", link.source}});
    }
    return all;
}

Json plan_json(const Plan& plan)
{
    Json predictions = Json::array();
    for (const DevicePrediction& p : plan.predictions) {
        predictions.push_back({{"devices", p.devices}, {"seconds", p.seconds}});
    }
    Json shards = Json::array();
    for (const ShardPlan& s : plan.shards) {
        Json candidates = Json::array();
        for (const KernelCandidate& c : s.candidates) {
            candidates.push_back({{"kernel", c.kernel},
                                  {"own_format", c.own_format},
                                  {"bytes", c.bytes},
                                  {"predicted_seconds", c.predicted_seconds},
                                  {"measured_seconds", c.measured_seconds},
                                  {"prepare_seconds", c.prepare_seconds}});
        }
        shards.push_back({{"device", s.device},
                          {"name", s.device_name},
                          {"node", s.placement.node},
                          {"cpus", s.placement.cpus},
                          {"placement", s.placement.reason},
                          {"kernel", s.kernel},
                          {"kernel_reason", s.kernel_reason},
                          {"kernel_candidates", std::move(candidates)},
                          {"break_even_applies", s.break_even_applies},
                          {"start_row", s.part.start_row},
                          {"end_row", s.part.end_row},
                          {"start_flag", s.part.start_flag},
                          {"start_idx", s.part.start_idx},
                          {"end_idx", s.part.end_idx},
                          {"rows", s.part.rows()},
                          {"nonzeros", s.part.nnz()},
                          {"matrix_bytes", s.matrix_bytes},
                          {"vector_bytes", s.vector_bytes},
                          {"apply_bytes", s.apply_bytes},
                          {"halo_entries", s.halo_entries},
                          {"limit_gbs", s.limit_gbs},
                          {"exchange_seconds", s.exchange_seconds},
                          {"predicted_seconds", s.predicted_seconds}});
    }
    Json json{{"rows", plan.rows},
              {"cols", plan.cols},
              {"nonzeros", plan.nnz},
              {"format", to_string(plan.format)},
              {"order", to_string(plan.order)},
              {"precision", plan.precision},
              {"mode", plan.mode},
              {"merge", plan.merge},
              {"merge_bytes", plan.merge_bytes},
              {"merge_seconds", plan.merge_seconds},
              {"transport", plan.transport},
              {"transport_reason", plan.transport_reason},
              {"exchange", plan.exchange},
              {"devices", plan.devices},
              {"devices_reason", plan.devices_reason},
              {"nonzero_imbalance", plan.nonzero_imbalance},
              {"first_time_imbalance", plan.first_time_imbalance},
              {"time_imbalance", plan.time_imbalance},
              {"moves", plan.moves},
              {"expected_applies", plan.expected_applies},
              {"predicted_seconds", plan.predicted_seconds()},
              {"predictions", std::move(predictions)},
              {"links", links_json(plan.links)},
              {"shards", std::move(shards)}};
    if (plan.cluster.nodes > 0) {
        json["cluster"] = cluster_json(plan.cluster);
    }
    return json;
}

}  // namespace rmsp::report
