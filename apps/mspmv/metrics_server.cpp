#include "apps/mspmv/metrics_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace rmsp::mspmv {
namespace {

constexpr int patience_ms = 2000;
constexpr std::size_t longest_request = 8192;

std::uint16_t port_of(const std::string& text)
{
    int port = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, port);
    if (error != std::errc() || stop != end || port < 1 || port > 65535) {
        throw Error(ErrorCode::usage, fmt::format("--metrics {}: a port is a number from 1 to 65535", text));
    }
    return static_cast<std::uint16_t>(port);
}

std::string response(std::string_view status, std::string_view body)
{
    return fmt::format(
        "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
        status, body.size(), body);
}

}  // namespace

MetricsServer::Descriptor::~Descriptor()
{
    if (number_ >= 0) {
        (void)::close(number_);
    }
}

void MetricsServer::Descriptor::reset(int number)
{
    if (number_ >= 0) {
        (void)::close(number_);
    }
    number_ = number;
}

MetricsServer::MetricsServer(const Runtime& runtime, const std::string& port) : runtime_(runtime)
{
    if (port.empty()) {
        return;
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_of(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socket_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    end_.reset(::eventfd(0, EFD_CLOEXEC));
    const int on = 1;
    (void)::setsockopt(*socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (*end_ < 0 || ::bind(*socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        ::listen(*socket_, 8) != 0) {
        throw Error(ErrorCode::io, fmt::format("--metrics {}: {}", port, std::strerror(errno)));
    }
    // Times are taken from the first call on.
    (void)runtime_.metrics();
    try {
        thread_ = std::thread([this] { serve(); });
    } catch (const std::system_error& e) {
        throw Error(ErrorCode::out_of_memory, fmt::format("--metrics {}: cannot start its thread: {}", port, e.what()));
    }
    spdlog::info("metrics: http://127.0.0.1:{}/metrics", port);
}

MetricsServer::~MetricsServer()
{
    if (thread_.joinable()) {
        (void)::eventfd_write(*end_, 1);
        thread_.join();
    }
}

bool MetricsServer::readable(int descriptor, int milliseconds) const
{
    pollfd watched[] = {{descriptor, POLLIN, 0}, {*end_, POLLIN, 0}};
    int status = 0;
    do {
        status = ::poll(watched, 2, milliseconds);
    } while (status < 0 && errno == EINTR);
    return status > 0 && watched[1].revents == 0;
}

void MetricsServer::serve() noexcept
{
    while (readable(*socket_, -1)) {
        const Descriptor client(::accept4(*socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        try {
            if (*client >= 0) {
                answer(*client);
            }
        } catch (const std::exception& e) {
            spdlog::warn("metrics: {}", e.what());
        }
    }
}

std::string MetricsServer::request_of(int client) const
{
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::milliseconds(patience_ms);
    std::string request;
    while (request.size() < longest_request && request.find("\r\n\r\n") == std::string::npos) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        char part[1024];
        if (left <= 0 || !readable(client, static_cast<int>(left))) {
            break;
        }
        const ssize_t bytes = ::recv(client, part, sizeof(part), 0);
        if (bytes <= 0) {
            break;
        }
        request.append(part, static_cast<std::size_t>(bytes));
    }
    return request;
}

void MetricsServer::answer(int client) const
{
    const std::string request = request_of(client);
    std::string text;
    if (request.find("\r\n\r\n") == std::string::npos) {
        text = response("400 Bad Request", "no whole request\n");
    } else if (request.starts_with("GET /metrics ")) {
        text = response("200 OK", runtime_.metrics().to_prometheus());
    } else if (request.starts_with("GET ")) {
        text = response("404 Not Found", "the metrics are at /metrics\n");
    } else {
        text = response("405 Method Not Allowed", "only GET\n");
    }
    // A few kilobytes, for which a new connection always has room; who does not take them has closed it.
    (void)::send(client, text.data(), text.size(), MSG_NOSIGNAL);
}

}  // namespace rmsp::mspmv
