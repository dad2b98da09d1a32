/* Records allocations and releases: the code of every event, which the hooks inline. */
#ifndef WIDTHWISE_HEAP_EVENT_H
#define WIDTHWISE_HEAP_EVENT_H

#include "lifecycle.h"
#include "recorder.h"
#include "stack.h"

/* A block unlike the last one of its slot. */
__attribute__((noinline)) static uint8_t *event_put_new(uint8_t *at, struct block *slot, struct block block) {
    *slot = block;
    at = put_number(at, block.node);
    at = put_number(at, block.requested);
    at = put_number(at, block.spare);
    *at++ = (uint8_t)block.attributes;
    return at;
}

__attribute__((always_inline)) static inline void event_allocated(struct stream *stream, void *address,
                                                                  size_t requested, uint64_t spare,
                                                                  uint32_t attributes, uintptr_t code,
                                                                  uintptr_t stack, uintptr_t frame) {
    uint64_t number = recorder_number();
    if (UNLIKELY(!recorder_room(stream))) {
        return;
    }
    uint32_t node = 0;
    if (recorder.stacks) {
        node = stack_number(stream, code, stack, frame);
        if (UNLIKELY(stream->at >= stream->end) && !recorder_rotate(stream)) {
            recorder_lose(stream);
            return;
        }
    }
    uint32_t index = (node * 0x9e3779b1U + (uint32_t)requested * 0x85ebca6bU) >> 24;
    struct block *slot = &stream->slots[index];
    int known = slot->node == node && slot->requested == requested && slot->spare == spare &&
                slot->attributes == attributes;
    uint8_t first = known ? LOG_KNOWN : LOG_NEW;
    uint8_t *at = put_event(stream, stream->at + 1, number, (uintptr_t)address, &first);
    *at++ = (uint8_t)index;
    if (UNLIKELY(!known)) {
        at = event_put_new(at, slot, (struct block){node, attributes, requested, spare});
    }
    recorder_commit(stream, at, first);
}

__attribute__((always_inline)) static inline void event_released(struct stream *stream, void *address) {
    uint64_t number = recorder_number();
    if (UNLIKELY(!recorder_room(stream))) {
        return;
    }
    uint8_t first = LOG_FREE;
    uint8_t *at = put_event(stream, stream->at + 1, number, (uintptr_t)address, &first);
    recorder_commit(stream, at, first);
}

#endif
