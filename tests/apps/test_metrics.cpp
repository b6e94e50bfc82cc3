#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "program.hpp"

/// What `mspmv run --metrics PORT` answers while it works.
namespace rmsp::test {
namespace {

sockaddr_in loopback(int port)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/// A bound socket, and its port.
class Taken {
public:
    Taken()
    {
        sockaddr_in address = loopback(0);
        socklen_t size = sizeof(address);
        EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), size), 0);
        EXPECT_EQ(::listen(socket_, 1), 0);
        EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
        port_ = ntohs(address.sin_port);
    }
    ~Taken() { ::close(socket_); }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    int port() const { return port_; }

private:
    int socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    int port_ = 0;
};

/// The whole answer; empty if nobody listens.
std::string ask(int port, const std::string& request)
{
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = loopback(port);
    std::string answer;
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
        ::send(socket, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
        char part[4096];
        for (ssize_t bytes = 0; (bytes = ::recv(socket, part, sizeof(part), 0)) > 0;) {
            answer.append(part, static_cast<std::size_t>(bytes));
        }
    }
    ::close(socket);
    return answer;
}

TEST(Metrics, AreServedWhileMspmvWorks)
{
    const int port = Taken().port();
    auto run = std::async(std::launch::async, [&] {
        return mspmv({"run", "--set", "matrix.generate=stencil7 8 8 8", "--devices", "host:2x1", "--set",
                      "run.iterations=20000", "--metrics", std::to_string(port)});
    });
    std::string answer;
    while (answer.empty() && run.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
        answer = ask(port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
    EXPECT_NE(answer.find("\nrmsp_jobs_accepted_total "), std::string::npos) << answer;
    EXPECT_NE(answer.find("rmsp_device_busy_seconds_total{device=\"host:1 "), std::string::npos) << answer;
    EXPECT_TRUE(ask(port, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    EXPECT_TRUE(ask(port, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    EXPECT_EQ(run.get().exit_code, 0);
}

TEST(Metrics, NeedAPortThatCanBeHad)
{
    const Taken taken;
    const std::string port = std::to_string(taken.port());
    const auto outcome_of = [](const std::string& text) {
        return mspmv({"run", "--set", "matrix.generate=stencil7 3 3 3", "--devices", "host:1", "--metrics", text});
    };
    const Outcome in_use = outcome_of(port);
    EXPECT_EQ(in_use.exit_code, 3);
    EXPECT_NE(in_use.err.find("--metrics " + port + ": Address already in use"), std::string::npos) << in_use.err;
    for (const char* const text : {"0", "65536", "http", "80x", "-1"}) {
        EXPECT_EQ(outcome_of(text).exit_code, 2) << text;
    }
}

}  // namespace
}  // namespace rmsp::test
