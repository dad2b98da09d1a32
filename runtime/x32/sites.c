#include "sites.h"
#include "account.h"
#include "code_writes.h"
#include "diagnostics.h"
#include "interception.h"
#include "lock.h"
#include "settings.h"
#include "site_records.h"
#include "site_traps.h"
#include "stub_users.h"
#include "table.h"
#include "texts.h"
#include "trampolines.h"
#include "user_memory.h"

#define AROUND (SITE_BEFORE + CALL_SIZE + SITE_AFTER)

static u32 lock;
static int rewriting;
static u64 rewritten, refused, elsewhere;
static int memory_is_locked;

void sites_begin(int everything_enters, int rewrite) {
    records_begin(everything_enters);
    rewriting = rewrite;
    stub_users_add(this_thread(), 0);
}

void sites_thread_begins(struct thread *thread, u64 rip) {
    lock_take(&lock);
    stub_users_add(thread, rip);
    lock_release(&lock);
}

void sites_thread_ends(struct thread *thread) {
    lock_take(&lock);
    stub_users_remove(thread);
    lock_release(&lock);
}

u64 sites_pools(void) { return trampolines_pages(); }
u64 sites_own_page(u64 low, u64 high) { return trampolines_page(low, high); }

struct site_count sites_count(void) {
    return (struct site_count){rewritten, refused, elsewhere};
}

void sites_hold(void) { lock_take(&lock); }
void sites_let_go(void) { lock_release(&lock); }

int sites_have_text(u64 address, u64 size) { return texts_touch(pages_of(address, size)); }

static void forget_text(struct range range) {
    site_traps_forget(range);
    texts_remove(range);
}

void sites_text(u64 address, u64 size) {
    struct range range = pages_of(address, size);
    if (range.high != 0) {
        site_traps_forget(range);
        texts_add(range);
    }
}

static void write_jump(const struct record *record, u8 jump[LONG_MOVE_SIZE]) {
    static const u8 plain[LONG_MOVE_SIZE] = {0xe9, 0, 0, 0, 0, 0x66, 0x90};
    copy_bytes(jump, plain, sizeof plain);
    u64 target = record->trampoline != 0 ? record->trampoline : record_stub(record);
    put32(jump + 1, target - (record->site.address + JUMP_SIZE));
}

static int is_written(const struct record *record, const u8 *at) {
    u8 jump[LONG_MOVE_SIZE];
    write_jump(record, jump);
    for (u32 i = 0; i < record->site.replaced; i++) {
        if (at[i] != jump[i]) {
            return 0;
        }
    }
    return 1;
}

static int write_site(const struct site *site, const u8 *bytes) {
    u32 meanwhile = site_meanwhile(site, interception_catches_every_number());
    return code_write(site->address, bytes, site->replaced, meanwhile);
}

/* The program's own bytes, unless it has written others there by a way that the runtime does not see
 * (/proc/PID/mem). 0 where the jump stays: the text is sealed (mseal), for the program as well. */
static int put_back(const struct record *record) {
    const struct site *site = &record->site;
    u8 now[LONG_MOVE_SIZE];
    return read_user(now, site->address, site->replaced) < 0 || !is_written(record, now) ||
           write_site(site, site->bytes);
}

/* Half of the site is gone. */
static void put_back_outside(const struct site *site, struct range gone) {
    for (u32 i = 0; i < site->replaced; i++) {
        u64 at = site->address + i;
        if (at < gone.low || at >= gone.high) {
            code_write_unused(at, site->bytes + i, 1);
        }
    }
}

static int touches(const struct record *record, struct range range) {
    return record->state == LIVE && record->site.address < range.high &&
           record->site.address + record->site.size > range.low;
}

void sites_put_back(u64 address, u64 size) {
    struct range range = pages_of(address, size);
    struct record *record;
    for (u32 i = 0; (record = record_at(i)) != NULL; i++) {
        if (touches(record, range) && put_back(record)) {
            record_leave(record);
        }
    }
}

void sites_restore(u64 address, u64 size) {
    sites_put_back(address, size);
    forget_text(pages_of(address, size));
}

/* The kernel counts what was writable once as the process's own memory (VM_ACCOUNT, mprotect_fixup), and so
 * divides a mapping of which one page was rewritten. When all of it was writable once, it is one mapping
 * again. */
void sites_join(u64 address, u64 size) {
    struct range range = pages_of(address, size);
    struct range text = text_at(range.low);
    if (range.low < range.high && range.high <= text.high) {
        KERNEL_3(__NR_mprotect, range.low, range.high - range.low, PROT_READ | PROT_WRITE | PROT_EXEC);
        KERNEL_3(__NR_mprotect, range.low, range.high - range.low, PROT_READ | PROT_EXEC);
    }
}

void sites_gone(u64 address, u64 size) {
    struct range range = pages_of(address, size);
    struct record *record;
    for (u32 i = 0; (record = record_at(i)) != NULL; i++) {
        const struct site *site = &record->site;
        if (touches(record, range)) {
            if (site->address < range.low || site->address + site->replaced > range.high) {
                put_back_outside(site, range);
            }
            record_leave(record);
        }
    }
    forget_text(range);
}

/* A thread that jumps to the comparison meets the trap of B, which is as slow as that of the call, or its
 * fault, which ends it if it has SIGSEGV blocked. Compilers make no such jumps; handwritten code makes them
 * from near.
 */
#define NEAR 256U
static int comparison_is_jumped_to(const struct site *site) {
    u8 bytes[2 * NEAR];
    u64 at = site->call + CALL_SIZE;
    struct range text = text_at(site->call);
    if (site->pattern != PATTERN_COMPARE) {
        return 0;
    }
    u64 low = at - text.low < NEAR ? text.low : at - NEAR,
        high = text.high - at < NEAR ? text.high : at + NEAR;
    return read_user(bytes, low, high - low) == 0 && is_jumped_to(bytes, (u32)(high - low), (u32)(at - low));
}

/* What is around a call, as far as it is text: the end of that; 0 where the call is in none. */
static u64 read_around(u64 call, u8 bytes[AROUND]) {
    struct range text = text_at(call);
    u64 first = call - SITE_BEFORE, low = text.low > first ? text.low : first;
    u64 high = text.high < first + AROUND ? text.high : first + AROUND;
    clear_bytes(bytes, AROUND);
    return text.high != 0 && read_user(bytes + (low - first), low, high - low) == 0 ? text.high : 0;
}

static int rewrite_locked(u64 call, u64 number) {
    u8 bytes[AROUND], jump[LONG_MOVE_SIZE];
    struct site wanted;
    u64 end = number >> 32 == 0 ? read_around(call, bytes) : 0;
    if (end == 0) {
        return 0;
    }
    struct record *record = record_live((u32)call);
    if (record != NULL && is_written(record, bytes + SITE_BEFORE - (call - record->site.address))) {
        return 1; /* another thread's doing, or the program jumps straight to the call */
    }
    if (record != NULL) {
        record_leave(record);
    }
    if (site_recognise(&wanted, (u32)call, bytes, (u32)number) == PATTERN_NONE ||
        wanted.address + wanted.size > end || comparison_is_jumped_to(&wanted)) {
        return 0;
    }
    wanted.covers_by_call = wanted.pattern == PATTERN_COMPARE && interception_catches_every_number();
    if (!code_write_is_safe(wanted.address, wanted.covers_by_call)) {
        return 0;
    }
    record = record_take(&wanted);
    if (record == NULL) {
        return 0;
    }
    write_jump(record, jump);
    if (!write_site(&wanted, jump)) {
        record_leave(record);
        return 0;
    }
    rewritten++;
    return 1;
}

/* `mov $imm64` holds eight bytes: code that makes code at run time has move and call, seven, in a constant.
 */
static int in_constant(const u8 *call) {
    for (int before = JUMP_SIZE + CALL_SIZE; before <= JUMP_SIZE + CALL_SIZE + 1; before++) {
        if ((call[-before] & 0xfe) == 0x48 && (call[1 - before] & 0xf8) == 0xb8) {
            return 1;
        }
    }
    return 0;
}

/* The other sites of a page that have trapped, where the number is loaded right before the call: they can be
 * recognised by their bytes. A site that never trapped may be no site: data, or a template that is copied. */
static void rewrite_neighbour(u32 call) {
    u8 before[JUMP_SIZE];
    if (record_live(call) == NULL && read_user(before, call - JUMP_SIZE, JUMP_SIZE) == 0 &&
        before[0] == 0xb8 && table_row(get32(before + 1))->name != NULL) {
        rewrite_locked(call, get32(before + 1));
    }
}

void sites_memory_locked(void) { memory_is_locked = 1; }

/* So much of a text is made writable together. A mapping more costs a fork and an exec some 4 microseconds; a
 * mapping that has a page of its own is copied page by page, at some 0.2 each. */
#define CHUNK (16 * PAGE)

/* What becomes writable where memory is locked is copied at once, which is to be one page and not all. */
static void begin_piece(u64 low, u64 high) { code_writes_begin(low, memory_is_locked ? low : high); }

static void begin_chunk(u64 at, struct range text) {
    u64 low = ROUND_DOWN(at, CHUNK), high = low + CHUNK;
    low = low > text.low ? low : text.low;
    high = high < text.high ? high : text.high;
    begin_piece(low, high);
}

static void count_refused(void) { __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED); }

void sites_rewrite(u64 call, u64 number) {
    enum trapped trapped = rewriting ? site_trapped((u32)call) : TRAPPED_SELDOM;
    if (trapped == TRAPPED_FOR_GOOD) {
        count_refused();
    }
    if (trapped != TRAPPED_OFTEN) {
        return;
    }
    struct account_stretch before = account_rewriting();
    lock_take(&lock);
    struct range text = text_at(call);
    begin_chunk(call, text);
    if (text.high == 0) {
        elsewhere++;
    } else if (!rewrite_locked(call, number)) {
        count_refused();
    }
    if (code_writes_were_refused()) {
        site_traps_refuse_page((u32)call);
    } else if (stub_users_are_alone() && !records_are_full()) {
        site_traps_of_page((u32)call, rewrite_neighbour);
    }
    code_writes_end();
    lock_release(&lock);
    account_rewritten(before);
}

/* How much of a mapping can be read: of a file's, what lies beyond its end cannot. */
static u64 readable(u64 address, u64 size) {
    u8 byte;
    u64 end = address;
    while (end < address + size && READ_USER(byte, end) == 0) {
        end = ROUND_DOWN(end, PAGE) + PAGE;
    }
    return end < address + size ? end - address : size;
}

void sites_rewrite_all(u64 address, u64 size) {
    const u8 *text = (const u8 *)address;
    size = readable(address, size);
    begin_piece(address, address + size);
    for (u64 i = SITE_BEFORE; i + CALL_SIZE + SITE_AFTER <= size; i++) {
        if (is_call(text + i) && !in_constant(text + i) && !rewrite_locked(address + i, 0) &&
            settings.trace) {
            complain("the bytes of a system call at %x are not rewritten", address + i);
        }
    }
    code_writes_end();
}
