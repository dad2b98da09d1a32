#include "texts.h"
#include "user_memory.h"

#define TEXTS 512

/* In a page that is touched anyway, as far as most programs use it. */
__attribute__((section(".bss.first"))) static struct { u32 low, high; } texts[TEXTS];
static u32 text_count;
/* There was no room for another: then anything may be text. */
static int texts_are_lost;

struct range pages_of(u64 address, u64 size) {
    struct range none = {0, 0};
    if (address >= TASK_SIZE || size == 0) {
        return none;
    }
    u64 high = size > TASK_SIZE - address ? TASK_SIZE : ROUND_UP(address + size, PAGE);
    return (struct range){ROUND_DOWN(address, PAGE), high};
}

int texts_touch(struct range range) {
    int found = texts_are_lost && range.high != 0;
    for (u32 i = 0; i < text_count && !found; i++) {
        found = texts[i].high > range.low && range.high > texts[i].low;
    }
    return found;
}

static void add(u64 low, u64 high) {
    if (text_count == TEXTS) {
        texts_are_lost = 1;
        return;
    }
    texts[text_count].low = (u32)low;
    texts[text_count++].high = (u32)high;
}

void texts_remove(struct range range) {
    for (u32 i = 0; i < text_count; i++) {
        u32 low = texts[i].low, high = texts[i].high;
        if (high <= range.low || range.high <= low) {
            continue;
        }
        texts[i--] = texts[--text_count];
        if (low < range.low) {
            add(low, range.low);
        }
        if (range.high < high) {
            add(range.high, high);
        }
    }
}

void texts_add(struct range range) {
    texts_remove(range);
    add(range.low, range.high);
}

struct range text_at(u64 address) {
    for (u32 i = 0; i < text_count; i++) {
        if (address >= texts[i].low && address < texts[i].high) {
            return (struct range){texts[i].low, texts[i].high};
        }
    }
    return (struct range){0, 0};
}
