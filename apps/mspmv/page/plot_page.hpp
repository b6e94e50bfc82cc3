#pragma once

#include <string>
#include <vector>

#include "apps/mspmv/page/drawings.hpp"

/// Several reports beside each other.
namespace rmsp::mspmv {

struct PlottedReport {
    std::string label;
    Json report;  ///< of run, spgemm, solve or eigen
};

/// A page of HTML that needs nothing beside itself: times, speeds, shares of the bandwidth, speed-up over devices where
/// reports differ in nothing else, and what was measured where.
std::string plot_page(const std::vector<PlottedReport>& reports);

/// The drawings of that page as one of SVG, with machine, date and commit of each report below.
std::string plot_svg(const std::vector<PlottedReport>& reports);

}  // namespace rmsp::mspmv
