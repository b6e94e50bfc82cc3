#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>
#include <csignal>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

// What the target is at, for the handler of a signal.
const std::uint8_t* current = nullptr;
std::size_t current_size = 0;

/// Writes the input that brought the signal to a file, then lets it do what it does.
extern "C" void keep_input(int signal)
{
    const int file = ::open("crash-input", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file >= 0) {
        static_cast<void>(!::write(file, current, current_size));
        ::close(file);
    }
    ::signal(signal, SIG_DFL);
    ::raise(signal);
}

void run(const Bytes& bytes)
{
    constexpr unsigned seconds_each = 60;
    current = bytes.data();
    current_size = bytes.size();
    ::alarm(seconds_each);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    ::alarm(0);
}

/// Mutants of a corpus: as many changes as a coin says, each at a random place.
class Mutants {
public:
    Mutants(std::vector<Bytes> corpus, std::uint64_t seed) : corpus_(std::move(corpus)), random_(seed) {}

    Bytes next()
    {
        Bytes bytes = one();
        do {
            change(bytes);
        } while (below(3) != 0);
        return bytes;
    }

private:
    std::size_t below(std::size_t end) { return end == 0 ? 0 : random_() % end; }
    const Bytes& one() { return corpus_[below(corpus_.size())]; }

    void change(Bytes& bytes)
    {
        // What readers take for numbers, names and ends, and what is just beyond them.
        static const std::vector<std::string> words{"0",
                                                    "-1",
                                                    "1",
                                                    "2147483648",
                                                    "9223372036854775807",
                                                    "9223372036854775808",
                                                    "1e400",
                                                    "nan",
                                                    "inf",
                                                    "5e-324",
                                                    "\n",
                                                    "\r\n",
                                                    " ",
                                                    "%",
                                                    "[",
                                                    "]",
                                                    "{",
                                                    "}",
                                                    "=",
                                                    "\"",
                                                    "'''",
                                                    ".",
                                                    ",",
                                                    "#",
                                                    std::string(1, '\0'),
                                                    "\xff\xff\xff\xff",
                                                    "PK\1\2",
                                                    "PK\3\4",
                                                    "PK\5\6",
                                                    "general",
                                                    "symmetric",
                                                    "true"};
        const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size() + 1));
        const auto rest = static_cast<std::size_t>(bytes.end() - at);
        const auto some = static_cast<std::ptrdiff_t>(below(std::min<std::size_t>(rest, 64) + 1));
        switch (below(7)) {
            case 0:
                if (rest > 0) {
                    *at = static_cast<std::uint8_t>(*at ^ (1U << below(8)));
                }
                break;
            case 1:
                if (rest > 0) {
                    *at = static_cast<std::uint8_t>(below(256));
                }
                break;
            case 2:
                bytes.erase(at, at + some);
                break;
            case 3: {
                const Bytes copy(at, at + some);
                bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size() + 1)), copy.begin(),
                             copy.end());
                break;
            }
            case 4: {
                const std::string& word = words[below(words.size())];
                bytes.insert(at, word.begin(), word.end());
                break;
            }
            case 5: {
                const Bytes& other = one();
                const auto from = other.begin() + static_cast<std::ptrdiff_t>(below(other.size() + 1));
                const auto length =
                    static_cast<std::ptrdiff_t>(below(static_cast<std::size_t>(other.end() - from) + 1));
                bytes.insert(at, from, from + length);
                break;
            }
            default:
                bytes.resize(bytes.size() - rest);
        }
    }

    std::vector<Bytes> corpus_;
    std::mt19937_64 random_;
};

}  // namespace

/// Stands in for libFuzzer's main(): calls the target once for each file of the given folders. With -mutants=N also for
/// N mutants of them, of -seed=S, and without a look at what they reach; the file crash-input is then what ended it.
int main(int argc, char** argv)
{
    std::uint64_t mutants = 0;
    std::uint64_t seed = 1;
    std::vector<Bytes> corpus;
    for (int i = 1; i < argc; ++i) {
        if (std::strncmp(argv[i], "-mutants=", 9) == 0) {
            mutants = std::strtoull(argv[i] + 9, nullptr, 10);
            continue;
        }
        if (std::strncmp(argv[i], "-seed=", 6) == 0) {
            seed = std::strtoull(argv[i] + 6, nullptr, 10);
            continue;
        }
        for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
            std::ifstream in(entry.path(), std::ios::binary);
            corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
            std::fprintf(stderr, "%s\n", entry.path().c_str());  // the last line names the file that crashed
            run(corpus.back());
        }
    }
    if (corpus.empty()) {
        return 1;
    }
    std::printf("%zu files replayed\n", corpus.size());
    if (mutants > 0) {
        for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM}) {
            ::signal(signal, keep_input);
        }
        Mutants source(std::move(corpus), seed);
        for (std::uint64_t i = 0; i < mutants; ++i) {
            run(source.next());
        }
        std::printf("%llu mutants\n", static_cast<unsigned long long>(mutants));
    }
    return 0;
}
