#pragma once

#include <string>
#include <thread>

#include <rmsp/runtime.hpp>

namespace rmsp::mspmv {

/// While it lives, a thread answers GET /metrics on 127.0.0.1 with the runtime's metrics as text for Prometheus.
class MetricsServer {
public:
    /// \param port  1 to 65535; empty: nothing is served
    /// \throws Error(usage) for another text, Error(io) if the port cannot be had
    MetricsServer(const Runtime& runtime, const std::string& port);
    ~MetricsServer();
    MetricsServer(const MetricsServer&) = delete;
    MetricsServer& operator=(const MetricsServer&) = delete;

private:
    /// A file descriptor, owned.
    class Descriptor {
    public:
        Descriptor() = default;
        explicit Descriptor(int number) : number_(number) {}
        ~Descriptor();
        Descriptor(const Descriptor&) = delete;
        Descriptor& operator=(const Descriptor&) = delete;
        void reset(int number);
        int operator*() const noexcept { return number_; }

    private:
        int number_ = -1;
    };

    void serve() noexcept;
    void answer(int client) const;
    /// What the client sends up to an empty line, a length or a time.
    std::string request_of(int client) const;
    /// Waits until there is something to read; false: not in time, or the server ends.
    bool readable(int descriptor, int milliseconds) const;

    const Runtime& runtime_;
    Descriptor socket_;
    Descriptor end_;  ///< readable once the server is to end
    std::thread thread_;
};

}  // namespace rmsp::mspmv
