#include "tests/support/call_trace.h"

#include <stdlib.h>

enum { BODY = 6, FRAME_BYTES = 64, FIRST_TICKS = 1000000 };

typedef struct generator {
    const trace_shape *shape;
    call_trace trace;
    size_t record_capacity;
    uint32_t *stack; /* numbers of the open calls */
    uint64_t *address;
    uint32_t *step; /* how many steps of its body each open call has done */
    uint32_t depth;
    /* a throw has left the calls at this depth and deeper; UINT32_MAX: no throw */
    uint32_t thrown_to;
    uint64_t ticks;
    uint64_t random;
    uint64_t events;
} generator;

static void *must(void *allocated)
{
    if (allocated == NULL) {
        abort();
    }
    return allocated;
}

uint64_t trace_random(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t mixed = *state;
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

sj_record trace_record(sj_record_kind kind, uint32_t function, uint64_t stack, uint64_t ticks)
{
    sj_record record;
    const uint32_t tag = (uint32_t)kind << SJ_RECORD_FUNCTION_BITS | function;
    memcpy(record.bytes, &ticks, 6);
    memcpy(record.bytes + 6, &stack, 6);
    memcpy(record.bytes + 12, &tag, 4);
    return record;
}

static void put_record(generator *gen, sj_record_kind kind, uint32_t function, uint64_t stack)
{
    if (gen->trace.record_count == gen->record_capacity) {
        gen->record_capacity = gen->record_capacity * 2 + 1024;
        gen->trace.records =
            must(realloc(gen->trace.records, gen->record_capacity * sizeof(sj_record)));
    }
    gen->trace.records[gen->trace.record_count++] = trace_record(kind, function, stack, gen->ticks);
}

static void end_innermost(generator *gen, uint32_t ending)
{
    trace_call *call = &gen->trace.calls[gen->stack[--gen->depth]];
    call->end = gen->ticks;
    call->ending = ending;
    call->leave_event = gen->events++;
    if (gen->depth > 0) {
        gen->trace.calls[gen->stack[gen->depth - 1]].child += gen->ticks - call->start;
    }
}

/* Advances the clock to the next record. The calls that a throw has left end at this time, too. */
static void advance(generator *gen)
{
    const uint64_t choices = gen->shape->tick_choices > 0 ? gen->shape->tick_choices : 1;
    uint64_t steps = trace_random(&gen->random) % choices;
    if (gen->shape->realistic && trace_random(&gen->random) % 8 != 0) {
        steps = 1; /* as measured: most gaps are one step of the clock */
    }
    gen->ticks += steps * gen->shape->tick_step;
    while (gen->thrown_to < gen->depth) {
        end_innermost(gen, SJ_ENDING_UNWOUND);
    }
    gen->thrown_to = UINT32_MAX;
}

static void enter(generator *gen, uint32_t function)
{
    advance(gen);
    const uint32_t depth = gen->depth;
    const uint64_t address =
        depth > 0 ? gen->address[depth - 1] - FRAME_BYTES : TRACE_STACK_HIGH - FRAME_BYTES;
    put_record(gen, SJ_RECORD_ENTER, function, address);
    gen->trace.calls[gen->trace.call_count] =
        (trace_call){.start = gen->ticks,
                     .end = UINT64_MAX,
                     .function = function,
                     .parent = depth > 0 ? gen->stack[depth - 1] : UINT32_MAX,
                     .depth = depth,
                     .enter_event = gen->events++,
                     .leave_event = UINT64_MAX,
                     .ending = SJ_ENDING_RETURNED};
    gen->stack[depth] = (uint32_t)gen->trace.call_count++;
    gen->address[depth] = address;
    gen->step[depth] = 0;
    gen->depth++;
}

static void leave(generator *gen)
{
    advance(gen);
    const trace_call *call = &gen->trace.calls[gen->stack[gen->depth - 1]];
    put_record(gen, SJ_RECORD_LEAVE, call->function, gen->address[gen->depth - 1]);
    end_innermost(gen, SJ_ENDING_RETURNED);
}

/* Returns the callee of the next step of the innermost open call, or 0 to return. The function and
 * the step determine the callee, which is the same in three steps in a row. One step in 16 deviates
 * at random. */
static uint32_t program_step(generator *gen)
{
    const uint32_t depth = gen->depth;
    const uint32_t function = gen->trace.calls[gen->stack[depth - 1]].function;
    const uint32_t step = gen->step[depth - 1]++;
    uint64_t body = gen->shape->seed * 7919 + (uint64_t)function * 131 + step / 3;
    const uint64_t choice = trace_random(&body);
    const uint32_t length = 1 + (uint32_t)((function * 2654435761u) >> 29);
    const bool chance = trace_random(&gen->random) % 16 == 0; /* stands for branches on data */
    const bool outermost = depth <= 1 + gen->shape->base_depth;
    if (depth >= gen->shape->max_depth || (!outermost && (step >= length * 2 || chance))) {
        return 0;
    }
    const uint32_t reach = gen->shape->functions / 4 + 1;
    const uint64_t pick = choice % BODY < 4 ? choice >> 8 : (choice >> 8) + chance;
    return 1 + (uint32_t)((function + pick % reach) % gen->shape->functions);
}

static void walk_step(generator *gen)
{
    const uint64_t dice = trace_random(&gen->random);
    const uint32_t floor = gen->shape->base_depth;
    const uint32_t alive = gen->thrown_to < gen->depth ? gen->thrown_to : gen->depth;
    if (dice % 1000000 < gen->shape->throw_per_million && gen->depth > floor + 1 &&
        gen->thrown_to == UINT32_MAX) {
        gen->thrown_to = floor + 1 + (uint32_t)((dice >> 24) % (gen->depth - floor - 1));
        return;
    }
    if (gen->depth < floor) {
        enter(gen, 1 + (uint32_t)((dice >> 32) % gen->shape->functions));
        return;
    }
    if (gen->shape->realistic && gen->thrown_to == UINT32_MAX && gen->depth > 0) {
        const uint32_t callee = program_step(gen);
        if (callee != 0) {
            enter(gen, callee);
        } else {
            leave(gen);
        }
        return;
    }
    const bool deeper = alive < gen->shape->max_depth && (dice >> 20 & 1) != 0;
    if (deeper || alive <= floor) {
        enter(gen, 1 + (uint32_t)((dice >> 32) % gen->shape->functions));
    } else {
        leave(gen);
    }
}

call_trace trace_generate(const trace_shape *shape)
{
    generator gen = {
        .shape = shape, .ticks = FIRST_TICKS, .random = shape->seed, .thrown_to = UINT32_MAX};
    const uint32_t most = shape->max_depth + shape->base_depth + 2;
    gen.trace.calls = must(malloc((shape->calls + 1) * sizeof(trace_call)));
    gen.stack = must(malloc(most * sizeof(*gen.stack)));
    gen.address = must(malloc(most * sizeof(*gen.address)));
    gen.step = must(malloc(most * sizeof(*gen.step)));
    while (gen.trace.call_count < shape->calls) {
        walk_step(&gen);
    }
    if (gen.thrown_to < gen.depth) {
        gen.thrown_to = UINT32_MAX; /* no later record shows the throw: the calls stay open */
    }
    while (shape->leave_all && gen.depth > 0) {
        leave(&gen);
    }
    while (gen.depth > 0) {
        end_innermost(&gen, SJ_ENDING_OPEN);
    }
    gen.trace.end_ticks = gen.ticks;
    free(gen.stack);
    free(gen.address);
    free(gen.step);
    return gen.trace;
}

void trace_free(call_trace *trace)
{
    free(trace->calls);
    free(trace->records);
    *trace = (call_trace){0};
}

static uint32_t open_stream(void *context, uint64_t stack_address, bool own_stack,
                            uint64_t first_ticks)
{
    block_store *store = context;
    (void)stack_address;
    (void)first_ticks;
    store->own_streams += own_stack;
    return ++store->streams;
}

static sj_status keep_block(void *context, const sj_block_header *header, sj_slice bytes)
{
    block_store *store = context;
    if (store->refuse_per_million > 0 &&
        trace_random(&store->random) % 1000000 < store->refuse_per_million) {
        store->refused++;
        return SJ_EFULL;
    }
    if (store->count == store->capacity) {
        store->capacity = store->capacity * 2 + 16;
        store->blocks = must(realloc(store->blocks, store->capacity * sizeof(*store->blocks)));
    }
    uint8_t *copy = malloc(bytes.size);
    if (copy == NULL) {
        store->refused++;
        return SJ_ENOMEM;
    }
    memcpy(copy, bytes.data, bytes.size);
    store->blocks[store->count++] =
        (stored_block){.header = *header, .data = copy, .size = bytes.size};
    return SJ_OK;
}

static void count_mark(void *context, uint32_t mark_index, bool end, uint64_t ticks)
{
    block_store *store = context;
    (void)mark_index;
    (void)end;
    (void)ticks;
    store->marks++;
}

sj_assembler_sink block_store_sink(block_store *store)
{
    return (sj_assembler_sink){
        .context = store, .open_stream = open_stream, .block = keep_block, .mark = count_mark};
}

void block_store_free(block_store *store)
{
    for (size_t i = 0; i < store->count; i++) {
        free(store->blocks[i].data);
    }
    free(store->blocks);
    *store = (block_store){0};
}

static const stored_block *find_stack_block(const block_store *store, uint32_t stream,
                                            uint32_t number)
{
    for (size_t i = 0; i < store->count; i++) {
        const sj_block_header *header = &store->blocks[i].header;
        if (header->kind == SJ_BLOCK_DEEP_FRAMES && header->stream == stream &&
            header->first_event == number) {
            return &store->blocks[i];
        }
    }
    return NULL;
}

sj_status block_store_lookup(void *context, uint32_t stream, uint32_t reference, uint32_t count,
                             sj_stack_frame *frames)
{
    const block_store *store = context;
    sj_block_decoder *decoder;
    SJ_TRY(sj_block_decoder_new(&decoder));
    sj_status status = SJ_OK;
    while (count > 0 && status == SJ_OK) {
        const stored_block *stored = find_stack_block(store, stream, reference);
        sj_block block;
        if (stored == NULL) {
            status = SJ_ENOTFOUND;
            break;
        }
        const sj_slice bytes = {.data = stored->data, .size = stored->size};
        status = sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block);
        if (status != SJ_OK) {
            break;
        }
        const uint32_t first = block.header.stack_frames;
        if (first >= count || count - first > block.frame_count) {
            status = SJ_ECORRUPT;
            break;
        }
        memcpy(frames + first, block.frames, (count - first) * sizeof(*frames));
        count = first;
        reference = block.header.stack_reference;
    }
    sj_block_decoder_free(decoder);
    return status;
}

void trace_assemble(const call_trace *trace, uint32_t block_events, block_store *store,
                    sj_assembler_counters *counters)
{
    sj_block_encoder *encoder;
    if (sj_block_encoder_new(&encoder) != SJ_OK) {
        abort();
    }
    const sj_assembler_options options = {.stack_low = TRACE_STACK_LOW,
                                          .stack_high = TRACE_STACK_HIGH,
                                          .start_ticks = 1,
                                          .block_events = block_events,
                                          .encoder = encoder};
    const sj_assembler_sink sink = block_store_sink(store);
    sj_assembler *assembler;
    if (sj_assembler_new(&options, &sink, &assembler) != SJ_OK ||
        sj_assembler_feed(assembler, trace->records, trace->record_count, trace->end_ticks) !=
            SJ_OK ||
        sj_assembler_end(assembler, trace->end_ticks, false, 0) != SJ_OK) {
        abort();
    }
    sj_assembler_get_counters(assembler, counters);
    sj_assembler_free(assembler);
    sj_block_encoder_free(encoder);
}

void stored_block_note_held(const stored_block *stored, sj_block_decoder *decoder, bool *held)
{
    sj_block block;
    const sj_slice bytes = {.data = stored->data, .size = stored->size};
    if (sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block) != SJ_OK) {
        abort();
    }
    uint64_t lost = 0;
    size_t gap = 0;
    for (uint32_t e = 0; e < block.header.event_count; e++) {
        for (; gap < block.gap_count && block.gaps[gap].before_event <= e; gap++) {
            lost += block.gaps[gap].events;
        }
        held[block.header.first_event + lost + e] = true;
    }
}
