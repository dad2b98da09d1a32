#include "site_records.h"
#include "code_writes.h"
#include "stub_users.h"
#include "table.h"
#include "thread.h"
#include "trampolines.h"

extern u8 x32_stubs[], x32_enter[];

#define RECORDS STUB_COUNT
/* One bit for each call of the table that a stub may make. */
#define PLAIN_WORDS ((TABLE_SIZE + 63) / 64)
static u64 plain_calls[PLAIN_WORDS];
/* In the runtime's own text, which begins at 4 GiB: libraries, which are just below, are reached by direct
 * jumps, and reach back. */
#define stubs x32_stubs

LARGE static struct record records[RECORDS];
static u32 record_end; /* those beyond were never used */
static u32 left_count, collect_at;
LARGE static u16
    owner[STUB_COUNT];  /* of each place: 1 + the record whose stub it belongs to; 0 where it is free */
static u32 slot_before; /* the search begins after it; 0 before the first */
static u32 row_missing; /* so many places in a row were not to be had since one became free; 0: none asked */
static int everything_enters;

/* Above one process's usual number of those that come and go at once. */
#define COLLECT_AT 64U

/* Lists by the address of the `syscall`; each entry is 1 + a record. */
#define BUCKETS 512U
static u16 buckets[BUCKETS];

/* Before the first stub that looks a number up. */
static void list_plain_calls(void) {
    for (u64 number = 0; number < TABLE_SIZE; number++) {
        if (table_is_plain(number | X32_BIT)) {
            plain_calls[number / 64] |= 1UL << (number % 64);
        }
    }
}

void records_begin(int every_call_enters) {
    everything_enters = every_call_enters;
    collect_at = COLLECT_AT;
}

static u16 *bucket_of(u32 call) { return &buckets[(call * 2654435761U) >> 23]; }

struct record *record_first(u32 call) {
    u16 entry = *bucket_of(call);
    return entry != 0 ? &records[entry - 1] : NULL;
}

struct record *record_next(const struct record *record) {
    return record->next != 0 ? &records[record->next - 1] : NULL;
}

struct record *record_live(u32 call) {
    struct record *record = record_first(call);
    while (record != NULL && (record->state != LIVE || record->site.call != call)) {
        record = record_next(record);
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
    struct record *record = record_first(wanted->call);
    while (record != NULL && !is_same(&record->site, wanted)) {
        record = record_next(record);
    }
    return record;
}

u64 record_stub(const struct record *record) { return (u64)stubs + record->slot * STUB_SIZE; }

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
    row_missing = 0;
}

/* Takes the places of those that were left, where no thread is any more. */
static void collect(void) {
    for (u32 i = 0; i < record_end; i++) {
        struct record *record = &records[i];
        struct left_place place = {record_stub(record), record_stub(record) + record->slots * STUB_SIZE,
                                   record->trampoline, record->left};
        if (record->state == LEFT && stub_users_are_out(&place)) {
            release(record);
            left_count--;
        }
    }
    collect_at = left_count + COLLECT_AT;
}

void record_leave(struct record *record) {
    record->state = LEFT;
    record->left = stub_users_leave();
    left_count++;
}

static struct record *unused_record(void) {
    for (u32 i = 0; i < record_end; i++) {
        if (records[i].state == FREE) {
            return &records[i];
        }
    }
    return record_end < RECORDS ? &records[record_end++] : NULL;
}

int records_are_full(void) { return row_missing != 0; }

/* So many free places in a row, or 0. */
static u32 unused_slots(u32 wanted) {
    u32 run = 0;
    if (row_missing != 0 && wanted >= row_missing) {
        return 0;
    }
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
    row_missing = wanted;
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
    if (!code_write_unused(record_stub(record), code, size)) {
        return NULL;
    }
    if (!trampoline_suits(wanted, record_stub(record))) {
        record->trampoline = trampoline_make(wanted, record_stub(record));
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

struct record *record_take(struct site *wanted) {
    struct record *record = find_same(wanted);
    if (record != NULL) {
        left_count--;
    } else {
        record = make(wanted);
    }
    if (record != NULL) {
        record->state = LIVE;
    }
    return record;
}

const struct record *record_of_stub(u64 rip) {
    u16 own = owner[(rip - (u64)stubs) / STUB_SIZE];
    return own != 0 ? &records[own - 1] : NULL;
}

const struct record *record_of_trampoline(u32 trampoline) {
    for (u32 i = 0; i < record_end; i++) {
        if (records[i].state != FREE && records[i].trampoline == trampoline) {
            return &records[i];
        }
    }
    return NULL;
}

struct record *record_at(u32 index) {
    return index < record_end ? &records[index] : NULL;
}
