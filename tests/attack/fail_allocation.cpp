// Preloaded (LD_PRELOAD) into a program, fails one of its requests for memory or threads, counted from the start of
// main() over all threads: malloc() and its kin, mmap() without a file, pthread_create(). The environment says which:
//   RMSP_FAIL_AT=N       the Nth, counted from 1; 0 or nothing: none
//   RMSP_FAIL_ALL=1      all from the Nth on
//   RMSP_FAIL_COUNT=F    writes how many there were to the file F at the end
//   RMSP_FAIL_TRACE=1    prints the failed one's stack to standard error, as addresses for addr2line
// Requests inside glibc itself (stacks of threads, arenas) do not come by here, and those of hwloc while it reads the
// machine are let through, uncounted: it does not look at what malloc() gives it (2.9), and dies.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

std::atomic<std::uint64_t> requests{0};
std::uint64_t fail_at = 0;
bool fail_all = false;
bool trace = false;
const char* count_file = nullptr;
bool counting = false;
thread_local bool tracing __attribute__((tls_model("initial-exec"))) = false;
thread_local bool reading_machine __attribute__((tls_model("initial-exec"))) = false;
int (*program_main)(int, char**, char**) = nullptr;

bool fails()
{
    if (!counting || tracing || reading_machine) {
        return false;
    }
    const std::uint64_t number = requests.fetch_add(1, std::memory_order_relaxed) + 1;
    const bool failed = fail_at != 0 && (fail_all ? number >= fail_at : number == fail_at);
    if (failed && trace && number == fail_at) {
        tracing = true;
        void* frames[64];
        backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
        tracing = false;
    }
    return failed;
}

std::uint64_t number_of(const char* variable)
{
    const char* const text = std::getenv(variable);
    return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

void write_count()
{
    counting = false;
    const int file = count_file == nullptr ? -1 : ::open(count_file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file >= 0) {
        ::dprintf(file, "%llu\n", static_cast<unsigned long long>(requests.load()));
        ::close(file);
    }
}

int counted_main(int argc, char** argv, char** environment)
{
    fail_at = number_of("RMSP_FAIL_AT");
    fail_all = number_of("RMSP_FAIL_ALL") != 0;
    trace = number_of("RMSP_FAIL_TRACE") != 0;
    count_file = std::getenv("RMSP_FAIL_COUNT");
    if (trace) {
        void* frame = nullptr;
        backtrace(&frame, 1);  // loads what it needs
    }
    std::atexit(write_count);
    counting = true;
    return program_main(argc, argv, environment);
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes)
{
    if (fails()) {
        errno = ENOMEM;
        return nullptr;
    }
    return __libc_malloc(bytes);
}

void* calloc(std::size_t n, std::size_t bytes)
{
    if (fails()) {
        errno = ENOMEM;
        return nullptr;
    }
    return __libc_calloc(n, bytes);
}

void* realloc(void* p, std::size_t bytes)
{
    if (fails()) {
        errno = ENOMEM;
        return nullptr;
    }
    return __libc_realloc(p, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes)
{
    if (fails()) {
        errno = ENOMEM;
        return nullptr;
    }
    return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** p, std::size_t alignment, std::size_t bytes)
{
    void* const got = memalign(alignment, bytes);
    if (got == nullptr) {
        return ENOMEM;
    }
    *p = got;
    return 0;
}

void* mmap(void* address, std::size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (file < 0 && fails()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return reinterpret_cast<void*>(::syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument)
{
    using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto create = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
    return fails() ? EAGAIN : create(thread, attributes, body, argument);
}

int hwloc_topology_init(void** topology)
{
    using Init = int (*)(void**);
    reading_machine = true;
    const int status = reinterpret_cast<Init>(::dlsym(RTLD_NEXT, "hwloc_topology_init"))(topology);
    reading_machine = false;
    return status;
}

int hwloc_topology_load(void* topology)
{
    using Load = int (*)(void*);
    reading_machine = true;
    const int status = reinterpret_cast<Load>(::dlsym(RTLD_NEXT, "hwloc_topology_load"))(topology);
    reading_machine = false;
    return status;
}

int __libc_start_main(int (*main_function)(int, char**, char**), int argc, char** argv, void (*begin)(), void (*end)(),
                      void (*loader_end)(), void* stack)
{
    using Start = int (*)(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
    program_main = main_function;
    return reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"))(counted_main, argc, argv, begin, end,
                                                                            loader_end, stack);
}
}
