#include "runtime/sequence/scalars_state.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <new>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <core/value_types.hpp>
#include <kernels/steps/pass/exact_sum.hpp>
#include <kernels/steps/support/support.hpp>
#include <rmsp/error.hpp>

namespace rmsp::detail {

using kernels::PassSums;
using sequence::Bank;
using sequence::BankEnd;

ScalarsState::ScalarsState(std::shared_ptr<RuntimeState> runtime_, int most_, int devices_, bool exact_)
    : runtime(std::move(runtime_)),
      most(most_),
      devices(devices_ > 0 ? devices_ : runtime->devices()),
      exact(exact_),
      bank(std::make_shared<Bank>(runtime->devices(), devices)),
      room(static_cast<std::size_t>(devices)),
      values_{0.0, 0.0, 0.0, 1.0},
      constants_{{0.0, kernels::scalar_zero}, {1.0, kernels::scalar_one}}
{
    if (most < 16 || most > kernels::most_scalars) {
        throw Error(ErrorCode::usage,
                    fmt::format("room for {} scalars was asked for, it must be 16 to {}", most, kernels::most_scalars));
    }
    runtime->require_live();
    const transport::Transport* const transport = runtime->connection.transport.get();
    const volatile std::uint64_t* const given_up = transport != nullptr ? transport->given_up() : nullptr;
    lines_ = devices > 1 && devices <= kernels::most_pass_devices && given_up != nullptr;
    runtime
        ->submit([&](engine::Worker& worker, engine::Rendezvous& meeting) {
            const int rank = worker.rank();
            BankEnd& end = bank->ends[static_cast<std::size_t>(rank)];
            const auto context = worker.context();
            if (takes_part(rank)) {
                const auto zeroed = [&](std::size_t bytes) {
                    kernels::DeviceArray<std::byte> array(worker.device(), bytes);
                    kernels::fill(reinterpret_cast<double*>(array.data()), static_cast<std::int64_t>(bytes / 8), 0.0,
                                  context);
                    return array;
                };
                end.bank = kernels::DeviceArray<double>(worker.device(), static_cast<std::size_t>(most));
                kernels::fill(end.bank.data(), most, 0.0, context);
                end.workspace = zeroed(kernels::pass_workspace_bytes);
                if (lines_) {
                    end.lines = zeroed(static_cast<std::size_t>(2 * kernels::pass_line_bytes(devices, exact)));
                }
                if (rank == 0) {
                    bank->progress = engine::PinnedBuffer(worker.device(), sizeof(kernels::ScalarProgress));
                    ::new (bank->progress.data()) kernels::ScalarProgress();
                    const auto two_sets = 2 * static_cast<std::size_t>(devices);
                    bank->left =
                        engine::PinnedBuffer(worker.device(), two_sets * sizeof(double) * kernels::most_pass_dots);
                    bank->exact = engine::PinnedBuffer(
                        worker.device(), exact ? two_sets * sizeof(std::int64_t) * kernels::pass_words : 0);
                }
                bank->hand_over.open(rank, worker.device());
                kernels::load_passes(exact, context);
                worker.stream().synchronize();
            }
            meeting.arrive_and_wait();
            if (takes_part(rank)) {
                end.place.bank = end.bank.data();
                end.place.workspace = end.workspace.data();
                end.place.progress = rank == 0 ? static_cast<kernels::ScalarProgress*>(bank->progress.data()) : nullptr;
                end.place.exact = static_cast<std::int64_t*>(bank->exact.data());
                end.place.sums = devices == 1 ? PassSums::alone : lines_ ? PassSums::lines : PassSums::left;
                end.place.device = rank;
                end.place.devices = devices;
                end.given_up = given_up;
            }
        })
        .get();
}

ScalarsState::~ScalarsState()
{
    for (int rank = 0; rank < devices; ++rank) {
        runtime->release(rank, room, [held = bank, rank] {
            held->ends[static_cast<std::size_t>(rank)] = BankEnd();
            held->hand_over.close(rank);
            if (rank == 0) {
                held->progress = engine::PinnedBuffer();
                held->left = engine::PinnedBuffer();
                held->exact = engine::PinnedBuffer();
            }
        });
    }
}

std::int16_t ScalarsState::make(double value)
{
    std::lock_guard lock(mutex_);
    if (static_cast<int>(values_.size()) >= most) {
        throw Error(ErrorCode::usage, fmt::format("a sequence needs more than the {} scalars that there is room for; "
                                                  "make rmsp::Scalars with room for more",
                                                  most));
    }
    values_.push_back(value);
    return static_cast<std::int16_t>(values_.size() - 1);
}

std::int16_t ScalarsState::constant(double value)
{
    {
        std::lock_guard lock(mutex_);
        const auto bits = std::bit_cast<std::uint64_t>(value);
        for (const auto& [known, index] : constants_) {
            if (std::bit_cast<std::uint64_t>(known) == bits) {
                return index;
            }
        }
    }
    const std::int16_t index = make(value);
    std::lock_guard lock(mutex_);
    constants_.emplace_back(value, index);
    return index;
}

std::int16_t ScalarsState::temporary(std::size_t which)
{
    std::size_t made = 0;
    {
        std::lock_guard lock(mutex_);
        made = temporaries_.size();
    }
    for (; made <= which; ++made) {
        const std::int16_t index = make(0.0);
        std::lock_guard lock(mutex_);
        temporaries_.push_back(index);
    }
    std::lock_guard lock(mutex_);
    return temporaries_[which];
}

void ScalarsState::send_new()
{
    std::lock_guard lock(mutex_);
    if (sent_ == values_.size()) {
        return;
    }
    write(static_cast<std::int16_t>(sent_), {values_.begin() + static_cast<std::ptrdiff_t>(sent_), values_.end()});
    sent_ = values_.size();
}

void ScalarsState::write(std::int16_t first, std::vector<double> values)
{
    runtime->submit(
        [held = bank, first, numbers = std::move(values), n = devices](engine::Worker& worker, engine::Rendezvous&) {
            if (worker.rank() < n) {
                worker.device().upload(worker.stream(),
                                       held->ends[static_cast<std::size_t>(worker.rank())].bank.data() + first,
                                       numbers.data(), numbers.size() * sizeof(double));
            }
        });
}

std::vector<double> ScalarsState::read(std::int16_t first, std::size_t count)
{
    send_new();
    std::vector<double> values(count);
    runtime
        ->submit(
            [&](engine::Worker& worker, engine::Rendezvous&) {
                if (worker.rank() == 0) {
                    worker.device().download(worker.stream(), values.data(), bank->ends[0].bank.data() + first,
                                             count * sizeof(double));
                }
            },
            {}, true)
        .get();
    return values;
}

void ScalarsState::restart(double iterations)
{
    write(kernels::scalar_stopped, {0.0, iterations});
    runtime->submit([held = bank](engine::Worker& worker, engine::Rendezvous&) {
        if (worker.rank() == 0) {
            kernels::fill(&static_cast<kernels::ScalarProgress*>(held->progress.data())->outcome, 1, 0.0,
                          worker.context());
        }
    });
}

void ScalarsState::recover()
{
    if (!failed.exchange(false)) {
        return;
    }
    runtime
        ->submit([this](engine::Worker& worker, engine::Rendezvous& meeting) {
            BankEnd& end = bank->ends[static_cast<std::size_t>(worker.rank())];
            worker.stream().synchronize();
            meeting.arrive_and_wait();
            end.sums = 0;
            if (takes_part(worker.rank())) {
                kernels::fill(static_cast<double*>(end.place.workspace), kernels::pass_workspace_zeros / 8, 0.0,
                              worker.context());
            }
            worker.stream().synchronize();
        })
        .get();
}

template <class T>
kernels::PassPlace ScalarsState::begin(const kernels::Pass<T>& pass, const sequence::PassProgram& program, bool splits,
                                       engine::Worker& worker, engine::Rendezvous& meeting)
{
    const int rank = worker.rank();
    BankEnd& end = bank->ends[static_cast<std::size_t>(rank)];
    kernels::PassPlace place = end.place;
    place.program = program.program;
    place.ops = program.ops;
    place.numbers = program.numbers;
    place.beside = program.beside;
    const int gathering = outside && pass.dots > 0 && !exact ? outside->gathers() : 0;
    if (pass.dots == 0 || (devices == 1 && !outside)) {
        place.sums = PassSums::alone;
    } else if (gathering > 0) {
        const auto set = static_cast<std::size_t>(1 + gathering) * kernels::most_pass_dots;
        if (end.gathered.size() < 2 * set) {
            end.gathered = kernels::DeviceArray<double>(worker.device(), 2 * set);
            // A device that has no part of the vectors adds nothing.
            kernels::fill(end.gathered.data(), static_cast<std::int64_t>(2 * set), 0.0, worker.context());
            end.left = worker.device().make_event(false);
            end.there = worker.device().make_event(false);
        }
        place.sums = PassSums::left;
        place.left = end.gathered.data() + (end.sums++ % 2) * set;
        place.device = 0;
    } else {
        const std::uint64_t set = end.sums++ % 2;
        if (lines_ && !outside) {
            place.sums = splits ? PassSums::sent : PassSums::lines;
            if (end.job != meeting.job()) {
                end.job = meeting.job();
                end.waits = 0;
            }
            place.epoch = transport::epoch_of(end.job, ++end.waits);
            place.given_up = end.given_up + transport::given_up_word(place.epoch);
            for (int other = 0; other < devices; ++other) {
                std::byte* const lines = bank->ends[static_cast<std::size_t>(other)].lines.data() +
                                         set * static_cast<std::uint64_t>(kernels::pass_line_bytes(devices, exact));
                (other == rank ? place.lines_in : place.lines_out[other]) = lines;
            }
        } else {
            place.sums = PassSums::left;
            place.left = static_cast<double*>(bank->left.data()) +
                         set * static_cast<std::uint64_t>(devices) * kernels::most_pass_dots;
            place.exact += exact ? static_cast<std::int64_t>(set) * devices * kernels::pass_words : 0;
        }
    }
    if (takes_part(rank)) {
        kernels::run_pass(pass, place, worker.context());
    }
    if (gathering > 0) {
        begin_gathering(place, gathering, splits, worker, meeting);
    } else if (outside && place.sums == PassSums::left) {
        begin_outside(pass.dots, place, splits, worker, meeting);
    }
    return place;
}

void ScalarsState::add_exactly(int dots, std::int64_t* sums)
{
    using namespace kernels::exact;
    constexpr std::size_t most_at_once = 8;  // as Processes::sum() takes them
    const auto sum_all = [&](std::vector<double>& numbers) {
        for (std::size_t first = 0; first < numbers.size(); first += most_at_once) {
            outside->sum(std::span(numbers).subspan(first, std::min(most_at_once, numbers.size() - first)));
        }
    };
    std::vector<std::int64_t> own(static_cast<std::size_t>(dots) * words);
    for (int d = 0; d < dots; ++d) {
        std::int64_t* const sum = own.data() + static_cast<std::ptrdiff_t>(d) * words;
        for (int device = 0; device < devices; ++device) {
            merge(sum, sums + device * kernels::pass_words + static_cast<std::ptrdiff_t>(d) * words);
        }
        sign_digits(sum);
    }
    if (processes_ == 0) {
        std::vector<double> one{1};
        sum_all(one);
        processes_ = one.front();
    }
    // Which words somebody has: of several in one double, counts of the processes that do.
    const int bits = 1 + std::ilogb(processes_);
    const int of_number = std::numeric_limits<double>::digits / bits;
    std::vector<double> counts(static_cast<std::size_t>((words + of_number - 1) / of_number));
    for (int w = 0; w < words; ++w) {
        bool used = false;
        for (int d = 0; d < dots; ++d) {
            used = used || own[static_cast<std::size_t>(d * words + w)] != 0;
        }
        counts[static_cast<std::size_t>(w / of_number)] += used ? std::ldexp(1.0, w % of_number * bits) : 0;
    }
    sum_all(counts);
    std::vector<int> used;
    for (int w = 0; w < words; ++w) {
        const auto all = static_cast<std::uint64_t>(counts[static_cast<std::size_t>(w / of_number)]);
        if ((all >> (w % of_number * bits) & ((std::uint64_t{1} << bits) - 1)) != 0) {
            used.push_back(w);
        }
    }
    std::vector<double> numbers;
    for (int d = 0; d < dots; ++d) {
        for (const int w : used) {
            const std::int64_t word = own[static_cast<std::size_t>(d * words + w)];
            numbers.push_back(w == digits ? special_value(word) : static_cast<double>(word));
        }
    }
    sum_all(numbers);
    auto next = numbers.begin();
    for (int d = 0; d < dots; ++d) {
        std::int64_t sum[words] = {};
        for (const int w : used) {
            sum[w] = w == digits ? special_of(*next) : static_cast<std::int64_t>(*next);
            ++next;
        }
        outside_sums_[d] = value(sum);
    }
}

void ScalarsState::begin_outside(int dots, const kernels::PassPlace& place, bool splits, engine::Worker& worker,
                                 engine::Rendezvous& meeting)
{
    if (worker.rank() == 0) {
        outside->settle();
    }
    if (takes_part(worker.rank())) {
        worker.stream().synchronize();
    }
    meeting.arrive_and_wait();
    if (worker.rank() != 0) {
        return;
    }
    if (place.exact != nullptr) {
        add_exactly(dots, place.exact);
        return;
    }
    double* const left = place.left;
    std::fill_n(outside_sums_, dots, 0.0);
    for (int device = 0; device < devices; ++device) {
        for (int d = 0; d < dots; ++d) {
            outside_sums_[d] += std::exchange(left[device * kernels::most_pass_dots + d], 0.0);
        }
    }
    const std::span<double> sums(outside_sums_, static_cast<std::size_t>(dots));
    if (splits) {
        outside->begin_sum(sums);
    } else {
        outside->sum(sums);
    }
}

void ScalarsState::begin_gathering(const kernels::PassPlace& place, int from, bool splits, engine::Worker& worker,
                                   engine::Rendezvous& meeting)
{
    BankEnd& end = bank->ends[static_cast<std::size_t>(worker.rank())];
    engine::Stream& stream = splits ? worker.side_stream() : worker.stream();
    if (splits) {
        worker.stream().record(*end.left);
        stream.wait(*end.left);
    }
    end.gathered_from = from;
    bank->gathering[static_cast<std::size_t>(worker.rank())] = {stream.native(), place.left,
                                                                place.left + kernels::most_pass_dots};
    meeting.arrive_and_wait();
    if (worker.rank() == 0) {
        outside->gather_on(bank->gathering, kernels::most_pass_dots);
    }
    meeting.arrive_and_wait();
    if (splits) {
        stream.record(*end.there);
    }
}

bool ScalarsState::gathers(const BankEnd& end, const kernels::PassPlace& place)
{
    const double* const first = end.gathered.data();
    return end.gathered.size() > 0 && place.left >= first && place.left < first + end.gathered.size();
}

template <class T>
void ScalarsState::end(const kernels::Pass<T>& pass, const kernels::PassPlace& place, bool splits,
                       engine::Worker& worker, engine::Rendezvous& meeting)
{
    const int rank = worker.rank();
    const auto finish = [&](const kernels::PassPlace& at) {
        if (takes_part(rank)) {
            kernels::finish_pass(pass, at, worker.context());
        }
    };
    if (place.sums == PassSums::alone || place.sums == PassSums::lines) {
        return;
    }
    if (place.sums == PassSums::sent) {
        finish(place);
        return;
    }
    if (BankEnd& own = bank->ends[static_cast<std::size_t>(rank)]; gathers(own, place)) {
        if (splits) {
            worker.stream().wait(*own.there);
        }
        kernels::PassPlace of_processes = place;
        of_processes.left += kernels::most_pass_dots;
        of_processes.devices = own.gathered_from;
        of_processes.group = runtime->devices();
        finish(of_processes);
        return;
    }
    // All workers meet, also those whose devices have no part.
    if (outside) {
        if (rank == 0) {
            if (splits && place.exact == nullptr) {
                outside->end_sum();
            }
            std::copy_n(outside_sums_, pass.dots, place.left);
        }
        meeting.arrive_and_wait();
        kernels::PassPlace rounded = place;
        rounded.exact = nullptr;
        finish(rounded);
        return;
    }
    if (runtime->shared_memory()) {
        meeting.arrive_and_wait();
        finish(place);
        return;
    }
    if (!takes_part(rank)) {
        meeting.arrive_and_wait();
        meeting.arrive_and_wait();
        return;
    }
    bank->hand_over.publish(rank, worker.stream(), meeting);
    finish(place);
    bank->hand_over.end(rank, worker.stream());
    bank->hand_over.settle(rank, worker.stream(), meeting);
}

#define RMSP_INSTANTIATE(T)                                                                                      \
    template kernels::PassPlace ScalarsState::begin(const kernels::Pass<T>&, const sequence::PassProgram&, bool, \
                                                    engine::Worker&, engine::Rendezvous&);                       \
    template void ScalarsState::end(const kernels::Pass<T>&, const kernels::PassPlace&, bool, engine::Worker&,   \
                                    engine::Rendezvous&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::detail
