#include "children.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failure.hpp"

namespace reco {

namespace {

// What goes over a socket pair, one packet each. A child says READY and is answered by events (none: it is
// over); at its end it says RESULT, and sends its tally; or else FAILURE.
enum class Word : std::uint32_t { READY, EVENTS, RESULT, FAILURE };
struct Message {
    Word word;
    Status status;
    Range events;
    char text[480];
};

// One end of a socket pair.
class Socket {
  public:
    explicit Socket(int end) : end_(end) {}
    Socket(Socket &&other) noexcept : end_(std::exchange(other.end_, -1)) {}
    Socket &operator=(Socket &&) = delete;
    ~Socket() {
        if (end_ >= 0) {
            ::close(end_);
        }
    }

    int end() const { return end_; }

    // False if the other end is closed.
    template <typename Packet> bool send(const Packet &packet) const {
        ssize_t sent;
        do {
            sent = ::send(end_, &packet, sizeof packet, MSG_NOSIGNAL);
        } while (sent < 0 && errno == EINTR);
        return sent == sizeof packet;
    }

    // Waits. False if the other end was closed.
    template <typename Packet> bool receive(Packet &packet) const {
        ssize_t got;
        do {
            got = ::recv(end_, &packet, sizeof packet, 0);
        } while (got < 0 && errno == EINTR);
        return got == sizeof packet;
    }

  private:
    int end_;
};

std::pair<Socket, Socket> socket_pair() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        throw failure_of_system(FAILED, "no socket pair can be had");
    }
    return {Socket(ends[0]), Socket(ends[1])};
}

// The child's side
// ---------------------------------------------------------------------------------------------------

Supply asking(const Socket &parent) {
    return [&parent]() -> Range {
        Message answer;
        if (!parent.send(Message{Word::READY, DONE, {}, {}}) || !parent.receive(answer)) {
            throw Failure(FAILED, "the parent does not answer");
        }
        return answer.events;
    };
}

void work_as_child(const Options &options, std::uint64_t index, Range all, Range events,
                   const Conditions *conditions, Papers papers, const Socket &parent) {
    pin(options, index);
    std::unique_ptr<Conditions> own;
    if (conditions == nullptr) {
        if (index == 0) {
            mark(options, "conditions"); // all do so at about the same time
        }
        own = std::make_unique<Conditions>(options.conditions, options.counted);
        conditions = own.get();
    }
    const std::unique_ptr<Input> input = opened(options);
    Worker worker(options, all, *conditions, *input, std::move(papers));
    const bool dynamic = options.hand_out == HandOut::DYNAMIC;
    worker.work_through(dynamic ? asking(parent) : every_nth(events, index, options.processes));
    const Tally tally = worker.finished();
    if (!parent.send(Message{Word::RESULT, DONE, {}, {}}) || !parent.send(tally)) {
        throw Failure(FAILED, "the parent does not listen");
    }
    // To free what is shared with the parent would be to copy it first. The process ends; the kernel frees
    // it.
    own.release();
}

void report(const Socket &parent, Status status, const char *line) {
    Message message{Word::FAILURE, status, {}, {}};
    std::strncpy(message.text, line, sizeof message.text - 1);
    parent.send(message);
}

// Ends with _exit: what the parent would do at its end is not the child's.
template <typename Work> [[noreturn]] void be_child(const Socket &parent, Work work) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Status status = DONE;
    try {
        work();
    } catch (const Failure &failure) {
        report(parent, status = failure.status, failure.what());
    } catch (const std::exception &error) {
        report(parent, status = FAILED, error.what());
    }
    _exit(status);
}

// The parent's side
// --------------------------------------------------------------------------------------------------

struct Child {
    pid_t process;
    Socket socket;
    bool is_done = false;
};

std::string name_of(std::size_t index) { return "child-" + std::to_string(index); }

// All children there are. Whatever way the parent leaves, none is left behind.
class Children {
  public:
    Children() = default;
    Children(const Children &) = delete;
    Children &operator=(const Children &) = delete;
    ~Children() {
        for (const Child &child : children_) {
            if (child.process > 0) {
                kill(child.process, SIGKILL);
            }
        }
        for (Child &child : children_) {
            wait_for(child);
        }
    }

    // `work` is done in the child, with its end of the socket pair.
    template <typename Work> void fork(Work work) {
        std::pair<Socket, Socket> ends = socket_pair();
        Socket &ours = ends.first, &theirs = ends.second;
        const pid_t process = ::fork();
        if (process < 0) {
            throw failure_of_system(FAILED,
                                    "child " + std::to_string(children_.size()) + " cannot be forked");
        }
        if (process == 0) {
            for (const Child &elder : children_) {
                ::close(elder.socket.end()); // so that each has an end: when the parent is gone, all know
            }
            ::close(ours.end());
            be_child(theirs, [&] { work(theirs); });
        }
        children_.push_back({process, std::move(ours)});
    }

    // Hands out events, and takes results, until all are done.
    Tally served(Range left, std::uint64_t chunk) {
        Tally sum{};
        for (std::size_t working = children_.size(); working > 0;) {
            for (const std::size_t index : ready()) {
                Child &child = children_[index];
                Message message;
                if (!child.socket.receive(message)) {
                    throw death_of(index);
                }
                if (message.word == Word::READY) {
                    const Range events = {left.first, std::min(left.count, chunk)};
                    left = {left.first + events.count, left.count - events.count};
                    child.socket.send(Message{Word::EVENTS, DONE, events, {}});
                } else if (message.word == Word::FAILURE) {
                    message.text[sizeof message.text - 1] = '\0';
                    throw Failure(message.status, name_of(index) + " failed: " + message.text + stopped());
                } else {
                    Tally tally;
                    if (!child.socket.receive(tally)) {
                        throw death_of(index);
                    }
                    sum += tally;
                    child.is_done = true;
                    working--;
                }
            }
        }
        for (std::size_t index = 0; index < children_.size(); index++) {
            if (const int status = wait_for(children_[index]); status != 0) {
                throw ending(index, status);
            }
        }
        return sum;
    }

  private:
    // Which of those that are not done have something to say, or have died.
    std::vector<std::size_t> ready() const {
        std::vector<pollfd> ends;
        for (const Child &child : children_) {
            ends.push_back({child.is_done ? -1 : child.socket.end(), POLLIN, 0});
        }
        if (poll(ends.data(), static_cast<nfds_t>(ends.size()), -1) < 0 && errno != EINTR) {
            throw failure_of_system(FAILED, "the children cannot be heard");
        }
        std::vector<std::size_t> ready;
        for (std::size_t index = 0; index < ends.size(); index++) {
            if (ends[index].revents != 0) {
                ready.push_back(index);
            }
        }
        return ready;
    }

    static int wait_for(Child &child) {
        int status = 0;
        if (child.process > 0) {
            while (waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
            }
            child.process = -1;
        }
        return status;
    }

    const char *stopped() const { return children_.size() > 1 ? "; the other children were stopped" : ""; }

    Failure death_of(std::size_t index) { return ending(index, wait_for(children_[index])); }

    Failure ending(std::size_t index, int status) const {
        const std::string how = WIFSIGNALED(status)
                                    ? "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
                                          strsignal(WTERMSIG(status)) + ")"
                                    : "ended with status " + std::to_string(WEXITSTATUS(status)) + " unasked";
        return {FAILED, name_of(index) + " " + how + stopped()};
    }

    std::vector<Child> children_;
};

} // namespace

Tally work_in_children(const Options &options, Range all, Range events, const Conditions *conditions) {
    Children children;
    for (std::size_t index = 0; index < options.processes; index++) {
        Papers papers(options, name_of(index));
        children.fork([&](const Socket &parent) {
            work_as_child(options, index, all, events, conditions, std::move(papers), parent);
        });
    }
    return children.served(events, options.chunk);
}

} // namespace reco
