#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/config.hpp>
#include <rmsp/renumber.hpp>
#include <rmsp/topology.hpp>

#include "core/reading.hpp"
#include "tests/io/helpers.hpp"
#include "tests/paths.hpp"

// Requests for memory fail, one or all from one on, while a file is read.

namespace {

constexpr long never = std::numeric_limits<long>::max();
std::atomic<long> asked{0};
std::atomic<long> first_refused{never};
std::atomic<bool> all_refused{false};

bool is_refused()
{
    const long number = ++asked;
    return all_refused ? number >= first_refused : number == first_refused;
}

void* allocate(std::size_t bytes, std::size_t alignment)
{
    if (is_refused()) {
        throw std::bad_alloc();
    }
    void* p = nullptr;
    if (posix_memalign(&p, alignment, bytes > 0 ? bytes : 1) != 0) {
        throw std::bad_alloc();
    }
    return p;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment)
{
    return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace {

using namespace rmsp;
using namespace rmsp::test;

/// How a call ended, kept without asking for memory.
struct Ending {
    enum class How { returned, error, bad_alloc, other } how = How::other;
    ErrorCode code = ErrorCode::internal;
    char text[1024] = {};

    void keep(How as, const char* what)
    {
        how = as;
        std::strncpy(text, what, sizeof text - 1);
    }
};

template <class Read>
Ending end_of(const Read& read, long refused, bool all)
{
    Ending ending;
    asked = 0;
    all_refused = all;
    first_refused = refused;
    try {
        read();
        ending.how = Ending::How::returned;
    } catch (const Error& e) {
        ending.keep(Ending::How::error, e.what());
        ending.code = e.code();
    } catch (const std::bad_alloc& e) {
        ending.keep(Ending::How::bad_alloc, e.what());
    } catch (const std::exception& e) {
        ending.keep(Ending::How::other, e.what());
    }
    first_refused = never;
    return ending;
}

/// Whatever request fails, the file is read, or what is thrown names it.
template <class Read>
void expect_named(const std::string& path, const Read& read)
{
    SCOPED_TRACE(path);
    // The first call also makes what later ones find made.
    ASSERT_EQ(end_of(read, never, false).how, Ending::How::returned);
    ASSERT_EQ(end_of(read, never, false).how, Ending::How::returned);
    const long requests = asked;
    ASSERT_GT(requests, 2);
    long errors = 0;
    for (const bool all : {false, true}) {
        for (long i = 1; i <= requests; ++i) {
            const Ending ending = end_of(read, i, all);
            const std::string_view text = ending.text;
            switch (ending.how) {
                case Ending::How::returned:
                    EXPECT_FALSE(all) << "request " << i << " of " << requests;
                    break;
                case Ending::How::error:
                    EXPECT_EQ(ending.code, ErrorCode::out_of_memory) << text;
                    EXPECT_TRUE(text.starts_with(path + ": ")) << text;
                    ++errors;
                    break;
                case Ending::How::bad_alloc:
                    EXPECT_EQ(text, "out of host memory while " + path + " is read");
                    break;
                case Ending::How::other:
                    ADD_FAILURE() << "request " << i << " of " << requests << ": " << text;
                    break;
            }
        }
    }
    EXPECT_GT(errors, 0);
}

TEST(NoMemory, ReadersNameTheirFile)
{
    const ScratchDirectory scratch;
    ReadOptions one;
    one.threads = 1;
    const CsrMatrix<double> a = random_uniform<double>(30, 20, 3);
    for (const char* name : {"a.mtx", "a.mtx.gz", "a.mtx.xz", "a.mtx.zst", "a.npz"}) {
        const std::string path = scratch.file(name);
        write_matrix(path, a.view());
        expect_named(path, [&] { read_matrix<double>(path, one); });
    }
    const std::vector<double> x(30, 1.5);
    for (const char* name : {"x.npy", "x.mtx"}) {
        const std::string path = scratch.file(name);
        write_vector<double>(path, x);
        expect_named(path, [&] { read_vector<double>(path, one); });
    }
    const std::vector<std::int64_t> order(30, 0);
    const std::string numbering = scratch.file("order.npy");
    write_order(numbering, order);
    expect_named(numbering, [&] { read_order(numbering, one); });
}

TEST(NoMemory, ReadersOfConfigurationsAndMachinesNameTheirFile)
{
    const ScratchDirectory scratch;
    const std::string run = scratch.file("run.toml");
    write_bytes(run, "[matrix]\ngenerate = \"banded 5 1\"\n[run]\niterations = 3\n");
    expect_named(run, [&] { load_config(run); });
    // Of XML: toml++ ends the process where some of its functions get no memory, which may not throw.
    const std::string machine = source_path("tests/topologies/two-node-pci.xml");
    expect_named(machine, [&] { Topology::load(machine); });
}

TEST(NoMemory, ALongNameIsCut)
{
    const std::string name(2000, 'x');
    const std::string text = core::NoMemoryToRead(name).what();
    EXPECT_EQ(text.size(), 511U);
    EXPECT_TRUE(text.starts_with("out of host memory while xxx"));
    EXPECT_STREQ(core::NoMemoryToRead("a.mtx").what(), "out of host memory while a.mtx is read");
}

}  // namespace
