#include "stubs.h"
#include "offsets.h"
#include "table.h"
#include "x32.h"

u32 get32(const u8 *at) { return (u32)at[0] | (u32)at[1] << 8 | (u32)at[2] << 16 | (u32)at[3] << 24; }

void put32(u8 *at, u64 value) {
    for (int i = 0; i < 4; i++) {
        at[i] = (u8)(value >> (8 * i));
    }
}

static int same(const u8 *bytes, const char *wanted, u32 size) {
    for (u32 i = 0; i < size; i++) {
        if (bytes[i] != (u8)wanted[i]) {
            return 0;
        }
    }
    return 1;
}

/* The opcodes of one byte whose operands are a ModRM byte and nothing else. */
static int has_operands_only(u8 opcode) {
    switch (opcode) {
    case 0x01:
    case 0x03: /* add */
    case 0x09:
    case 0x0b: /* or */
    case 0x21:
    case 0x23: /* and */
    case 0x29:
    case 0x2b: /* sub */
    case 0x31:
    case 0x33: /* xor */
    case 0x39:
    case 0x3b: /* cmp */
    case 0x63: /* movslq */
    case 0x84:
    case 0x85: /* test */
    case 0x88:
    case 0x89:
    case 0x8a:
    case 0x8b: /* mov */
    case 0x8d: /* lea */
        return 1;
    default:
        return 0;
    }
}

/* The same after 0f: conditional and widening moves, the long nop; and what works on vector registers. */
static int is_general_0f(u8 opcode) {
    return opcode == 0x1f || (opcode >= 0x40 && opcode <= 0x4f) || opcode == 0xb6 || opcode == 0xb7 ||
           opcode == 0xbe || opcode == 0xbf;
}

static int is_vector_0f(u8 opcode) {
    return (opcode >= 0x10 && opcode <= 0x17) || (opcode >= 0x28 && opcode <= 0x29) ||
           (opcode >= 0x51 && opcode <= 0x70) || (opcode >= 0x74 && opcode <= 0x76) || opcode == 0x7e ||
           opcode == 0x7f || opcode == 0xc6 || (opcode >= 0xd4 && opcode <= 0xd6) ||
           (opcode >= 0xdb && opcode <= 0xef && opcode != 0xe6);
}

/* Whether it has AH, which is a part of eax: without REX that is register 4 of the operations on bytes. */
static int uses_ah(const u8 *code) {
    int is_0f = code[0] == 0x0f;
    u8 opcode = code[is_0f], operands = code[is_0f + 1];
    int both = !is_0f && (opcode == 0x84 || opcode == 0x88 || opcode == 0x8a);
    int one = is_0f ? opcode == 0xb6 || opcode == 0xbe : opcode == 0x80 || opcode == 0xc6;
    return (both && (operands >> 3 & 7) == 4) || ((both || one) && operands >> 6 == 3 && (operands & 7) == 4);
}

struct instruction {
    u32 length;   /* 0 where it is not certain that it means the same elsewhere and leaves eax alone */
    u32 relative; /* offset of its ModRM byte, where its operand is addressed from where it stands; else 0 */
};

static struct instruction decode(const u8 *bytes, u32 room) {
    static const struct instruction unknown = {0, 0};
    struct instruction found = unknown;
    u32 at = 0, immediate = 0;
    int wide_address = 1, wide_operand = 0, group = 0, vector = 0;
    u8 rex = 0;
    while (at < room && (bytes[at] == 0x66 || bytes[at] == 0x67 || bytes[at] == 0x64 || bytes[at] == 0xf2 ||
                         bytes[at] == 0xf3)) {
        wide_address &= bytes[at] != 0x67;
        wide_operand |= bytes[at] == 0x66;
        at++;
    }
    if (at < room && (bytes[at] & 0xf0) == 0x40) {
        rex = bytes[at++];
    }
    if (at >= room) {
        return unknown;
    }
    const u8 *code = bytes + at;
    u8 opcode = bytes[at++];
    int is_push = opcode >= 0x50 && opcode <= 0x57; /* the stub works on the program's own stack */
    if (is_push || (opcode > 0xb8 && opcode <= 0xbf && !(rex & 8) && !wide_operand)) { /* mov $imm32 */
        at += is_push ? 0 : 4;
        found.length = at <= room && ((opcode & 7) != 0 || (rex & 1)) ? at : 0; /* any but eax */
        return found;
    }
    if (opcode == 0x0f && at < room) {
        opcode = bytes[at++];
        vector = is_vector_0f(opcode);
        if (!vector && !is_general_0f(opcode)) {
            return unknown;
        }
        immediate = opcode == 0x70 || opcode == 0xc6;
        group = opcode == 0x1f;
    } else if (opcode == 0x80 || opcode == 0x83 || opcode == 0xc6) {
        group = 1;
        immediate = 1;
    } else if (opcode == 0x81 || opcode == 0xc7) {
        group = 1;
        immediate = wide_operand ? 2 : 4;
    } else if (!has_operands_only(opcode)) {
        return unknown;
    }
    if (at >= room) {
        return unknown;
    }
    u32 operands_at = at;
    u8 operands = bytes[at++];
    u8 mode = operands >> 6, reg = (u8)((operands >> 3 & 7) | (rex & 4 ? 8 : 0)), rm = operands & 7;
    if ((!group && !vector && reg == 0) || (rex == 0 && uses_ah(code))) {
        return unknown;
    }
    if (mode == 3) {
        int general = !vector || opcode == 0x6e || opcode == 0x7e || opcode == 0xd7;
        if (rm == 0 && !(rex & 1) && general) {
            return unknown;
        }
    } else if (rm == 4) {
        if (at >= room) {
            return unknown;
        }
        u8 index = bytes[at++];
        if (((index & 7) == 0 && !(rex & 1)) || ((index >> 3 & 7) == 0 && !(rex & 2))) {
            return unknown;
        }
        at += mode == 0 && (index & 7) == 5 ? 4 : 0;
    } else if (mode == 0 && rm == 5) {
        if (!wide_address) {
            return unknown;
        }
        found.relative = operands_at;
        at += 4;
    } else if (rm == 0 && !(rex & 1) && opcode != 0x1f) {
        return unknown;
    }
    at += mode == 1 ? 1 : mode == 2 ? 4 : 0;
    at += immediate;
    found.length = at <= room ? at : 0;
    return found;
}

/* How many bytes lie between a move of the number into eax and the `syscall` at the end of `before`, if they
 * are instructions that can be made elsewhere; -1 where there is no such move. */
static i32 bytes_between(const u8 *before, u32 *number) {
    for (u32 gap = 0; gap + JUMP_SIZE <= SITE_BEFORE; gap++) {
        const u8 *move = before - gap - JUMP_SIZE;
        u32 loaded = get32(move + 1);
        if (move[0] != 0xb8 || !(loaded & X32_BIT) || (loaded & ~X32_BIT) >= TABLE_SIZE ||
            (*number != 0 && loaded != *number) ||
            (move > before - SITE_BEFORE && (move[-1] & 0xf0) == 0x40)) {
            continue;
        }
        u32 at = 0;
        while (at < gap) {
            u32 length = decode(move + JUMP_SIZE + at, gap - at).length;
            if (length == 0) {
                break;
            }
            at += length;
        }
        if (at == gap) {
            *number = loaded;
            return (i32)gap;
        }
    }
    return -1;
}

/* cmp $-4096 or $-4095, with %eax or %rax. Where nothing has trapped, so that the bytes of a call may be
 * anything, this makes certain what they are. */
static int is_error_check(const u8 *after) {
    u32 limit = get32(after + (after[0] == 0x48 ? 2 : 1));
    return limit == 0xfffff000 || limit == 0xfffff001;
}

u32 comparison_size(const u8 compare[LARGEST_COMPARE]) {
    return compare[0] == 0x3d ? 5 : same(compare, "\x48\x3d", 2) ? 6 : 0;
}

#define STATUS_FLAGS 0x8d5UL

u64 comparison_flags(const u8 compare[LARGEST_COMPARE], u64 rax, u64 flags) {
    u32 size = comparison_size(compare);
    i32 limit = (i32)get32(compare + size - 4);
    u64 after;
    if (size == 5) {
        __asm__("cmp %2, %1\n pushfq\n pop %0" : "=r"(after) : "r"((i32)rax), "r"(limit) : "cc");
    } else {
        __asm__("cmp %2, %1\n pushfq\n pop %0" : "=r"(after) : "r"(rax), "r"((i64)limit) : "cc");
    }
    return (flags & ~STATUS_FLAGS) | (after & STATUS_FLAGS);
}

static int is_x32_number(u32 number) { return (number & X32_BIT) && (number & ~X32_BIT) < TABLE_SIZE; }

/* Of D: no thread comes to the jump after the call, which is covered. */
static int never_returns(u32 number) {
    return number == 0 || number == (__NR_exit | X32_BIT) || number == (__NR_exit_group | X32_BIT);
}

static enum pattern find_pattern(struct site *site, u32 call, const u8 *bytes, u32 number) {
    const u8 *before = bytes + SITE_BEFORE, *after = before + CALL_SIZE;
    u32 loaded = get32(before - 4);
    i32 between;
    int moved = is_x32_number(loaded) && (number == 0 || loaded == number);
    *site = (struct site){.call = call, .back = call + CALL_SIZE, .number = number, .replaced = JUMP_SIZE};
    if (moved && same(before - 7, "\x48\xc7\xc0", 3)) {
        site->pattern = PATTERN_MOVE;
        site->replaced = LONG_MOVE_SIZE;
        site->number = loaded;
    } else if ((between = bytes_between(before, &number)) >= 0) {
        site->pattern = PATTERN_MOVE;
        site->number = number;
        site->between = (u8)between;
        site->address = call - (u32)between - JUMP_SIZE;
        return PATTERN_MOVE;
    } else if (same(before - 5, "\x4c\x89\x5c\x24\x08", 5) && after[0] == 0xc3) {
        site->pattern = PATTERN_CANCEL;
    } else if (same(before - 2, "\x89\xd0", 2) && after[0] == 0xeb && after[1] >= 0xf0 && after[1] <= 0xfa &&
               never_returns(number)) {
        site->pattern = PATTERN_EXIT;
        site->address = call - 2;
        site->back = call + CALL_SIZE + 2 - (0x100U - after[1]);
        return PATTERN_EXIT;
    } else if (comparison_size(after) != 0 && (number != 0 || is_error_check(after))) {
        site->pattern = PATTERN_COMPARE;
        site->address = call;
        site->compare_size = (u8)comparison_size(after);
        site->back = call + CALL_SIZE + site->compare_size;
        return PATTERN_COMPARE;
    } else {
        return PATTERN_NONE;
    }
    site->address = call - site->replaced;
    return site->pattern;
}

enum pattern site_recognise(struct site *site, u32 call, const u8 bytes[SITE_BEFORE + CALL_SIZE + SITE_AFTER],
                            u32 number) {
    enum pattern pattern = find_pattern(site, call, bytes, number);
    if (pattern != PATTERN_NONE) {
        u32 end = call + CALL_SIZE + (pattern == PATTERN_EXIT ? 2 : site->compare_size);
        site->size = (u8)(end - site->address);
        copy_bytes(site->bytes, bytes + SITE_BEFORE - (call - site->address), site->size);
    }
    return pattern;
}

u32 site_meanwhile(const struct site *site, int every_number_traps) {
    switch (site->pattern) {
    case PATTERN_COMPARE:
    case PATTERN_EXIT:
        return get16(site->bytes);
    case PATTERN_MOVE:
        return every_number_traps && site->between == 0 ? TRAP_CALL : JUMP_TO_ITSELF;
    default:
        return JUMP_TO_ITSELF;
    }
}

int is_jumped_to(const u8 *bytes, u32 size, u32 offset) {
    for (u32 at = 1; at + 4 <= size; at++) {
        u8 opcode = bytes[at - 1];
        i32 distance = (i32)(offset - (at + 1));
        if (bytes[at] == (u8)distance && distance == (signed char)distance &&
            ((opcode & 0xf0) == 0x70 || opcode == 0xeb || (opcode >= 0xe0 && opcode <= 0xe3))) {
            return 1; /* jcc, jmp, loop, jrcxz */
        }
        if (get32(bytes + at) == offset - (at + 4) &&
            (opcode == 0xe9 || (at > 1 && bytes[at - 2] == 0x0f && (opcode & 0xf0) == 0x80))) {
            return 1;
        }
    }
    return 0;
}

struct writer {
    u8 *code;
    u64 at; /* where the code will lie */
    u32 size;
};

static void put(struct writer *writer, const char *bytes, u32 size) {
    copy_bytes(writer->code + writer->size, bytes, size);
    writer->size += size;
}

static void put_value(struct writer *writer, u64 value) {
    put32(writer->code + writer->size, value);
    writer->size += 4;
}

/* A displacement from the end of the four bytes that hold it. */
static void put_distance(struct writer *writer, u64 target) {
    put_value(writer, target - (writer->at + writer->size + 4));
}

/* jmp, directly where that reaches: an indirect one after a system call is rarely predicted. */
static void put_jump(struct writer *writer, u64 target) {
    i64 distance = (i64)(target - (writer->at + writer->size + JUMP_SIZE));
    if (distance == (i32)distance) {
        put(writer, "\xe9", 1);
        put_distance(writer, target);
    } else {
        /* Over bytes after which the address is aligned, as the program may have set AC. */
        u64 end = writer->at + writer->size + 6;
        u32 over = (u32)(ROUND_UP(end, 8) - end);
        put(writer, "\xff\x25", 2);
        put_value(writer, over);
        put(writer, "\xcc\xcc\xcc\xcc\xcc\xcc\xcc", over);
        put_value(writer, target);
        put_value(writer, target >> 32);
    }
}

static void put_enter(struct writer *writer, u32 back, u64 enter) {
    put(writer, "\xb9", 1); /* mov $back,%ecx */
    put_value(writer, back);
    put_jump(writer, enter);
}

static void put_number(struct writer *writer, u32 number) {
    put(writer, "\xb8", 1);
    put_value(writer, number);
}

/* A system call changes rcx and r11 anyway, and no flag is changed here. */
static void put_count(struct writer *writer) {
    put(writer, "\x65\x48\x8b\x0c\x25", 5); /* mov %gs:THREAD_COUNTS,%rcx */
    put_value(writer, THREAD_COUNTS);
    put(writer, "\x4c\x8b\x59", 3); /* mov COUNTS_PLAIN(%rcx),%r11 */
    put(writer, (const char[]){COUNTS_PLAIN}, 1);
    put(writer, "\x4d\x8d\x5b\x01", 4); /* lea 1(%r11),%r11 */
    put(writer, "\x4c\x89\x59", 3);     /* mov %r11,COUNTS_PLAIN(%rcx) */
    put(writer, (const char[]){COUNTS_PLAIN}, 1);
}

static void put_call(struct writer *writer, struct site *site, enum direct direct) {
    if (direct == DIRECT_COUNTED) {
        put_count(writer);
    }
    site->made = (u8)writer->size;
    put(writer, "\x0f\x05", CALL_SIZE);
}

/* A jump of two bytes to a place that is not known yet. */
static u32 put_short_jump(struct writer *writer, const char *opcode) {
    put(writer, opcode, 1);
    put(writer, "\0", 1);
    return writer->size;
}

static void land(struct writer *writer, u32 from) { writer->code[from - 1] = (u8)(writer->size - from); }

/* What is between a move and its `syscall`. An operand that was addressed from where the instruction stood,
 * disp(%rip), is addressed by its 32-bit address instead, two bytes longer. */
#define STRETCH 2
/* Of btr and bts with a constant; btr leaves in the carry flag what the bit was. */
#define SIZE_OF_BIT_CHANGE 4
#define FLAG_CARRY 1UL
static void copy_between(struct writer *writer, struct site *site) {
    const u8 *from = site->bytes + site->replaced;
    for (u32 at = 0; at < site->between;) {
        struct instruction instruction = decode(from + at, site->between - at);
        const char *bytes = (const char *)from + at;
        if (instruction.relative == 0) {
            put(writer, bytes, instruction.length);
        } else {
            u64 target = site->address + site->replaced + at + instruction.length +
                         (u64)(i64)(i32)get32(from + at + instruction.relative + 1);
            const char operands[2] = {(char)((u8)bytes[instruction.relative] - 1), 0x25};
            u32 rest = instruction.relative + 5;
            put(writer, "\x67", 1);
            put(writer, bytes, instruction.relative);
            put(writer, operands, 2);
            put_value(writer, target);
            put(writer, bytes + rest, instruction.length - rest);
        }
        at += instruction.length;
    }
}

static void write_move(struct writer *writer, struct site *site, enum direct direct, u64 enter) {
    copy_between(writer, site);
    if (direct && table_is_plain(site->number)) {
        put_number(writer, site->number & ~X32_BIT);
        put_call(writer, site, direct);
        put_jump(writer, site->back);
    } else {
        put_number(writer, site->number);
        put_enter(writer, site->back, enter);
    }
}

/* Makes the call that rax names if that is a plain one; else goes on behind what is written here, with rax as
 * it was. The flags are not needed. */
static void put_any_call(struct writer *writer, struct site *site, enum direct direct, const u64 *plain_calls,
                         u32 ways_on[3]) {
    put(writer, "\x0f\xba\xf0\x1e", 4); /* btr $30,%eax */
    ways_on[0] = put_short_jump(writer, "\x73");
    put(writer, "\x3d", 1); /* cmp $TABLE_SIZE,%eax */
    put_value(writer, TABLE_SIZE);
    ways_on[1] = put_short_jump(writer, "\x73");
    put(writer, "\x0f\xa3\x05", 3); /* bt %eax,plain_calls(%rip) */
    put_distance(writer, (u64)plain_calls);
    ways_on[2] = put_short_jump(writer, "\x73");
    put_call(writer, site, direct);
}

static void land_on(struct writer *writer, const u32 ways_on[3]) {
    land(writer, ways_on[1]);
    land(writer, ways_on[2]);
    put(writer, "\x0f\xba\xe8\x1e", 4); /* bts $30,%eax */
    land(writer, ways_on[0]);
}

static void write_compare(struct writer *writer, struct site *site, enum direct direct, u64 enter,
                          const u64 *plain_calls) {
    const char *compare = (const char *)site->bytes + CALL_SIZE;
    u32 ways_on[3], over = 0;
    if (direct) {
        put_any_call(writer, site, direct, plain_calls, ways_on);
    } else {
        over = put_short_jump(writer, "\xeb");
    }
    site->rest = (u8)writer->size;
    put(writer, compare, site->compare_size);
    put_jump(writer, site->back);
    site->declined = (u8)writer->size;
    if (direct) {
        land_on(writer, ways_on);
    } else {
        land(writer, over);
    }
    put(writer, "\x48\x8d\x0d", 3); /* lea comparison(%rip),%rcx */
    put_distance(writer, writer->at + site->rest);
    put_jump(writer, enter);
}

static void write_cancel(struct writer *writer, struct site *site, enum direct direct, u64 enter,
                         const u64 *plain_calls) {
    put(writer, "\x4c\x89\x5c\x24\x08", 5);
    if (direct) {
        u32 ways_on[3];
        put_any_call(writer, site, direct, plain_calls, ways_on);
        put_jump(writer, site->back);
        site->declined = (u8)writer->size;
        land_on(writer, ways_on);
    }
    put_enter(writer, site->back, enter);
}

u32 stub_write(u8 code[LARGEST_STUB], u64 at, struct site *site, enum direct direct, u64 enter,
               const u64 *plain_calls) {
    struct writer writer = {code, at, 0};
    switch (site->pattern) {
    case PATTERN_MOVE:
        write_move(&writer, site, direct, enter);
        break;
    case PATTERN_COMPARE:
        write_compare(&writer, site, direct, enter, plain_calls);
        break;
    case PATTERN_CANCEL:
        write_cancel(&writer, site, direct, enter, plain_calls);
        break;
    default:
        put(&writer, "\x89\xd0", 2); /* mov %edx,%eax */
        put_enter(&writer, site->back, enter);
        break;
    }
    return writer.size;
}

/* The same instruction in the program, `between` the move and the `syscall`. */
static u32 place_between(const struct site *site, u32 offset) {
    const u8 *from = site->bytes + site->replaced;
    u32 at = 0;
    for (u32 there = 0; at < site->between && there < offset;) {
        struct instruction instruction = decode(from + at, site->between - at);
        at += instruction.length;
        there += instruction.length + (instruction.relative != 0 ? STRETCH : 0);
    }
    return site->address + site->replaced + at;
}

static u32 place_of_move(const struct site *site, u32 offset, u64 *rax) {
    if (offset == 0) {
        return site->address; /* nothing has happened */
    }
    if (site->made != 0 && offset > site->made) {
        return site->back;
    }
    /* Before the call, or the kernel is about to make it again: then it may be restart_syscall. */
    *rax = site->made != 0 && offset == site->made ? (u32)*rax | X32_BIT : site->number;
    return place_between(site, offset);
}

/* Of put_any_call and land_on: bit 30 is cleared by the first instruction, at `cleared`, and set again by the
 * first one of the way into the runtime. */
static void restore_number(const struct site *site, u32 offset, u32 cleared, u64 flags, u64 *rax) {
    u32 after = cleared + SIZE_OF_BIT_CHANGE;
    if (site->made == 0 || offset <= cleared || offset > site->declined) {
        return;
    }
    if (offset > after || (flags & FLAG_CARRY)) {
        *rax = (u32)*rax | X32_BIT;
    }
}

u32 site_place(const struct site *site, u32 offset, u64 flags, u64 *rax) {
    u32 stored = site->pattern == PATTERN_CANCEL ? JUMP_SIZE : 0;
    switch (site->pattern) {
    case PATTERN_MOVE:
        return place_of_move(site, offset, rax);
    case PATTERN_COMPARE:
        if (offset == site->rest) {
            return site->call + CALL_SIZE;
        }
        if (offset > site->rest && offset < site->declined) {
            return site->back;
        }
        break;
    case PATTERN_CANCEL:
        if (offset < stored) {
            return site->address;
        }
        if (site->made != 0 && offset > site->made && offset < site->declined) {
            return site->back;
        }
        break;
    default:
        return site->address;
    }
    restore_number(site, offset, stored, flags, rax);
    return site->call;
}
