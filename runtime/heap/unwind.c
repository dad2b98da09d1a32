#define _GNU_SOURCE
#include "unwind.h"

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
    int ended; /* something reached beyond the end */
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

/* Of an entry: what is common to all of its kind, and its own part. */
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
        unsigned_number(&bytes); /* every table that is read here has an augmentation, if an empty one */
    description->own = bytes;
    return !bytes.ended;
}

/* The table of .eh_frame_hdr: pairs of 32-bit distances from its own beginning, in the order of the places.
 */
static const uint8_t *entry_of(const uint8_t *header, uintptr_t place) {
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
        int32_t place, entry;
    } row;
    const uint8_t *table = bytes.at;
    uintptr_t low = 0, high = count;
    while (low < high) {
        uintptr_t middle = low + (high - low) / 2;
        memcpy(&row, table + middle * sizeof row, sizeof row);
        if ((uintptr_t)header + (uintptr_t)(intptr_t)row.place <= place) {
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

/* A register plus a number, and what is stored there: no compiler writes other expressions for what is read
 * here. */
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

/* Follows the instructions up to a place. `initial`: what the common part has set, to which entries may
 * return. */
static int follow(const struct description *description, struct bytes bytes, struct unwind_scratch *scratch,
                  const struct unwind_state *initial, uintptr_t place) {
    struct unwind_state *state = &scratch->state, *remembered = scratch->remembered;
    unsigned depth = 0;
    uintptr_t here = description->begins;
    while (bytes.at < bytes.end && !bytes.ended) {
        uint8_t code = (uint8_t)fixed(&bytes, 1), low = code & 0x3f;
        uint64_t number, distance = 0;
        int64_t offset;
        uint64_t base;
        int stored;
        switch (code & 0xc0) {
        case 0x40:
            distance = low;
            break;
        case 0x80:
            *saved_of(state, low) =
                (struct saved){AT_CFA, 0, (int64_t)unsigned_number(&bytes) * description->data_unit};
            continue;
        case 0xc0:
            *saved_of(state, low) = *saved_of((struct unwind_state *)initial, low);
            continue;
        default:
            switch (low) {
            case 0x00: /* nop */
                continue;
            case 0x01:
                distance = 0;
                here = pointer(&bytes, description->encoding, 0);
                if (here > place) {
                    return 1;
                }
                continue;
            case 0x02:
                distance = fixed(&bytes, 1);
                break;
            case 0x03:
                distance = fixed(&bytes, 2);
                break;
            case 0x04:
                distance = fixed(&bytes, 4);
                break;
            case 0x05: /* offset_extended */
                number = unsigned_number(&bytes);
                offset = (int64_t)unsigned_number(&bytes) * description->data_unit;
                *saved_of(state, number) = (struct saved){AT_CFA, 0, offset};
                continue;
            case 0x06: /* restore_extended */
                number = unsigned_number(&bytes);
                *saved_of(state, number) = *saved_of((struct unwind_state *)initial, number);
                continue;
            case 0x07: /* undefined */
                *saved_of(state, unsigned_number(&bytes)) = (struct saved){LOST, 0, 0};
                continue;
            case 0x08: /* same_value */
                *saved_of(state, unsigned_number(&bytes)) = (struct saved){KEPT, 0, 0};
                continue;
            case 0x09: /* register */
                number = unsigned_number(&bytes);
                unsigned_number(&bytes);
                *saved_of(state, number) = (struct saved){LOST, 0, 0};
                continue;
            case 0x0a: /* remember_state */
                if (depth == REMEMBERED) {
                    return 0;
                }
                remembered[depth++] = *state;
                continue;
            case 0x0b: /* restore_state */
                if (depth == 0) {
                    return 0;
                }
                *state = remembered[--depth];
                continue;
            case 0x0c: /* def_cfa */
                state->base = unsigned_number(&bytes);
                state->offset = (int64_t)unsigned_number(&bytes);
                state->stored = 0;
                state->known = 1;
                continue;
            case 0x0d: /* def_cfa_register */
                state->base = unsigned_number(&bytes);
                state->stored = 0;
                continue;
            case 0x0e: /* def_cfa_offset */
                state->offset = (int64_t)unsigned_number(&bytes);
                continue;
            case 0x0f: /* def_cfa_expression */
                state->known = sum(&bytes, &state->base, &state->offset, &state->stored);
                continue;
            case 0x10: /* expression */
                number = unsigned_number(&bytes);
                if (sum(&bytes, &base, &offset, &stored) && !stored) {
                    *saved_of(state, number) = (struct saved){AT_REGISTER, base, offset};
                } else {
                    *saved_of(state, number) = (struct saved){LOST, 0, 0};
                }
                continue;
            case 0x11: /* offset_extended_sf */
                number = unsigned_number(&bytes);
                offset = signed_number(&bytes) * description->data_unit;
                *saved_of(state, number) = (struct saved){AT_CFA, 0, offset};
                continue;
            case 0x12: /* def_cfa_sf */
                state->base = unsigned_number(&bytes);
                state->offset = signed_number(&bytes) * description->data_unit;
                state->stored = 0;
                state->known = 1;
                continue;
            case 0x13: /* def_cfa_offset_sf */
                state->offset = signed_number(&bytes) * description->data_unit;
                continue;
            case 0x14: /* val_offset */
                *saved_of(state, unsigned_number(&bytes)) = (struct saved){LOST, 0, 0};
                unsigned_number(&bytes);
                continue;
            case 0x15: /* val_offset_sf */
                *saved_of(state, unsigned_number(&bytes)) = (struct saved){LOST, 0, 0};
                signed_number(&bytes);
                continue;
            case 0x16: /* val_expression */
                *saved_of(state, unsigned_number(&bytes)) = (struct saved){LOST, 0, 0};
                sum(&bytes, &base, &offset, &stored);
                continue;
            case 0x2e: /* GNU_args_size */
                unsigned_number(&bytes);
                continue;
            default:
                return 0;
            }
        }
        here += (uintptr_t)(distance * description->code_unit);
        if (here > place) {
            return 1;
        }
    }
    return !bytes.ended;
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
        /* A function that aligns its stack: the caller's is saved where its own points to. */
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

struct rule unwind_rule(const uint8_t *header, uintptr_t place, struct unwind_scratch *scratch) {
    struct description description;
    struct rule rule = {.kind = RULE_NONE};
    memset(&scratch->state, 0, sizeof scratch->state);
    const uint8_t *entry = entry_of(header, place);
    if (entry != NULL && read_own(&description, entry) && place - description.begins < description.size &&
        follow(&description, description.common, scratch, &scratch->state, UINTPTR_MAX)) {
        scratch->initial = scratch->state;
        if (follow(&description, description.own, scratch, &scratch->initial, place)) {
            rule = packed(&scratch->state, description.is_signal);
        }
    }
    rule.place = place;
    return rule;
}
