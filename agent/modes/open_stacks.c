#include "agent/modes/open_stacks.h"

#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

/* Header of one stack's frames. sj_open_stacks_write copies it unchanged. */
typedef struct stack_head {
    uint32_t stream;
    uint32_t clock_step;
    uint64_t next_event;
    uint64_t next_call;
    uint64_t last_ticks;
    uint32_t count;
    uint32_t reserved;
} stack_head;

struct sj_open_stack {
    uint32_t capacity;
    stack_head head; /* count 0: memory is reserved, but no stack is known */
    sj_stack_frame frames[];
};

void sj_open_stacks_deinit(sj_open_stacks *stacks)
{
    for (size_t i = 0; i < stacks->capacity; i++) {
        free(stacks->by_stream[i]);
    }
    free(stacks->by_stream);
    *stacks = (sj_open_stacks){0};
}

static sj_status reserve_stream(sj_open_stacks *stacks, uint32_t stream)
{
    const size_t before = stacks->capacity;
    if (stream < before) {
        return SJ_OK;
    }
    SJ_TRY(sj_array_reserve(&stacks->by_stream, &stacks->capacity, 0, (size_t)stream + 1,
                            sizeof(*stacks->by_stream)));
    memset(stacks->by_stream + before, 0, (stacks->capacity - before) * sizeof(*stacks->by_stream));
    return SJ_OK;
}

sj_status sj_open_stacks_reserve(sj_open_stacks *stacks, const sj_block_header *header)
{
    const uint32_t count = header->end_depth;
    SJ_TRY(reserve_stream(stacks, header->stream));
    sj_open_stack **place = &stacks->by_stream[header->stream];
    const bool is_new = *place == NULL;
    if ((header->flags & SJ_BLOCK_LAST) != 0 || count > SJ_BLOCK_MAX_INLINE_FRAMES ||
        count <= (is_new ? 0 : (*place)->capacity)) {
        return SJ_OK;
    }
    sj_open_stack *grown = realloc(*place, sizeof(*grown) + count * sizeof(*grown->frames));
    if (grown == NULL) {
        return SJ_ENOMEM;
    }
    if (is_new) {
        grown->head = (stack_head){0};
    }
    grown->capacity = count;
    *place = grown;
    return SJ_OK;
}

void sj_open_stacks_note(sj_open_stacks *stacks, const sj_block_header *header,
                         const sj_block_summary *summary)
{
    sj_open_stack **place = &stacks->by_stream[header->stream];
    const size_t count = (header->flags & SJ_BLOCK_LAST) != 0 ? 0 : summary->open_count;
    if (count == 0) {
        free(*place);
        *place = NULL;
        return;
    }
    (*place)->head =
        (stack_head){.stream = header->stream,
                     .clock_step = header->clock_step,
                     .next_event = header->first_event + header->event_count + header->lost_events,
                     .next_call = header->first_call + header->call_count + header->lost_calls,
                     .last_ticks = header->last_ticks,
                     .count = (uint32_t)count};
    memcpy((*place)->frames, summary->open, count * sizeof(*summary->open));
}

/* Returns the number of bytes of a written stack: 0 if `stack` is NULL or empty. */
static size_t size_of(const sj_open_stack *stack)
{
    return stack == NULL || stack->head.count == 0
               ? 0
               : sizeof(stack->head) + stack->head.count * sizeof(*stack->frames);
}

sj_status sj_open_stacks_write(const sj_open_stacks *stacks, uint8_t **bytes, size_t *size)
{
    size_t needed = 0;
    *size = 0;
    for (size_t i = 0; i < stacks->capacity; i++) {
        needed += size_of(stacks->by_stream[i]);
    }
    needed = needed < SJ_OPEN_STACKS_MAX_BYTES ? needed : SJ_OPEN_STACKS_MAX_BYTES;
    *bytes = malloc(needed + 1);
    if (*bytes == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < stacks->capacity; i++) {
        const sj_open_stack *stack = stacks->by_stream[i];
        if (size_of(stack) != 0 && *size + size_of(stack) <= needed) {
            memcpy(*bytes + *size, &stack->head, sizeof(stack->head));
            memcpy(*bytes + *size + sizeof(stack->head), stack->frames,
                   size_of(stack) - sizeof(stack->head));
            *size += size_of(stack);
        }
    }
    return SJ_OK;
}

/* Sends a block without events, whose key-frame holds the open calls. Succeeds without sending if
 * the block cannot be encoded or the spool is full. */
static sj_status send_stack(const stack_head *head, const sj_stack_frame *frames,
                            sj_block_encoder *encoder, sj_frame_writer *writer)
{
    const sj_block_input input = {.header = {.version = SJ_BLOCK_VERSION,
                                             .kind = SJ_BLOCK_CALLS,
                                             .session = *sj_frame_writer_session(writer),
                                             .stream = head->stream,
                                             .clock_step = head->clock_step,
                                             .first_event = head->next_event,
                                             .first_call = head->next_call,
                                             .first_ticks = head->last_ticks,
                                             .last_ticks = head->last_ticks,
                                             .open_depth = head->count,
                                             .end_depth = head->count},
                                  .frames = frames};
    const size_t bound = sj_block_bound(&input);
    uint8_t *output = malloc(bound);
    size_t size = 0;
    sj_block_header header;
    sj_status status = output != NULL ? SJ_OK : SJ_ENOMEM;
    if (status == SJ_OK) {
        status = sj_block_encode(encoder, &input, output, bound, &size);
    }
    const sj_slice bytes = {.data = output, .size = size};
    if (status == SJ_OK) {
        status = sj_block_read_header(bytes, &header);
    }
    if (status == SJ_OK) {
        status = sj_frame_writer_block(writer, &header, bytes);
    }
    free(output);
    return status == SJ_EFULL || status == SJ_EINVAL || status == SJ_ELIMIT ? SJ_OK : status;
}

sj_status sj_open_stacks_send(sj_slice bytes, sj_frame_writer *writer)
{
    sj_reader reader = sj_reader_of(bytes.data, bytes.size);
    sj_stack_frame *frames = calloc(SJ_BLOCK_MAX_INLINE_FRAMES, sizeof(*frames));
    sj_block_encoder *encoder = NULL;
    sj_status status = frames != NULL ? sj_block_encoder_new(&encoder) : SJ_ENOMEM;
    while (status == SJ_OK && sj_reader_left(&reader) > 0) {
        stack_head head;
        const uint8_t *start = sj_read_bytes(&reader, sizeof(head));
        if (start == NULL) {
            status = SJ_ECORRUPT;
            break;
        }
        memcpy(&head, start, sizeof(head));
        const size_t size = head.count * sizeof(*frames);
        const uint8_t *stored =
            head.count <= SJ_BLOCK_MAX_INLINE_FRAMES ? sj_read_bytes(&reader, size) : NULL;
        if (stored == NULL) {
            status = SJ_ECORRUPT;
            break;
        }
        memcpy(frames, stored, size);
        status = send_stack(&head, frames, encoder, writer);
    }
    sj_block_encoder_free(encoder);
    free(frames);
    return status;
}
