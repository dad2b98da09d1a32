#include "sites.h"
#include "account.h"
#include "interception.h"
#include "lock.h"
#include "memory.h"
#include "offsets.h"
#include "patch.h"
#include "settings.h"
#include "stub_users.h"
#include "table.h"
#include "text.h"
#include "trampolines.h"

extern u8 x32_stubs[], x32_enter[];

#define TEXTS 512
#define SITES STUB_COUNT
/* One bit for each call of the table that a stub may make. */
#define PLAIN_WORDS ((TABLE_SIZE + 63) / 64)
static u64 plain_calls[PLAIN_WORDS];
/* In the runtime's own text, which begins at 4 GiB: libraries, which are just below, are reached by direct
 * jumps, and reach back. */
#define STUBS_SIZE ((u64)STUB_COUNT * STUB_SIZE)
#define stubs x32_stubs

/* What has become of a site. */
enum state {
    FREE,
    LIVE, /* its text jumps to its stub */
    LEFT, /* its text does so no longer, or is no longer there, but a thread may be in the stub */
};

LARGE static struct record {
    struct site site;
    u32 trampoline; /* 0 where the site reaches its stub */
    u32 left;       /* when it was taken back (stub_users.h) */
    u16 slot;       /* its stub's first place */
    u16 slots;
    u16 next; /* in its bucket; 0 is the end */
    u8 state;
} records[SITES];
static u32 record_end; /* those beyond were never used */
static u32 left_count, collect_at;
LARGE static u16
    owner[STUB_COUNT];  /* of each place: 1 + the record whose stub it belongs to; 0 where it is free */
static u32 slot_before; /* the search begins after it; 0 before the first */
static u64 rewritten, refused, elsewhere;

#define AROUND (SITE_BEFORE + CALL_SIZE + SITE_AFTER)

/* Above one process's usual number of those that come and go at once. */
#define COLLECT_AT 64U

/* Lists by the address of the `syscall`; each entry is 1 + a record. */
#define BUCKETS 512U
static u16 buckets[BUCKETS];

/* In a page that is touched anyway, as far as most programs use it. */
__attribute__((section(".bss.first"))) static struct { u32 low, high; } texts[TEXTS];
static u32 text_count;
/* There was no room for another: then anything may be text. */
static int texts_are_lost;

static u32 lock;
static int everything_enters, rewriting;

/* Before the first stub that looks a number up. */
static void list_plain_calls(void) {
    for (u64 number = 0; number < TABLE_SIZE; number++) {
        if (table_is_plain(number | X32_BIT)) {
            plain_calls[number / 64] |= 1UL << (number % 64);
        }
    }
}

void sites_begin(int every_call_enters, int rewrite) {
    everything_enters = every_call_enters;
    rewriting = rewrite;
    collect_at = COLLECT_AT;
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

/* The pages below 4 GiB that a range touches. */
struct range {
    u64 low, high;
};

static struct range pages_of(u64 address, u64 size) {
    struct range none = {0, 0};
    if (address >= TASK_SIZE || size == 0) {
        return none;
    }
    u64 high = size > TASK_SIZE - address ? TASK_SIZE : ROUND_UP(address + size, PAGE);
    return (struct range){ROUND_DOWN(address, PAGE), high};
}

int sites_have_text(u64 address, u64 size) {
    struct range range = pages_of(address, size);
    int found = texts_are_lost && range.high != 0;
    for (u32 i = 0; i < text_count && !found; i++) {
        found = texts[i].high > range.low && range.high > texts[i].low;
    }
    return found;
}

static void add_text(u64 low, u64 high) {
    if (text_count == TEXTS) {
        texts_are_lost = 1;
        return;
    }
    texts[text_count].low = (u32)low;
    texts[text_count++].high = (u32)high;
}

/* How often sites of a page have trapped, in the page number's low bits. The first rewriting of a page costs
 * several times what a trap does, and a page of its own to the program; much of what a program calls at its
 * start is called once. The other sites of the page then cost next to nothing. */
#define SEEN 128
#define TRAPS_OF_PAGE 6U
#define TRAPS_OF_ANY 200U /* from here on a site is not asked whether it is new */
#define TRAPS_MASK (PAGE - 1)
static u32 seen[SEEN];

/* The sites that have trapped. In a page that is worth it each is rewritten when it traps again: what a copy
 * of the process calls once, and each copy anew, is not. */
static u32 called[SEEN];

static void forget_traps(struct range range) {
    for (u32 i = 0; i < SEEN; i++) {
        u32 page = (u32)ROUND_DOWN(seen[i], PAGE);
        seen[i] = page >= range.low && page < range.high ? 0 : seen[i];
        called[i] = called[i] >= range.low && called[i] < range.high ? 0 : called[i];
    }
}

static void forget_text(struct range range) {
    forget_traps(range);
    for (u32 i = 0; i < text_count; i++) {
        u32 low = texts[i].low, high = texts[i].high;
        if (high <= range.low || range.high <= low) {
            continue;
        }
        texts[i--] = texts[--text_count];
        if (low < range.low) {
            add_text(low, range.low);
        }
        if (range.high < high) {
            add_text(range.high, high);
        }
    }
}

void sites_text(u64 address, u64 size) {
    struct range range = pages_of(address, size);
    if (range.high != 0) {
        forget_text(range);
        add_text(range.low, range.high);
    }
}

/* The text that an address is in; of size 0 where that is none. */
static struct range text_at(u64 address) {
    for (u32 i = 0; i < text_count; i++) {
        if (address >= texts[i].low && address < texts[i].high) {
            return (struct range){texts[i].low, texts[i].high};
        }
    }
    return (struct range){0, 0};
}

static u16 *bucket_of(u32 call) { return &buckets[(call * 2654435761U) >> 23]; }

static struct record *first_at(u32 call) {
    u16 entry = *bucket_of(call);
    return entry != 0 ? &records[entry - 1] : NULL;
}

static struct record *next_of(const struct record *record) {
    return record->next != 0 ? &records[record->next - 1] : NULL;
}

static struct record *live_at(u32 call) {
    struct record *record = first_at(call);
    while (record != NULL && (record->state != LIVE || record->site.call != call)) {
        record = next_of(record);
    }
    return record;
}

static int is_same(const struct site *one, const struct site *other) {
    if (one->address != other->address || one->call != other->call || one->pattern != other->pattern ||
        one->size != other->size) {
        return 0;
    }
    for (u32 i = 0; i < one->size; i++) {
        if (one->bytes[i] != other->bytes[i]) {
            return 0;
        }
    }
    return 1;
}

static struct record *find_same(const struct site *wanted) {
    struct record *record = first_at(wanted->call);
    while (record != NULL && !is_same(&record->site, wanted)) {
        record = next_of(record);
    }
    return record;
}

static u64 stub_of(const struct record *record) { return (u64)stubs + record->slot * STUB_SIZE; }

static void release(struct record *record) {
    u16 own = (u16)(record - records + 1), *entry = bucket_of(record->site.call);
    while (*entry != own) {
        entry = &records[*entry - 1].next;
    }
    *entry = record->next;
    for (u32 i = 0; i < record->slots; i++) {
        owner[record->slot + i] = 0;
    }
    if (record->trampoline != 0) {
        trampoline_free(record->trampoline);
    }
    record->state = FREE;
}

/* Takes the places of those that were left, where no thread is any more. */
static void collect(void) {
    for (u32 i = 0; i < record_end; i++) {
        struct record *record = &records[i];
        struct left_place place = {stub_of(record), stub_of(record) + record->slots * STUB_SIZE,
                                   record->trampoline, record->left};
        if (record->state == LEFT && stub_users_are_out(&place)) {
            release(record);
            left_count--;
        }
    }
    collect_at = left_count + COLLECT_AT;
}

static void leave(struct record *record) {
    record->state = LEFT;
    record->left = stub_users_leave();
    left_count++;
}

static void write_jump(const struct record *record, u8 jump[7]) {
    static const u8 plain[7] = {0xe9, 0, 0, 0, 0, 0x66, 0x90};
    copy_bytes(jump, plain, sizeof plain);
    u64 target = record->trampoline != 0 ? record->trampoline : stub_of(record);
    put32(jump + 1, target - (record->site.address + JUMP_SIZE));
}

static int is_written(const struct record *record, const u8 *at) {
    u8 jump[7];
    write_jump(record, jump);
    for (u32 i = 0; i < record->site.replaced; i++) {
        if (at[i] != jump[i]) {
            return 0;
        }
    }
    return 1;
}

/* The program's own bytes, unless it has written others there by a way that the runtime does not see
 * (/proc/PID/mem). 0 where the jump stays: the text is sealed (mseal), for the program as well. */
static int put_back(const struct record *record) {
    const struct site *site = &record->site;
    u8 now[7];
    return read_user(now, site->address, site->replaced) < 0 || !is_written(record, now) ||
           patch_text(site->address, site->bytes, site->replaced);
}

/* Half of the site is gone. */
static void put_back_outside(const struct site *site, struct range gone) {
    for (u32 i = 0; i < site->replaced; i++) {
        u64 at = site->address + i;
        if (at < gone.low || at >= gone.high) {
            patch_unused(at, site->bytes + i, 1);
        }
    }
}

static int touches(const struct record *record, struct range range) {
    return record->state == LIVE && record->site.address < range.high &&
           record->site.address + record->site.size > range.low;
}

void sites_restore(u64 address, u64 size) {
    struct range range = pages_of(address, size);
    for (u32 i = 0; i < record_end; i++) {
        if (touches(&records[i], range) && put_back(&records[i])) {
            leave(&records[i]);
        }
    }
    forget_text(range);
}

void sites_gone(u64 address, u64 size) {
    struct range range = pages_of(address, size);
    for (u32 i = 0; i < record_end; i++) {
        const struct site *site = &records[i].site;
        if (touches(&records[i], range)) {
            if (site->address < range.low || site->address + site->replaced > range.high) {
                put_back_outside(site, range);
            }
            leave(&records[i]);
        }
    }
    forget_text(range);
}

static struct record *unused_record(void) {
    for (u32 i = 0; i < record_end; i++) {
        if (records[i].state == FREE) {
            return &records[i];
        }
    }
    return record_end < SITES ? &records[record_end++] : NULL;
}

/* So many free places in a row, or 0. */
static u32 unused_slots(u32 wanted) {
    u32 run = 0;
    u32 first = slot_before < STUB_FIRST ? STUB_FIRST : slot_before + 1;
    for (u32 i = 0, at = first; i < STUB_COUNT + wanted; i++, at++) {
        if (at == STUB_COUNT) {
            at = STUB_FIRST;
            run = 0;
        }
        run = owner[at] == 0 ? run + 1 : 0;
        if (run == wanted) {
            return at + 1 - wanted;
        }
    }
    return 0;
}

static u32 write_stub(u8 code[LARGEST_STUB], u32 slot, struct site *site) {
    enum direct direct = everything_enters               ? DIRECT_NEVER
                         : this_thread()->counts != NULL ? DIRECT_COUNTED
                                                         : DIRECT;
    return stub_write(code, (u64)stubs + slot * STUB_SIZE, site, direct, (u64)x32_enter, plain_calls);
}

static struct record *make(struct site *wanted) {
    u8 code[LARGEST_STUB];
    if (wanted->pattern != PATTERN_MOVE && plain_calls[0] == 0) {
        list_plain_calls();
    }
    if (left_count > 0 && (stub_users_are_alone() || left_count >= collect_at)) {
        collect();
    }
    u32 slots = (u32)ROUND_UP(write_stub(code, slot_before, wanted), STUB_SIZE) / STUB_SIZE;
    u32 slot = unused_slots(slots);
    struct record *record = slot != 0 ? unused_record() : NULL;
    if (record == NULL) {
        return NULL;
    }
    u32 size = write_stub(code, slot, wanted);
    *record = (struct record){.site = *wanted, .slot = (u16)slot, .slots = (u16)slots};
    if (!patch_unused(stub_of(record), code, size)) {
        return NULL;
    }
    if (!trampoline_suits(wanted, stub_of(record))) {
        record->trampoline = trampoline_make(wanted, stub_of(record));
        if (record->trampoline == 0) {
            return NULL;
        }
    }
    for (u32 i = 0; i < slots; i++) {
        owner[slot + i] = (u16)(record - records + 1);
    }
    slot_before = slot + slots - 1;
    u16 *bucket = bucket_of(wanted->call);
    record->next = *bucket;
    *bucket = (u16)(record - records + 1);
    return record;
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
    u8 bytes[AROUND], jump[7];
    struct site wanted;
    u64 end = number >> 32 == 0 ? read_around(call, bytes) : 0;
    if (end == 0) {
        return 0;
    }
    struct record *record = live_at((u32)call);
    if (record != NULL && is_written(record, bytes + SITE_BEFORE - (call - record->site.address))) {
        return 1; /* another thread's doing, or the program jumps straight to the call */
    }
    if (record != NULL) {
        leave(record);
    }
    if (site_recognise(&wanted, (u32)call, bytes, (u32)number) == PATTERN_NONE ||
        wanted.address + wanted.size > end || comparison_is_jumped_to(&wanted)) {
        return 0;
    }
    wanted.covers_by_call = wanted.pattern == PATTERN_COMPARE && interception_catches_every_number();
    if (!patch_is_safe(wanted.address, wanted.covers_by_call)) {
        return 0;
    }
    record = find_same(&wanted);
    if (record != NULL) {
        left_count--;
    } else {
        record = make(&wanted);
    }
    if (record == NULL) {
        return 0;
    }
    record->state = LIVE;
    rewritten++;
    write_jump(record, jump);
    if (!patch_text(wanted.address, jump, wanted.replaced)) {
        leave(record);
        return 0;
    }
    return 1;
}

/* `mov $imm64` holds eight bytes: code that makes code at run time has move and call, seven, in a constant.
 */
static int in_constant(const u8 *call) {
    for (int before = JUMP_SIZE + 2; before <= JUMP_SIZE + 3; before++) {
        if ((call[-before] & 0xfe) == 0x48 && (call[1 - before] & 0xf8) == 0xb8) {
            return 1;
        }
    }
    return 0;
}

/* Of two places the page's own, or the one that has trapped less. */
static u32 *place_of(u32 page) {
    u32 *one = &seen[((page >> 12) * 2654435761U) >> 25], *other = &seen[(one - seen) ^ 1];
    if (ROUND_DOWN(*one, PAGE) == page || ROUND_DOWN(*other, PAGE) == page) {
        return ROUND_DOWN(*one, PAGE) == page ? one : other;
    }
    return (*one & TRAPS_MASK) <= (*other & TRAPS_MASK) ? one : other;
}

static u32 count_trap(u32 call) {
    u32 page = (u32)ROUND_DOWN(call, PAGE), *place = place_of(page);
    u32 now = __atomic_load_n(place, __ATOMIC_RELAXED);
    now = ROUND_DOWN(now, PAGE) == page ? now : page;
    if ((now & TRAPS_MASK) < TRAPS_OF_ANY) {
        now++;
        __atomic_store_n(place, now, __ATOMIC_RELAXED);
    }
    return now & TRAPS_MASK;
}

static int is_new(u32 call) {
    u32 *slot = &called[(call * 2654435761U) >> 25];
    return __atomic_exchange_n(slot, call, __ATOMIC_RELAXED) != call;
}

/* The other sites of a page that have trapped, where the number is loaded right before the call: they can be
 * recognised by their bytes. A site that never trapped may be no site: data, or a template that is copied. */
static void rewrite_neighbours(u64 call) {
    u8 before[JUMP_SIZE];
    for (u32 i = 0; i < SEEN; i++) {
        u32 other = __atomic_load_n(&called[i], __ATOMIC_RELAXED);
        if (other != (u32)call && ROUND_DOWN(other, PAGE) == ROUND_DOWN(call, PAGE) &&
            live_at(other) == NULL && read_user(before, other - JUMP_SIZE, JUMP_SIZE) == 0 &&
            before[0] == 0xb8 && table_row(get32(before + 1))->name != NULL) {
            rewrite_locked(other, get32(before + 1));
        }
    }
}

void sites_rewrite(u64 call, u64 number) {
    if (!rewriting) {
        return;
    }
    u32 traps = count_trap((u32)call);
    int is_first = is_new((u32)call);
    if (traps < TRAPS_OF_PAGE || (traps < TRAPS_OF_ANY && is_first)) {
        return;
    }
    struct account_stretch before = account_rewriting();
    lock_take(&lock);
    patch_begin_batch();
    if (text_at(call).high == 0) {
        elsewhere++;
    } else if (!rewrite_locked(call, number)) {
        refused++;
    }
    if (stub_users_are_alone()) {
        rewrite_neighbours(call);
    }
    patch_end_batch();
    lock_release(&lock);
    account_rewritten(before);
}

void sites_rewrite_all(u64 address, u64 size) {
    const u8 *text = (const u8 *)address;
    for (u64 i = SITE_BEFORE; i + CALL_SIZE + SITE_AFTER <= size; i++) {
        int is_call = text[i] == 0x0f && text[i + 1] == 0x05 && !in_constant(text + i);
        if (is_call && !rewrite_locked(address + i, 0) && settings.trace) {
            complain("the bytes of a system call at %x are not rewritten", address + i);
        }
    }
}

int sites_is_stub(u64 rip) { return rip >= (u64)stubs && rip < (u64)stubs + STUBS_SIZE; }

static const struct record *owner_of(u64 rip) {
    u16 own = owner[(rip - (u64)stubs) / STUB_SIZE];
    return own != 0 ? &records[own - 1] : NULL;
}

static u64 from_trampoline(u32 trampoline) {
    for (u32 i = 0; i < record_end; i++) {
        if (records[i].state != FREE && records[i].trampoline == trampoline) {
            return records[i].site.address;
        }
    }
    return 0;
}

u64 sites_in_program(u64 rip, u64 flags, u64 *rax) {
    u32 trampoline = trampoline_at(rip);
    u64 place = 0;
    if (trampoline == 0 && !sites_is_stub(rip)) {
        return 0;
    }
    lock_take(&lock);
    if (trampoline != 0) {
        place = from_trampoline(trampoline);
    } else {
        const struct record *record = owner_of(rip);
        place = record != NULL ? site_place(&record->site, (u32)(rip - stub_of(record)), flags, rax) : 0;
    }
    lock_release(&lock);
    return place;
}

int sites_is_at_start(u64 rip) {
    u32 trampoline = trampoline_at(rip);
    if (trampoline != 0 || !sites_is_stub(rip)) {
        return trampoline != 0;
    }
    u64 rax = 0;
    lock_take(&lock);
    const struct record *record = owner_of(rip);
    int is_at_start = record != NULL && site_place(&record->site, (u32)(rip - stub_of(record)), 0, &rax) ==
                                            record->site.address;
    lock_release(&lock);
    return is_at_start;
}

/* The comparison at `rip`, which a jump covers, or covered before its site was taken back. */
static int covered_comparison(u64 rip, u8 compare[LARGEST_COMPARE]) {
    u32 call = (u32)rip - CALL_SIZE;
    int found = 0;
    for (const struct record *at = first_at(call); at != NULL && !found; at = next_of(at)) {
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
    if (read_user(bytes, rip - CALL_SIZE, sizeof bytes) < 0 || bytes[0] != 0x0f || bytes[1] != 0x05) {
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
    lock_take(&lock);
    int found = covered_comparison(rip, compare) || (of_call && comparison_of_call(rip, compare));
    lock_release(&lock);
    if (!found) {
        return 0;
    }
    *flags = comparison_flags(compare, rax, *flags);
    return rip + comparison_size(compare);
}

u64 sites_after_covered(u64 rip, u64 rax, u64 *flags) { return after_comparison(rip, rax, flags, 0); }

u64 sites_go_on(u64 rip, u64 rax, u64 *flags) {
    u64 after = after_comparison(rip, rax, flags, 1);
    return after != 0 ? after : rip;
}

u64 sites_call_before(u64 back) {
    u8 bytes[CALL_SIZE];
    u64 call = back - CALL_SIZE;
    if (!sites_is_stub(back) && read_user(bytes, call, CALL_SIZE) == 0 && bytes[0] == 0x0f &&
        bytes[1] == 0x05) {
        return call;
    }
    lock_take(&lock);
    if (sites_is_stub(back)) {
        call = owner_of(back)->site.call;
    } else {
        for (u32 i = 0; i < record_end; i++) {
            const struct site *site = &records[i].site;
            if (records[i].state != FREE && site->back == back) {
                call = site->pattern == PATTERN_EXIT ? site->address : site->call;
            }
        }
    }
    lock_release(&lock);
    return call;
}
