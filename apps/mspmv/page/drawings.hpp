#pragma once

#include <string>

#include <nlohmann/json.hpp>

/// The drawings of a report's page, each from the JSON of `mspmv run`, `spgemm` or `solve` (docs/report.md); "" where
/// that has nothing to draw.
namespace rmsp::mspmv {

using Json = nlohmann::ordered_json;

/// NUMA nodes with their devices, each with its share of the nonzeros, and the links between them.
std::string machine_drawing(const Json& context);
/// The phases of one profiled operation on each device.
std::string timeline_drawing(const Json& context, const Json& benchmark);
/// The measurements under the roof that the memory's bandwidth is, and the arithmetic where the context has it.
std::string roofline_drawing(const Json& context, const Json& benchmarks);
/// Nonzeros (of products: products) and busy times of the devices, relative to their means.
std::string balance_drawing(const Json& context, const Json& benchmarks);
/// log10 of the residual over the iterations of a solve.
std::string residual_drawing(const Json& benchmark);
/// Predicted times on other numbers of devices.
std::string prediction_drawing(const Json& context);

/// "cuda:0 NVIDIA H200" -> "cuda:0".
std::string short_name(const std::string& name);
/// Nonzeros, of a product of matrices its products.
double work_of(const Json& shard);
/// Fields that may be missing or null.
double number_of(const Json& object, const char* key, double otherwise = 0);
std::string text_of(const Json& object, const char* key);
/// A list or object that may be missing: then an empty one.
const Json& child_of(const Json& object, const char* key);

}  // namespace rmsp::mspmv
