#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <rmsp/solve_report.hpp>

#include "runtime/report/residual_plot.hpp"

namespace rmsp {
namespace {

using testing::HasSubstr;

TEST(SolveReports, PlotHasAColumnForEachIterationOfFew)
{
    const std::string plot = report::residual_plot({1e3, 1e2, 1e1}, 1e3, 1e1);
    EXPECT_EQ(plot.substr(0, plot.find('\n')), "      0.00  |*");
    EXPECT_THAT(plot, HasSubstr("     -2.00  |..*\n"));
    EXPECT_EQ(std::count(plot.begin(), plot.end(), '*'), 3);
}

TEST(SolveReports, PlotOfManyEndsInTheLastColumn)
{
    std::vector<double> history;
    for (double residual = 1; history.size() < 1001; residual *= 0.97) {
        history.push_back(residual);
    }
    const std::string plot = report::residual_plot(history, 1, 0);
    EXPECT_THAT(plot, HasSubstr("1,000 iterations"));
    const std::string axis = plot.substr(plot.find('+') + 1);
    const std::size_t columns = axis.find('\n');
    const std::size_t last_line = plot.rfind('|');
    EXPECT_EQ(plot.rfind('*') - last_line, columns);
}

TEST(SolveReports, PlotNeedsTwoResiduals)
{
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    EXPECT_EQ(report::residual_plot({}, 1, 1), "");
    EXPECT_EQ(report::residual_plot({1}, 1, 1), "");
    EXPECT_EQ(report::residual_plot({1, 0, nan, infinity}, 1, 1), "");
    EXPECT_NE(report::residual_plot({1, 0, nan, 0.5}, 0, nan), "");
}

TEST(SolveReports, HaveNoNumbersWhereThereAreNone)
{
    SolveReport planned;
    planned.method = "a-method";
    planned.preconditioner.notes = {"a note"};
    EXPECT_THAT(planned.to_text(), HasSubstr("Note          a note"));
    EXPECT_THAT(planned.to_text(), HasSubstr("Solver        a-method, preconditioner none"));
    EXPECT_TRUE(nlohmann::json::parse(planned.to_json()).at("benchmarks").empty());

    SolveReport solved = planned;
    solved.solved = true;
    solved.result.outcome = Outcome::not_finite;
    solved.result.reason = "why";
    solved.result.true_residual = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(solved.seconds_per_iteration(), 0);
    EXPECT_THAT(solved.to_text(), HasSubstr("NOT CONVERGED: not finite after 0 iterations"));
    const auto json = nlohmann::json::parse(solved.to_json()).at("benchmarks").at(0);
    EXPECT_TRUE(json.at("true_residual").is_null());
    EXPECT_TRUE(json.at("solution_error").is_null());
    EXPECT_EQ(json.at("outcome"), "not finite");

    solved.result.iterations = 4;
    solved.result.seconds = 1;
    solved.result.phases = {{"iterate", {0.5}, true}};
    EXPECT_EQ(solved.seconds_per_iteration(), 0.125);
}

}  // namespace
}  // namespace rmsp
