#define _GNU_SOURCE
#include "unwind_rules.h"

#include <string.h>

/* Numbers of the registers in unwind tables: System V ABI, AMD64 supplement, figure 3.36; Intel386
 * supplement. */
#ifdef __x86_64__
#define STACK_POINTER 7
#define FRAME_POINTER 6
#define RETURN_ADDRESS 16
#else
#define STACK_POINTER 4
#define FRAME_POINTER 5
#define RETURN_ADDRESS 8
#endif

/* Operations and encodings: DWARF 5, 7.23 and 7.7.1; Linux Standard Base 5.0, 10.5 and 10.6. */
#define OP_DEREFERENCE 0x06
#define OP_REGISTER_PLUS 0x70
#define POINTER_OMITTED 0xff

struct bytes {
    const uint8_t *at, *end;
    int ended; /* a read went beyond the end */
};

static uint64_t fixed(struct bytes *bytes, unsigned size) {
    uint64_t value = 0;
    if ((size_t)(bytes->end - bytes->at) < size) {
        bytes->ended = 1;
        return 0;
    }
    memcpy(&value, bytes->at, size);
    bytes->at += size;
    return value;
}

static uint64_t unsigned_number(struct bytes *bytes) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = (uint8_t)fixed(bytes, 1);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return value;
        }
    }
    bytes->ended = 1;
    return 0;
}

static int64_t signed_number(struct bytes *bytes) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = (uint8_t)fixed(bytes, 1);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            unsigned unused = 64 - shift - 7;
            return shift + 7 >= 64 ? (int64_t)value : (int64_t)(value << unused) >> unused;
        }
    }
    bytes->ended = 1;
    return 0;
}

static uintptr_t pointer(struct bytes *bytes, uint8_t encoding, uintptr_t data) {
    uintptr_t here = (uintptr_t)bytes->at, value;
    switch (encoding & 0x0f) {
    case 0x00:
        value = (uintptr_t)fixed(bytes, sizeof(void *));
        break;
    case 0x01:
        value = (uintptr_t)unsigned_number(bytes);
        break;
    case 0x02:
        value = (uintptr_t)fixed(bytes, 2);
        break;
    case 0x03:
        value = (uintptr_t)fixed(bytes, 4);
        break;
    case 0x04:
    case 0x0c:
        value = (uintptr_t)fixed(bytes, 8);
        break;
    case 0x09:
        value = (uintptr_t)signed_number(bytes);
        break;
    case 0x0a:
        value = (uintptr_t)(intptr_t)(int16_t)fixed(bytes, 2);
        break;
    case 0x0b:
        value = (uintptr_t)(intptr_t)(int32_t)fixed(bytes, 4);
        break;
    default:
        bytes->ended = 1;
        return 0;
    }
    switch (encoding & 0x70) {
    case 0x10:
        value += here;
        break;
    case 0x30:
        value += data;
        break;
    }
    return value;
}

/* An entry: the instructions that it shares with others (CIE), and its own (FDE). */
struct description {
    struct bytes common, own;
    uint64_t code_unit;
    int64_t data_unit;
    uintptr_t begins, size;
    uint8_t encoding;
    int is_signal;
};

static int read_common(struct description *description, const uint8_t *at) {
    struct bytes bytes = {at, at + 4, 0};
    uint32_t size = (uint32_t)fixed(&bytes, 4);
    if (size == 0 || size == 0xffffffffU) {
        return 0;
    }
    bytes.end = at + 4 + size;
    fixed(&bytes, 4);
    uint8_t version = (uint8_t)fixed(&bytes, 1);
    const char *augmentation = (const char *)bytes.at;
    while (fixed(&bytes, 1) != 0) {
    }
    description->code_unit = unsigned_number(&bytes);
    description->data_unit = signed_number(&bytes);
    uint64_t address = version == 1 ? fixed(&bytes, 1) : unsigned_number(&bytes);
    description->encoding = 0;
    description->is_signal = 0;
    if (augmentation[0] == 'z') {
        uint64_t more = unsigned_number(&bytes);
        struct bytes inner = {bytes.at, bytes.at + more, 0};
        for (const char *letter = augmentation + 1; *letter != 0; letter++) {
            if (*letter == 'R') {
                description->encoding = (uint8_t)fixed(&inner, 1);
            } else if (*letter == 'P') {
                uint8_t encoding = (uint8_t)fixed(&inner, 1);
                pointer(&inner, encoding, 0);
            } else if (*letter == 'L') {
                fixed(&inner, 1);
            } else if (*letter == 'S') {
                description->is_signal = 1;
            }
        }
        bytes.at += more;
    } else if (augmentation[0] != 0) {
        return 0;
    }
    description->common = bytes;
    return !bytes.ended && address == RETURN_ADDRESS;
}

static int read_own(struct description *description, const uint8_t *at) {
    struct bytes bytes = {at, at + 4, 0};
    uint32_t size = (uint32_t)fixed(&bytes, 4);
    if (size == 0 || size == 0xffffffffU) {
        return 0;
    }
    bytes.end = at + 4 + size;
    const uint8_t *here = bytes.at;
    uint32_t back = (uint32_t)fixed(&bytes, 4);
    if (back == 0 || !read_common(description, here - back)) {
        return 0;
    }
    description->begins = pointer(&bytes, description->encoding, 0);
    description->size = pointer(&bytes, description->encoding & 0x0f, 0);
    bytes.at +=
        unsigned_number(&bytes); /* every entry that is read here has an augmentation, perhaps an empty one */
    description->own = bytes;
    return !bytes.ended;
}

/* The table of .eh_frame_hdr: pairs of 32-bit distances from its own beginning, sorted by code address. */
static const uint8_t *entry_of(const uint8_t *header, uintptr_t code) {
    struct bytes bytes = {header, header + 64, 0};
    if (fixed(&bytes, 1) != 1) {
        return NULL;
    }
    uint8_t frame_encoding = (uint8_t)fixed(&bytes, 1);
    uint8_t count_encoding = (uint8_t)fixed(&bytes, 1);
    uint8_t table_encoding = (uint8_t)fixed(&bytes, 1);
    pointer(&bytes, frame_encoding, (uintptr_t)header);
    if (count_encoding == POINTER_OMITTED || table_encoding != 0x3b) {
        return NULL;
    }
    uintptr_t count = pointer(&bytes, count_encoding, (uintptr_t)header);
    struct {
        int32_t code, entry;
    } row;
    const uint8_t *table = bytes.at;
    uintptr_t low = 0, high = count;
    while (low < high) {
        uintptr_t middle = low + (high - low) / 2;
        memcpy(&row, table + middle * sizeof row, sizeof row);
        if ((uintptr_t)header + (uintptr_t)(intptr_t)row.code <= code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) {
        return NULL;
    }
    memcpy(&row, table + (low - 1) * sizeof row, sizeof row);
    return header + row.entry;
}

/* Reads an expression: a register plus a number, or the word stored there. No compiler writes other
 * expressions for the registers that are followed here. */
static int sum(struct bytes *bytes, uint64_t *base, int64_t *offset, int *stored) {
    uint64_t size = unsigned_number(bytes);
    if (size > (uint64_t)(bytes->end - bytes->at)) {
        bytes->ended = 1;
        return 0;
    }
    struct bytes inner = {bytes->at, bytes->at + size, 0};
    bytes->at += size;
    uint8_t operation = (uint8_t)fixed(&inner, 1);
    if (operation < OP_REGISTER_PLUS || operation > OP_REGISTER_PLUS + 31) {
        return 0;
    }
    *base = operation - OP_REGISTER_PLUS;
    *offset = signed_number(&inner);
    *stored = inner.at < inner.end;
    if (*stored && (fixed(&inner, 1) != OP_DEREFERENCE || inner.at < inner.end)) {
        return 0;
    }
    return !inner.ended;
}

static struct saved *saved_of(struct unwind_state *state, uint64_t number) {
    return number == FRAME_POINTER    ? &state->frame
           : number == RETURN_ADDRESS ? &state->address
                                      : &state->other;
}

/* Call frame instructions: DWARF 5, 6.4.2 and 7.24; the last one is GNU's. */
enum instruction {
    ADVANCE_LOC_1_TO_63 = 0x40, /* the highest two bits; the operand is in the others */
    OFFSET_OF_REGISTER = 0x80,
    RESTORE_REGISTER = 0xc0,
    NOP = 0x00,
    SET_LOC = 0x01,
    ADVANCE_LOC1 = 0x02,
    ADVANCE_LOC2 = 0x03,
    ADVANCE_LOC4 = 0x04,
    OFFSET_EXTENDED = 0x05,
    RESTORE_EXTENDED = 0x06,
    UNDEFINED = 0x07,
    SAME_VALUE = 0x08,
    REGISTER = 0x09,
    REMEMBER_STATE = 0x0a,
    RESTORE_STATE = 0x0b,
    DEF_CFA = 0x0c,
    DEF_CFA_REGISTER = 0x0d,
    DEF_CFA_OFFSET = 0x0e,
    DEF_CFA_EXPRESSION = 0x0f,
    EXPRESSION = 0x10,
    OFFSET_EXTENDED_SF = 0x11,
    DEF_CFA_SF = 0x12,
    DEF_CFA_OFFSET_SF = 0x13,
    VAL_OFFSET = 0x14,
    VAL_OFFSET_SF = 0x15,
    VAL_EXPRESSION = 0x16,
    GNU_ARGS_SIZE = 0x2e
};

/* Instructions that are being followed. */
struct program {
    const struct description *description;
    struct bytes bytes;
    struct unwind_state *state, *remembered;
    const struct unwind_state *initial; /* what the common part has set: `restore` returns to it */
    unsigned depth;                     /* of the remembered states */
    uintptr_t here;                     /* the code address that the state holds for */
};

/* Instructions that move `here`. 0: it is none of these. */
static int moves(struct program *program, uint8_t instruction) {
    struct bytes *bytes = &program->bytes;
    uint64_t units;
    if ((instruction & 0xc0) == ADVANCE_LOC_1_TO_63) {
        units = instruction & 0x3f;
    } else if (instruction >= ADVANCE_LOC1 && instruction <= ADVANCE_LOC4) {
        units = fixed(bytes, 1U << (instruction - ADVANCE_LOC1));
    } else if (instruction == SET_LOC) {
        program->here = pointer(bytes, program->description->encoding, 0);
        return 1;
    } else {
        return 0;
    }
    program->here += (uintptr_t)(units * program->description->code_unit);
    return 1;
}

/* Instructions that define the CFA. 0: it is none of these. */
static int defines_cfa(struct program *program, uint8_t instruction) {
    struct unwind_state *state = program->state;
    struct bytes *bytes = &program->bytes;
    switch (instruction) {
    case DEF_CFA:
        state->base = unsigned_number(bytes);
        state->offset = (int64_t)unsigned_number(bytes);
        state->stored = 0;
        state->known = 1;
        return 1;
    case DEF_CFA_SF:
        state->base = unsigned_number(bytes);
        state->offset = signed_number(bytes) * program->description->data_unit;
        state->stored = 0;
        state->known = 1;
        return 1;
    case DEF_CFA_REGISTER:
        state->base = unsigned_number(bytes);
        state->stored = 0;
        return 1;
    case DEF_CFA_OFFSET:
        state->offset = (int64_t)unsigned_number(bytes);
        return 1;
    case DEF_CFA_OFFSET_SF:
        state->offset = signed_number(bytes) * program->description->data_unit;
        return 1;
    case DEF_CFA_EXPRESSION:
        state->known = sum(bytes, &state->base, &state->offset, &state->stored);
        return 1;
    default:
        return 0;
    }
}

/* `expression`: the register is saved where an expression says. */
static struct saved by_expression(struct bytes *bytes) {
    uint64_t base;
    int64_t offset;
    int stored;
    return sum(bytes, &base, &offset, &stored) && !stored ? (struct saved){AT_REGISTER, base, offset}
                                                          : (struct saved){LOST, 0, 0};
}

/* Instructions that say where a register is saved. 0: it is none of these. */
static int saves(struct program *program, uint8_t instruction) {
    struct unwind_state *initial = (struct unwind_state *)program->initial;
    struct bytes *bytes = &program->bytes;
    int64_t unit = program->description->data_unit;
    int is_short = (instruction & 0xc0) != 0;
    uint8_t kind = is_short ? instruction & 0xc0 : instruction;
    if (kind != OFFSET_OF_REGISTER && kind != RESTORE_REGISTER &&
        (kind < OFFSET_EXTENDED || kind > VAL_EXPRESSION)) {
        return 0;
    }
    uint64_t number = is_short ? instruction & 0x3f : unsigned_number(bytes);
    struct saved *saved = saved_of(program->state, number);
    switch (kind) {
    case OFFSET_OF_REGISTER:
    case OFFSET_EXTENDED:
        *saved = (struct saved){AT_CFA, 0, (int64_t)unsigned_number(bytes) * unit};
        return 1;
    case OFFSET_EXTENDED_SF:
        *saved = (struct saved){AT_CFA, 0, signed_number(bytes) * unit};
        return 1;
    case RESTORE_REGISTER:
    case RESTORE_EXTENDED:
        *saved = *saved_of(initial, number);
        return 1;
    case SAME_VALUE:
        *saved = (struct saved){KEPT, 0, 0};
        return 1;
    case EXPRESSION:
        *saved = by_expression(bytes);
        return 1;
    case VAL_EXPRESSION:
        by_expression(bytes);
        *saved = (struct saved){LOST, 0, 0};
        return 1;
    case REGISTER:
    case VAL_OFFSET:
    case VAL_OFFSET_SF:
        unsigned_number(bytes); /* a signed number has as many bytes */
        *saved = (struct saved){LOST, 0, 0};
        return 1;
    case UNDEFINED:
        *saved = (struct saved){LOST, 0, 0};
        return 1;
    default:
        return 0;
    }
}

/* Instructions that keep states, or change none. 0: it is none of these, or there is no such state. */
static int remembers(struct program *program, uint8_t instruction) {
    switch (instruction) {
    case REMEMBER_STATE:
        if (program->depth == REMEMBERED) {
            return 0;
        }
        program->remembered[program->depth++] = *program->state;
        return 1;
    case RESTORE_STATE:
        if (program->depth == 0) {
            return 0;
        }
        *program->state = program->remembered[--program->depth];
        return 1;
    case GNU_ARGS_SIZE:
        unsigned_number(&program->bytes);
        return 1;
    default:
        return instruction == NOP;
    }
}

/* Follows the instructions up to a code address. 0: they cannot be followed. */
static int follow(const struct description *description, struct bytes bytes, struct unwind_scratch *scratch,
                  const struct unwind_state *initial, uintptr_t code) {
    struct program program = {description, bytes, &scratch->state,    scratch->remembered,
                              initial,     0,     description->begins};
    while (program.bytes.at < program.bytes.end && !program.bytes.ended) {
        uint8_t instruction = (uint8_t)fixed(&program.bytes, 1);
        if (moves(&program, instruction)) {
            if (program.here > code) {
                return 1;
            }
        } else if (!remembers(&program, instruction) && !defines_cfa(&program, instruction) &&
                   !saves(&program, instruction)) {
            return 0;
        }
    }
    return !program.bytes.ended;
}

static int fits(int64_t value, int bits) {
    return value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1);
}

static struct rule packed(const struct unwind_state *state, int is_signal) {
    struct rule rule = {.kind = RULE_NONE, .frame = SAME_FRAME};
    if (state->address.where == LOST) {
        rule.kind = RULE_END;
        return rule;
    }
    if (!state->known || !fits(state->offset, 26)) {
        return rule;
    }
    if (is_signal) {
        if (state->base != STACK_POINTER || !state->stored || state->address.where != AT_REGISTER ||
            state->address.base != STACK_POINTER || state->frame.where != AT_REGISTER ||
            state->frame.base != STACK_POINTER || !fits(state->address.offset, 16) ||
            !fits(state->frame.offset, 16)) {
            return rule;
        }
        rule.kind = RULE_SIGNAL;
        rule.cfa = (int32_t)state->offset;
        rule.address = (int16_t)state->address.offset;
        rule.frame = (int16_t)state->frame.offset;
        return rule;
    }
    if (state->address.where != AT_CFA || state->address.offset != -(int)sizeof(stack_word)) {
        return rule;
    }
    if (state->frame.where == AT_CFA && fits(state->frame.offset, 16)) {
        rule.frame = (int16_t)state->frame.offset;
    } else if (state->frame.where == AT_REGISTER && state->frame.base == FRAME_POINTER &&
               state->frame.offset == 0) {
        /* A function that aligns its stack: the caller's frame pointer is saved where its own points to. */
        rule.frame = FRAME_AT_ITSELF;
    } else if (state->frame.where != KEPT) {
        return rule;
    }
    rule.cfa = (int32_t)state->offset;
    if (state->base == STACK_POINTER && !state->stored) {
        rule.kind = RULE_STACK;
    } else if (state->base == FRAME_POINTER) {
        rule.kind = state->stored ? RULE_STORED : RULE_FRAME;
    }
    return rule;
}

struct rule unwind_rule(const uint8_t *header, uintptr_t code, struct unwind_scratch *scratch) {
    struct description description;
    struct rule rule = {.kind = RULE_NONE};
    memset(&scratch->state, 0, sizeof scratch->state);
    const uint8_t *entry = entry_of(header, code);
    if (entry != NULL && read_own(&description, entry) && code - description.begins < description.size &&
        follow(&description, description.common, scratch, &scratch->state, UINTPTR_MAX)) {
        scratch->initial = scratch->state;
        if (follow(&description, description.own, scratch, &scratch->initial, code)) {
            rule = packed(&scratch->state, description.is_signal);
        }
    }
    rule.code = code;
    return rule;
}
