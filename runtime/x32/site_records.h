/*
 * The sites that were rewritten: what each was, and where its stub is. A stub's place is used again when no
 * thread can be in it any more (stub_users.h). Changed and asked while the sites are held (sites_hold).
 */
#ifndef X32_SITE_RECORDS_H
#define X32_SITE_RECORDS_H

#include "stubs.h"

/* What has become of a site. */
enum state {
    FREE,
    LIVE, /* its text jumps to its stub */
    LEFT, /* its text does so no longer, or is no longer there, but a thread may be in the stub */
};

struct record {
    struct site site;
    u32 trampoline; /* 0 where the site reaches its stub */
    u32 left;       /* when it was taken back (stub_users.h) */
    u16 slot;       /* its stub's first place */
    u16 slots;
    u16 next; /* in its bucket; 0 is the end */
    u8 state;
};

/* Whether calls are to be shown or counted, so that none may bypass the runtime. */
void records_begin(int everything_enters);

/* Those of one `syscall`, of any state but FREE. */
struct record *record_first(u32 call);
struct record *record_next(const struct record *record);
struct record *record_live(u32 call);
/* All of them, of any state: null behind the last. */
struct record *record_at(u32 index);
/* Of the stub, or of the trampoline, that an address is in; or null. */
const struct record *record_of_stub(u64 rip);
const struct record *record_of_trampoline(u32 trampoline);
u64 record_stub(const struct record *record);

/* The record of a site that is about to be rewritten, LIVE, with a stub; null where there is no room. */
struct record *record_take(struct site *wanted);
/* Whether some site found no room since room was made last: a search for it takes microseconds. */
int records_are_full(void);
/* The site was taken back. */
void record_leave(struct record *record);

#endif
