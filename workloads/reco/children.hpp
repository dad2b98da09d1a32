// Events shared out to forked children, as CMS's framework did it: a socket pair, a log and an output file
// for each.
#ifndef RECO_CHILDREN_HPP
#define RECO_CHILDREN_HPP

#include "worker.hpp"

namespace reco {

// `all` are the events of the whole program, `events` those that are left for the children. Without
// conditions, each child makes its own. Errors: if a child fails or dies, the others are stopped, and its
// failure is this one's.
Tally work_in_children(const Options &options, Range all, Range events, const Conditions *conditions);

} // namespace reco

#endif
