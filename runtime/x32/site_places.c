#include "site_places.h"
#include "code_writes.h"
#include "site_records.h"
#include "sites.h"
#include "trampolines.h"
#include "user_memory.h"

u64 sites_in_program(u64 rip, u64 flags, u64 *rax) {
    u32 trampoline = trampoline_at(rip);
    u64 place = 0;
    if (trampoline == 0 && !is_stub(rip)) {
        return 0;
    }
    sites_hold();
    if (trampoline != 0) {
        const struct record *record = record_of_trampoline(trampoline);
        place = record != NULL ? record->site.address : 0;
    } else {
        const struct record *record = record_of_stub(rip);
        place = record != NULL ? site_place(&record->site, (u32)(rip - record_stub(record)), flags, rax) : 0;
    }
    sites_let_go();
    return place;
}

u64 sites_call_again(u64 rip, u64 *rax) {
    u64 call = 0;
    if (!is_stub(rip)) {
        return 0;
    }
    sites_hold();
    const struct record *record = record_of_stub(rip);
    if (record != NULL && record->site.pattern == PATTERN_MOVE && record->site.made != 0 &&
        rip == record_stub(record) + record->site.made + CALL_SIZE &&
        record->site.number != (__NR_close | X32_BIT)) {
        call = record->site.call;
        *rax = record->site.number;
    }
    sites_let_go();
    return call;
}

int sites_is_at_start(u64 rip) {
    u32 trampoline = trampoline_at(rip);
    if (trampoline != 0 || !is_stub(rip)) {
        return trampoline != 0;
    }
    u64 rax = 0;
    sites_hold();
    const struct record *record = record_of_stub(rip);
    int is_at_start = record != NULL && site_place(&record->site, (u32)(rip - record_stub(record)), 0,
                                                   &rax) == record->site.address;
    sites_let_go();
    return is_at_start;
}

/* The comparison at `rip`, which a jump covers, or covered before its site was taken back. */
static int covered_comparison(u64 rip, u8 compare[LARGEST_COMPARE]) {
    u32 call = (u32)rip - CALL_SIZE;
    int found = 0;
    for (const struct record *at = record_first(call); at != NULL && !found; at = record_next(at)) {
        const struct site *site = &at->site;
        const u8 *bytes = site->bytes + CALL_SIZE;
        if (site->pattern != PATTERN_COMPARE || site->call != call) {
            continue;
        }
        found = at->state == LIVE || (read_user(compare, rip, site->compare_size) == 0 &&
                                      comparison_size(compare) == site->compare_size);
        if (at->state == LIVE) {
            copy_bytes(compare, bytes, site->compare_size);
        }
    }
    return found;
}

/* The comparison after the `syscall` of what is no site yet, but may be one at the next instruction. */
static int comparison_of_call(u64 rip, u8 compare[LARGEST_COMPARE]) {
    u8 bytes[CALL_SIZE + LARGEST_COMPARE];
    if (read_user(bytes, rip - CALL_SIZE, sizeof bytes) < 0 || !is_call(bytes)) {
        return 0;
    }
    copy_bytes(compare, bytes + CALL_SIZE, LARGEST_COMPARE);
    return comparison_size(compare) != 0;
}

static u64 after_comparison(u64 rip, u64 rax, u64 *flags, int of_call) {
    u8 compare[LARGEST_COMPARE];
    if (rip < CALL_SIZE || rip >= TASK_SIZE - LARGEST_COMPARE) {
        return 0;
    }
    sites_hold();
    int found = covered_comparison(rip, compare) || (of_call && comparison_of_call(rip, compare));
    sites_let_go();
    if (!found) {
        return 0;
    }
    *flags = comparison_flags(compare, rax, *flags);
    return rip + comparison_size(compare);
}

static int is_moved_to(u32 address, u32 move_size) {
    const struct record *at = record_first(address + move_size);
    while (at != NULL && (at->site.pattern != PATTERN_MOVE || at->site.address != address ||
                          at->site.call != address + move_size)) {
        at = record_next(at);
    }
    return at != NULL;
}

int sites_was_held(u64 rip) {
    u8 bytes[CALL_SIZE];
    u32 address = (u32)rip - CALL_SIZE;
    if (!x32_several_threads || rip < CALL_SIZE || rip > TASK_SIZE) {
        return 0;
    }
    sites_hold();
    int was_held = (is_moved_to(address, JUMP_SIZE) || is_moved_to(address, LONG_MOVE_SIZE)) &&
                   read_user(bytes, address, CALL_SIZE) == 0 && !is_call(bytes);
    sites_let_go();
    return was_held;
}

u64 sites_after_covered(u64 rip, u64 rax, u64 *flags) { return after_comparison(rip, rax, flags, 0); }

u64 sites_begin_again(u64 rip, u64 rax) {
    u64 begin = rip;
    sites_hold();
    for (const struct record *at = record_first((u32)rip); at != NULL; at = record_next(at)) {
        const struct site *site = &at->site;
        if (at->state == LIVE && site->pattern == PATTERN_MOVE && site->call == rip && site->number == rax) {
            begin = site->address;
        }
    }
    sites_let_go();
    return begin;
}

u64 sites_go_on(u64 rip, u64 rax, u64 *flags) {
    u64 after = after_comparison(rip, rax, flags, 1);
    return after != 0 ? after : rip;
}

u64 sites_call_before(u64 back) {
    u8 bytes[CALL_SIZE];
    u64 call = back - CALL_SIZE;
    if (!is_stub(back) && read_user(bytes, call, CALL_SIZE) == 0 && is_call(bytes)) {
        return call;
    }
    sites_hold();
    if (is_stub(back)) {
        call = record_of_stub(back)->site.call;
    } else {
        const struct record *record;
        for (u32 i = 0; (record = record_at(i)) != NULL; i++) {
            const struct site *site = &record->site;
            if (record->state != FREE && site->back == back) {
                call = site->pattern == PATTERN_EXIT ? site->address : site->call;
            }
        }
    }
    sites_let_go();
    return call;
}
