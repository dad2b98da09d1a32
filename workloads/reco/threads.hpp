// Events shared out to threads of this process.
#ifndef RECO_THREADS_HPP
#define RECO_THREADS_HPP

#include "worker.hpp"

namespace reco {

Tally work_in_threads(const Options &options, Range events, const Conditions &conditions);

} // namespace reco

#endif
