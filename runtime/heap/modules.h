/* The object files that are loaded into the process, and the unwind rules of code addresses in them. */
#ifndef WIDTHWISE_HEAP_MODULES_H
#define WIDTHWISE_HEAP_MODULES_H

#include "state.h"

/* As modules_rule, for a rule that is not in the cache. */
struct rule modules_find_rule(struct stream *stream, uintptr_t code);

/* The unwind rule of a code address. Its module is written to the log first. */
static inline struct rule modules_rule(struct stream *stream, uintptr_t code) {
    struct rule *near = &stream->near_rules[(code ^ code >> 9) % NEAR_RULES];
    if (UNLIKELY(near->code != code)) {
        *near = modules_find_rule(stream, code);
    }
    return *near;
}

/* Clears the cached rules, and the list of modules that were written to the log. */
void modules_forget(struct stream *stream);
/* Whether that module is loaded now: `within` is an address in it. */
int modules_is_loaded(uintptr_t within);

#endif
