#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "cluster/communicator.hpp"

namespace rmsp::cluster {

const char* name_of(Round round)
{
    switch (round) {
        case Round::agree:
            return "the end of a call";
        case Round::sum:
            return "a sum";
        case Round::first:
            return "a decision of the first process";
        case Round::sizes:
            return "sizes of a matrix";
        case Round::lengths:
            return "lengths of messages";
    }
    return "unknown";
}

void Communicator::sum(std::span<double> numbers)
{
    begin_sum(numbers);
    end_sum();
}

void Communicator::begin_sum(std::span<double> numbers)
{
    Line line{.round = Round::sum, .exchanges = exchanges_, .numbers = {}};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        line.numbers[i] = std::bit_cast<std::int64_t>(numbers[i]);
    }
    begin_lines(line);
    begun_sum_ = numbers;
}

void Communicator::end_sum()
{
    const std::span<double> numbers = begun_sum_.value();
    finish(lines_request_, name_of(line_.round));
    begun_sum_.reset();
    const auto& lines = checked_lines();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = 0;
        for (const Line& other : lines) {
            numbers[i] += std::bit_cast<double>(other.numbers[i]);
        }
    }
}

void Communicator::gather_on(std::span<const DeviceArrays> devices, std::size_t count)
{
    linking_ = true;
    link_->gather(devices, count * sizeof(double));
}

void Communicator::settle()
{
    // Once it is given up nothing is under way.
    if (linking_ && link_->usable()) {
        link_->end();
        linking_ = false;
    }
}

void Communicator::progress()
{
    if (begun_sum_) {
        int done = 0;
        MPI_Test(&lines_request_, &done, MPI_STATUS_IGNORE);
    }
}

bool Communicator::failed_in_sum()
{
    if (!begun_sum_) {
        return false;
    }
    begun_sum_.reset();
    finish(lines_request_, name_of(line_.round));
    return std::any_of(lines_.begin(), lines_.end(), [](const Line& line) { return line.failed != 0; });
}

double Communicator::of_first(double value)
{
    return std::bit_cast<double>(
        round({.round = Round::first, .numbers = {std::bit_cast<std::int64_t>(value)}})[0].numbers[0]);
}

std::vector<std::int64_t> Communicator::numbers_of_all(std::span<const std::int64_t> numbers)
{
    Line line{.round = Round::sizes};
    std::copy(numbers.begin(), numbers.end(), line.numbers);
    std::vector<std::int64_t> all;
    for (const Line& other : round(line)) {
        all.insert(all.end(), std::begin(other.numbers), std::end(other.numbers));
    }
    return all;
}

std::vector<std::int64_t> Communicator::exchange_counts(const std::vector<std::int64_t>& counts)
{
    // Who has failed meanwhile says so in a round, and would not take part in anything else.
    round({.round = Round::lengths});
    std::vector<std::int64_t> others(counts.size());
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ialltoall(counts.data(), 1, MPI_INT64_T, others.data(), 1, MPI_INT64_T, communicator_, &request),
          "MPI_Ialltoall");
    finish(request, "how long the lists of columns are");
    return others;
}

}  // namespace rmsp::cluster
