// What goes wrong, in one line, and with which exit status the program ends.
#ifndef RECO_FAILURE_HPP
#define RECO_FAILURE_HPP

#include <stdexcept>
#include <string>

namespace reco {

enum Status {
    DONE = 0,
    FAILED = 1,    // the work failed
    BAD_INPUT = 2, // what was asked for or given cannot be worked on
};

struct Failure : std::runtime_error {
    Failure(Status status, const std::string &line) : runtime_error(line), status(status) {}
    Status status;
};

// With what the system says of the last call.
Failure failure_of_system(Status status, const std::string &what);

} // namespace reco

#endif
