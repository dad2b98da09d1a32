/* The object files that are loaded into the process, and what is known of code addresses in them. */
#ifndef WIDTHWISE_HEAP_MODULES_H
#define WIDTHWISE_HEAP_MODULES_H

#include "recorder.h"

/* The same where it is not among those used last. */
struct rule modules_find_rule(struct stream *stream, uintptr_t place);

/* What the rules of the module's unwind tables say of a code address. Its module is written to the log
 * before.
 */
static inline struct rule modules_rule(struct stream *stream, uintptr_t place) {
    struct rule *near = &stream->near_rules[(place ^ place >> 9) % NEAR_RULES];
    if (UNLIKELY(near->place != place)) {
        *near = modules_find_rule(stream, place);
    }
    return *near;
}

/* What is known of code addresses is forgotten, and so are the modules that were written. */
void modules_forget(struct stream *stream);
/* Whether that module is loaded now: `within` is an address in it. */
int modules_is_loaded(uintptr_t within);

#endif
