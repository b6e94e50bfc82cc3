#include "cluster/communicator.hpp"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <fmt/format.h>

namespace rmsp::cluster {
namespace {

constexpr int alarm_tag = 0;
/// So often a wait looks before it lets others have the core, which processes and devices may share.
constexpr int soon = 64;

/// Processes of this node are looked for so often while something is waited for.
constexpr double watch_seconds = 0.05;

class Deadline {
public:
    using Clock = std::chrono::steady_clock;

    explicit Deadline(double seconds) : end_(Clock::now() + duration(seconds)), watch_(Clock::now()) { watch_again(); }
    bool over() const { return Clock::now() > end_; }
    /// Whether it is time to look for the other processes.
    bool watches()
    {
        if (Clock::now() < watch_) {
            return false;
        }
        watch_again();
        return true;
    }

private:
    static Clock::duration duration(double seconds)
    {
        return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }
    void watch_again() { watch_ = Clock::now() + duration(watch_seconds); }

    const Clock::time_point end_;
    Clock::time_point watch_;
};

/// What a process says of its failure, or of where it was when it heard of one.
struct Failure {
    std::uint64_t exchanges = 0;
    std::uint64_t calls = 0;
    std::int32_t code = 0;
    std::int32_t link_lost = 0;  ///< what it does by the devices' link may not end
    char text[500] = {};
};

NodeMessagesChoice choice_of(const std::string& name)
{
    if (name == "auto") {
        return NodeMessagesChoice::automatic;
    }
    if (name != "direct" && name != "gathered") {
        throw Error(ErrorCode::usage,
                    fmt::format("node_messages is \"{}\", it must be auto, direct or gathered", name));
    }
    return name == "direct" ? NodeMessagesChoice::direct : NodeMessagesChoice::gathered;
}

/// Beside a round that has begun a process may be so many exchanges ahead of one that is in another call.
constexpr std::uint64_t most_exchanges_ahead = 16;

}  // namespace

Communicator::Communicator(MPI_Comm communicator, const ClusterOptions& options)
    : timeout_(options.timeout_seconds), node_messages_(choice_of(options.node_messages))
{
    if (!(timeout_ > 0)) {
        throw Error(ErrorCode::usage, fmt::format("timeout_seconds is {}, it must be above 0", timeout_));
    }
    if (options.node < -1) {
        throw Error(ErrorCode::usage, fmt::format("the node of a process is {}, it must be 0 or more, or -1 for the "
                                                  "machine that it is on",
                                                  options.node));
    }
    int initialised = 0;
    int finalised = 0;
    MPI_Initialized(&initialised);
    MPI_Finalized(&finalised);
    if (initialised == 0 || finalised != 0) {
        throw Error(ErrorCode::usage, "a cluster needs MPI: call MPI_Init_thread() before, MPI_Finalize() after");
    }
    int threads = MPI_THREAD_SINGLE;
    int is_main = 0;
    MPI_Query_thread(&threads);
    MPI_Is_thread_main(&is_main);
    if (threads < MPI_THREAD_FUNNELED) {
        throw Error(ErrorCode::usage,
                    "MPI was initialised for programs of one thread (MPI_THREAD_SINGLE), and librmsp starts threads: "
                    "call MPI_Init_thread() with MPI_THREAD_FUNNELED or more");
    }
    if (threads < MPI_THREAD_SERIALIZED && is_main == 0) {
        throw Error(ErrorCode::usage,
                    "with MPI_THREAD_FUNNELED a cluster belongs to the thread that initialised MPI; this is another");
    }
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Comm_idup(communicator, &communicator_, &request), "MPI_Comm_idup");
    finish(request, "a copy of the communicator");
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(communicator_, &rank_);
    MPI_Comm_size(communicator_, &size_);
    lines_.resize(static_cast<std::size_t>(size_));
    alarms_.resize(static_cast<std::size_t>(size_));
    on_workers_ = threads >= MPI_THREAD_SERIALIZED;
    node_.emplace(communicator_);
    number_nodes(options);
}

Communicator::~Communicator()
{
    int finalised = 0;
    MPI_Finalized(&finalised);
    // Freeing is collective: where a process is lost, nobody would come.
    if (finalised == 0 && lost_.empty() && communicator_ != MPI_COMM_NULL) {
        MPI_Comm_free(&communicator_);
    }
}

void Communicator::check(int status, const char* what) const
{
    if (status != MPI_SUCCESS) {
        std::array<char, MPI_MAX_ERROR_STRING> text{};
        int length = 0;
        MPI_Error_string(status, text.data(), &length);
        throw Error(ErrorCode::device, fmt::format("process {} of {}: {} failed: {}", rank_, size_, what,
                                                   std::string_view(text.data(), static_cast<std::size_t>(length))));
    }
}

void Communicator::require_usable() const
{
    if (!lost_.empty()) {
        throw Agreed(ErrorCode::device, "this cluster cannot be used any more: " + lost_);
    }
}

void Communicator::require_others(const char* what)
{
    if (!node_) {
        return;
    }
    // All of them: one may have ended because another had.
    std::string gone;
    for (const NodeProcess& other : node_->processes()) {
        if (other.id != 0 && kill(other.id, 0) != 0 && errno == ESRCH) {
            gone += fmt::format("process {} of {} has ended (it was process {} of this node), ", other.rank, size_,
                                other.id);
        }
    }
    if (!gone.empty()) {
        lose(fmt::format("{}and process {} waits for {}", gone, rank_, what));
    }
}

void Communicator::lose(std::string why)
{
    lost_ = std::move(why);
    give_up_link();
    throw Agreed(ErrorCode::device, lost_);
}

void Communicator::rest()
{
    using Clock = std::chrono::steady_clock;
    // A thread that yields stays among those that take the core in turns, and the message that it waits for is seen
    // only when it is its turn again; one that sleeps goes before them when it wakes. Where nobody else wants the core,
    // yielding returns at once and sleeping would only be later.
    constexpr auto of_others = std::chrono::microseconds(200);
    constexpr auto nap = std::chrono::microseconds(20);
    constexpr auto remembered = std::chrono::milliseconds(200);
    const auto began = Clock::now();
    if (began < cores_shared_until_) {
        std::this_thread::sleep_for(nap);
        return;
    }
    std::this_thread::yield();
    const auto now = Clock::now();
    if (now - began > of_others) {
        cores_shared_until_ = now + remembered;
    }
}

void Communicator::finish(MPI_Request& request, const char* what)
{
    Deadline deadline(timeout_);
    int done = 0;
    for (int turn = 0; done == 0; ++turn) {
        check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what);
        if (done == 0 && turn >= soon) {
            if (turn % 64 == 0 && deadline.watches()) {
                require_others(what);
            }
            if (turn % 64 == 0 && deadline.over()) {
                lose(fmt::format("process {} of {} waited {:g} s for the others ({})", rank_, size_, timeout_, what));
            }
            rest();
        }
    }
}

void Communicator::begin_lines(const Line& line)
{
    require_usable();
    line_ = line;
    check(MPI_Iallgather(&line_, sizeof(Line), MPI_BYTE, lines_.data(), sizeof(Line), MPI_BYTE, communicator_,
                         &lines_request_),
          "MPI_Iallgather");
}

bool Communicator::lines_are_there()
{
    int done = 0;
    check(MPI_Test(&lines_request_, &done, MPI_STATUS_IGNORE), name_of(line_.round));
    return done != 0;
}

void Communicator::exchange_lines(const Line& line)
{
    begin_lines(line);
    finish(lines_request_, name_of(line.round));
}

const std::vector<Communicator::Line>& Communicator::round(Line line)
{
    line.exchanges = exchanges_;
    exchange_lines(line);
    return checked_lines();
}

const std::vector<Communicator::Line>& Communicator::checked_lines()
{
    for (const Line& other : lines_) {
        if (other.failed != 0) {
            throw_failures(ErrorCode::internal, "");
        }
    }
    for (std::size_t i = 0; i < lines_.size(); ++i) {
        if (lines_[i].round != lines_[0].round || lines_[i].exchanges != lines_[0].exchanges) {
            // All see the same lines, so all throw this.
            const std::uint64_t most = std::max_element(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) {
                                           return a.exchanges < b.exchanges;
                                       })->exchanges;
            const auto text = fmt::format(
                "the processes are in different calls: process 0 at {} after {} exchanges, process {} at {} after {}",
                name_of(lines_[0].round), lines_[0].exchanges, i, name_of(lines_[i].round), lines_[i].exchanges);
            exchanges_ = most + most_exchanges_ahead;
            give_up_link();
            throw Agreed(ErrorCode::usage, text);
        }
    }
    return lines_;
}

void Communicator::throw_failures(ErrorCode code, std::string_view text)
{
    const std::vector<Line> lines = lines_;
    Failure own{
        exchanges_, calls_, static_cast<std::int32_t>(code), link_ && (linking_ || !link_->usable()) ? 1 : 0, {}};
    text.copy(own.text, sizeof(own.text) - 1);
    std::vector<Failure> failures(lines.size());
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Iallgather(&own, sizeof(Failure), MPI_BYTE, failures.data(), sizeof(Failure), MPI_BYTE, communicator_,
                         &request),
          "MPI_Iallgather");
    finish(request, "what has failed");
    if (std::any_of(failures.begin(), failures.end(), [](const Failure& of) { return of.link_lost != 0; })) {
        give_up_link();
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
        exchanges_ = std::max(exchanges_, failures[i].exchanges);
        calls_ = std::max(calls_, failures[i].calls);
        if (lines[i].failed == 1 && static_cast<int>(i) != rank_ && alarms_[i] == 0) {
            MPI_Request alarm = MPI_REQUEST_NULL;
            check(MPI_Irecv(&alarms_[i], sizeof alarms_[i], MPI_BYTE, static_cast<int>(i), alarm_tag, communicator_,
                            &alarm),
                  "MPI_Irecv");
            finish(alarm, "an alarm");
        }
        alarms_[i] = 0;
    }
    for (std::size_t i = 0; i < failures.size(); ++i) {
        if (failures[i].text[0] != '\0') {
            throw Agreed(static_cast<ErrorCode>(failures[i].code),
                         fmt::format("process {} of {}: {}", i, size_, std::string_view(failures[i].text)));
        }
    }
    throw Agreed(ErrorCode::internal, "a process has failed and says nothing of it");
}

void Communicator::fail(const std::exception& error)
{
    const auto* const known = dynamic_cast<const Error*>(&error);
    const ErrorCode code = known != nullptr                                         ? known->code()
                           : dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? ErrorCode::out_of_memory
                                                                                    : ErrorCode::internal;
    require_usable();
    if (failed_in_sum()) {
        throw_failures(code, error.what());
    }
    // The last but one has arrived: all have taken it before they heard of the last one.
    std::uint64_t& alarm = alarm_[failures_++ % alarm_.size()];
    alarm = calls_;
    for (int other = 0; other < size_; ++other) {
        if (other != rank_) {
            MPI_Request request = MPI_REQUEST_NULL;
            check(MPI_Isend(&alarm, sizeof alarm, MPI_BYTE, other, alarm_tag, communicator_, &request), "MPI_Isend");
            MPI_Request_free(&request);
        }
    }
    exchange_lines({.round = Round::agree, .failed = 1, .exchanges = exchanges_, .numbers = {}});
    throw_failures(code, error.what());
}

void Communicator::guarded(const std::function<void()>& f)
{
    require_usable();
    ++calls_;
    try {
        f();
    } catch (const Agreed&) {
        throw;
    } catch (const std::exception& error) {
        fail(error);
    }
}

void Communicator::together(const std::function<void()>& f)
{
    guarded([&] {
        f();
        round({.round = Round::agree});
    });
}

bool Communicator::others_failed()
{
    for (int found = 1; found != 0;) {
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status;
        check(MPI_Improbe(MPI_ANY_SOURCE, alarm_tag, communicator_, &found, &message, &status), "MPI_Improbe");
        if (found != 0) {
            std::uint64_t& alarm = alarms_[static_cast<std::size_t>(status.MPI_SOURCE)];
            check(MPI_Mrecv(&alarm, sizeof alarm, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
        }
    }
    return std::any_of(alarms_.begin(), alarms_.end(), [&](std::uint64_t call) { return call != 0 && call <= calls_; });
}

void Communicator::give_up(std::vector<MPI_Request>& requests) noexcept
{
    for (MPI_Request& request : requests) {
        if (request != MPI_REQUEST_NULL) {
            MPI_Cancel(&request);
            MPI_Request_free(&request);
        }
    }
    requests.clear();
}

bool Communicator::test(std::vector<MPI_Request>& requests)
{
    int done = 0;
    check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
    return done != 0;
}

void Communicator::wait(std::vector<MPI_Request>& requests, double seconds)
{
    wait_for([&] { return test(requests); }, "entries of x", [&] { give_up(requests); }, seconds);
    requests.clear();
}

void Communicator::wait_for(const std::function<bool()>& done, const char* what, const std::function<void()>& leave,
                            double seconds)
{
    Deadline deadline(seconds > 0 ? seconds : timeout_);
    for (int turn = 0; !done(); ++turn) {
        if (turn < soon) {
            continue;
        }
        if (turn % 64 == 0 && others_failed()) {
            leave();
            if (!failed_in_sum()) {
                exchange_lines({.round = Round::agree, .failed = 2, .exchanges = exchanges_, .numbers = {}});
            }
            throw_failures(ErrorCode::internal, "");
        }
        if (turn % 64 == 0 && begun_sum_ && lines_are_there()) {
            try {
                checked_lines();
            } catch (...) {
                begun_sum_.reset();
                leave();
                throw;
            }
        }
        if (turn % 64 == 0 && deadline.watches()) {
            try {
                require_others(what);
            } catch (...) {
                leave();
                throw;
            }
        }
        if (turn % 64 == 0 && deadline.over()) {
            leave();
            if (seconds > 0) {
                throw Error(ErrorCode::device, fmt::format("waited {:g} s for {}", seconds, what));
            }
            lose(fmt::format("process {} of {} waited {:g} s for {} from the others", rank_, size_, timeout_, what));
        }
        rest();
    }
}

}  // namespace rmsp::cluster
