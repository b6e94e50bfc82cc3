#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rmsp/rmsp.hpp>

/// Results by lines of JSON, one for each matrix and precision, so that a run that was cut off goes on where it was:
/// what is in the file is not measured again. {"state": "begun"} stands before a result; who was begun twice and has no
/// result ended the program both times, and is left out from then on.
class ResultLines {
public:
    using Json = nlohmann::ordered_json;

    /// Without a path nothing is kept. \throws rmsp::Error(io)
    explicit ResultLines(std::string path) : path_(std::move(path))
    {
        std::ifstream file(path_);
        std::int64_t number = 0;
        for (std::string line; std::getline(file, line);) {
            ++number;
            const Json entry = Json::parse(line, nullptr, false);
            cut_ = file.eof();
            // A line that was cut off with its program says nothing.
            if (entry.is_discarded()) {
                continue;
            }
            if (!entry.is_object() || !entry.contains("matrix") || !entry.contains("precision") ||
                !entry.contains("state")) {
                throw rmsp::Error(rmsp::ErrorCode::io, fmt::format("{}:{}: not a line of results", path_, number));
            }
            const std::string key = key_of(entry.at("matrix"), entry.at("precision"));
            if (entry.at("state") == "done") {
                done_.insert(key);
            } else {
                ++begun_[key];
            }
        }
    }

    bool kept() const { return !path_.empty(); }
    bool is_done(const std::string& matrix, const std::string& precision) const
    {
        constexpr int most_begun = 2;
        const std::string key = key_of(matrix, precision);
        const auto begun = begun_.find(key);
        return done_.contains(key) || (begun != begun_.end() && begun->second >= most_begun);
    }
    /// Appends that it was begun. \throws rmsp::Error(io)
    void begin(const std::string& matrix, const std::string& precision)
    {
        append({{"state", "begun"}, {"matrix", matrix}, {"precision", precision}});
    }
    /// Appends what was found. \throws rmsp::Error(io)
    void finish(const std::string& matrix, const std::string& precision, const Json& context, const Json& benchmarks)
    {
        append({{"state", "done"},
                {"matrix", matrix},
                {"precision", precision},
                {"context", context},
                {"benchmarks", benchmarks}});
        done_.insert(key_of(matrix, precision));
    }

private:
    static std::string key_of(const std::string& matrix, const std::string& precision)
    {
        return matrix + '\n' + precision;
    }
    void append(const Json& line)
    {
        if (!kept()) {
            return;
        }
        std::ofstream file(path_, std::ios::app);
        file << (cut_ ? "\n" : "") << line.dump() << '\n';
        file.close();
        if (!file) {
            throw rmsp::Error(rmsp::ErrorCode::io, path_ + ": cannot write");
        }
        cut_ = false;
    }

    std::string path_;
    std::set<std::string> done_;
    std::map<std::string, int> begun_;
    bool cut_ = false;  ///< the last line has no end
};
