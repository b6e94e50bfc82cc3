#pragma once

#include <string>

#include <nlohmann/json.hpp>

/// What mspmv-mpi says of a run, from its JSON (schemas/cluster-1.json).
namespace rmsp::mpi {

/// A part of the report, if it has it, with a line for each of its keys.
std::string part_text(const nlohmann::ordered_json& report, const char* part);
/// How a file was read; nothing of other matrices.
std::string read_text(const nlohmann::ordered_json& report);
std::string text_of(const nlohmann::ordered_json& report);

/// The text to standard output, JSON where it is asked for: "-" in place of the text. \throws Error(io)
void print(const std::string& text, const nlohmann::ordered_json& report, const std::string& json);

}  // namespace rmsp::mpi
