#include "tests/collector-server/store/frame_maker.h"

#include "agent/abi/plan.h"
#include "proto/wire/function_table.h"
#include "proto/wire/sojourn.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

static void must(bool holds)
{
    if (!holds) {
        fprintf(stderr, "frame_maker: cannot make a frame\n");
        abort();
    }
}

void frame_maker_init(frame_maker *maker, uint8_t session_tag)
{
    *maker = (frame_maker){.session_tag = session_tag,
                           .ticks = FRAME_MAKER_STARTED_TICKS,
                           .random = 2463534242u + session_tag,
                           .frame_capacity = SJ_FRAME_MAX_BYTES};
    maker->frame = malloc(maker->frame_capacity);
    maker->events = malloc(SJ_BLOCK_MAX_EVENTS * sizeof(*maker->events));
    must(maker->frame != NULL && maker->events != NULL);
    must(sj_block_encoder_new(&maker->encoder) == SJ_OK);
}

void frame_maker_deinit(frame_maker *maker)
{
    sj_block_encoder_free(maker->encoder);
    free(maker->frame);
    free(maker->events);
    free(maker->block);
}

sj_slice frame_maker_wrap(frame_maker *maker, uint16_t type, sj_slice header, sj_slice payload)
{
    size_t size = 0;
    must(sj_frame_write(type, header, payload, maker->frame, maker->frame_capacity, &size) ==
         SJ_OK);
    return (sj_slice){.data = maker->frame, .size = size};
}

static sj_slice wrap_message(frame_maker *maker, uint16_t type, const void *message,
                             sj_slice payload)
{
    uint8_t header[4096];
    const ProtobufCMessage *base = message;
    must(protobuf_c_message_get_packed_size(base) <= sizeof(header));
    const sj_slice packed = {.data = header, .size = protobuf_c_message_pack(base, header)};
    return frame_maker_wrap(maker, type, packed, payload);
}

static void number_id(const frame_maker *maker, uint8_t id[16])
{
    if (maker->session_number != 0) {
        memcpy(id + 12, &maker->session_number, sizeof(maker->session_number));
    }
}

static ProtobufCBinaryData session_id(const frame_maker *maker, uint8_t id[16])
{
    memset(id, maker->session_tag, 16);
    number_id(maker, id);
    return (ProtobufCBinaryData){.data = id, .len = 16};
}

static char *make_name(frame_maker *maker, const char *name)
{
    snprintf(maker->name, sizeof(maker->name), "%s%s", name,
             maker->name_end != NULL ? maker->name_end : "");
    return maker->name;
}

static uint32_t stream_of(const frame_maker *maker)
{
    return maker->stream != 0 ? maker->stream : 1;
}

sj_slice frame_maker_hello(frame_maker *maker)
{
    uint8_t device[16] = {0xd0, maker->session_tag};
    number_id(maker, device);
    char tag[64];
    char *tags[] = {tag};
    snprintf(tag, sizeof(tag), "%s", make_name(maker, "lab=\"berlin\""));
    Sojourn__Hello hello = SOJOURN__HELLO__INIT;
    hello.device_id = (ProtobufCBinaryData){.data = device, .len = 16};
    hello.device_name = make_name(maker, "bench-1");
    hello.machine = (char *)(uintptr_t) "x86_64";
    hello.boot_id = (char *)(uintptr_t) "a-boot";
    hello.tags = tags;
    hello.n_tags = 1;
    return wrap_message(maker, SJ_FRAME_HELLO, &hello, (sj_slice){0});
}

sj_slice frame_maker_session(frame_maker *maker)
{
    uint8_t device[16] = {0xd0, maker->session_tag};
    number_id(maker, device);
    uint8_t id[16];
    Sojourn__Session session = SOJOURN__SESSION__INIT;
    session.session_id = session_id(maker, id);
    session.device_id = (ProtobufCBinaryData){.data = device, .len = 16};
    session.name = make_name(maker, "synthetic");
    session.mode = (char *)(uintptr_t) "trace";
    session.started_ticks = FRAME_MAKER_STARTED_TICKS;
    session.tick_ns_numerator = 5;
    session.tick_ns_denominator = 13;
    session.clock_step = 26;
    return wrap_message(maker, SJ_FRAME_SESSION, &session, (sj_slice){0});
}

sj_slice frame_maker_module(frame_maker *maker)
{
    static const uint8_t skips[FRAME_MAKER_FUNCTIONS] = {
        [7] = SJ_SKIP_TOO_SHORT, [8] = SJ_SKIP_COLD_PART};
    const uint32_t count =
        maker->function_count != 0 ? maker->function_count : FRAME_MAKER_FUNCTIONS;
    char(*names)[32] = calloc(count, sizeof(*names));
    sj_function_entry *entries = calloc(count, sizeof(*entries));
    must(names != NULL && entries != NULL);
    for (uint32_t i = 0; i < count; ++i) {
        snprintf(names[i], sizeof(names[i]), i % 2 == 0 ? "function_%u" : "_Z7foo_%03ui", i);
        if (maker->name_end != NULL) {
            strncat(names[i], maker->name_end, sizeof(names[i]) - strlen(names[i]) - 1);
        }
        entries[i] = (sj_function_entry){.offset = 0x1000 + i * 64u,
                                         .size_bytes = 64,
                                         .technique = i == 7 || i == 8 ? 0 : 1,
                                         .skip = i < FRAME_MAKER_FUNCTIONS ? skips[i] : 0,
                                         .source = 1,
                                         .name = i == 9 ? "" : names[i]};
    }
    const size_t bound = sj_function_table_bound(entries, count);
    uint8_t *raw = malloc(bound);
    size_t raw_bytes = 0;
    must(raw != NULL && sj_function_table_write(entries, count, raw, bound, &raw_bytes) == SJ_OK);
    const size_t packed_bound = ZSTD_compressBound(raw_bytes);
    uint8_t *packed = malloc(packed_bound);
    must(packed != NULL);
    const size_t packed_bytes = ZSTD_compress(packed, packed_bound, raw, raw_bytes, 1);
    must(!ZSTD_isError(packed_bytes));
    uint8_t id[16];
    uint8_t build_id[20] = {0xb1};
    Sojourn__Module module = SOJOURN__MODULE__INIT;
    module.session_id = session_id(maker, id);
    module.module = 1;
    module.build_id = (ProtobufCBinaryData){.data = build_id, .len = sizeof(build_id)};
    module.path = (char *)(uintptr_t) "/usr/bin/app";
    module.first_function = 1;
    module.function_count = count;
    module.raw_bytes = (uint32_t)raw_bytes;
    module.hooked_count = count - 1;
    const sj_slice frame = wrap_message(maker, SJ_FRAME_MODULE, &module,
                                        (sj_slice){.data = packed, .size = packed_bytes});
    free(raw);
    free(packed);
    free(entries);
    free(names);
    return frame;
}

sj_slice frame_maker_thread(frame_maker *maker)
{
    uint8_t id[16];
    uint32_t streams[] = {stream_of(maker)};
    Sojourn__Thread thread = SOJOURN__THREAD__INIT;
    thread.session_id = session_id(maker, id);
    thread.process = 1;
    thread.thread = stream_of(maker);
    thread.tid = 4710 + stream_of(maker);
    thread.name = make_name(maker, "main");
    thread.started_ticks = FRAME_MAKER_STARTED_TICKS;
    thread.stream = streams;
    thread.n_stream = 1;
    thread.is_main = stream_of(maker) == 1;
    return wrap_message(maker, SJ_FRAME_THREAD, &thread, (sj_slice){0});
}

sj_slice frame_maker_mark(frame_maker *maker, uint64_t number)
{
    uint8_t id[16];
    Sojourn__Mark mark = SOJOURN__MARK__INIT;
    mark.session_id = session_id(maker, id);
    mark.name = make_name(maker, "phase");
    mark.mark = number;
    mark.ticks = FRAME_MAKER_STARTED_TICKS + number;
    mark.source = (char *)(uintptr_t) "cli";
    return wrap_message(maker, SJ_FRAME_MARK, &mark, (sj_slice){0});
}

sj_slice frame_maker_report(frame_maker *maker, uint64_t number, const char *kind,
                            const char *payload)
{
    return frame_maker_report_of(maker, "heap", number, 1000 * number, kind, payload);
}

sj_slice frame_maker_report_of(frame_maker *maker, const char *monitor, uint64_t number,
                               uint64_t ticks, const char *kind, const char *payload)
{
    uint8_t id[16];
    Sojourn__Report report = SOJOURN__REPORT__INIT;
    report.session_id = session_id(maker, id);
    report.report = number;
    report.ticks = FRAME_MAKER_STARTED_TICKS + ticks;
    report.process = 1;
    report.monitor = (char *)(uintptr_t)monitor;
    report.kind = (char *)(uintptr_t)kind;
    return wrap_message(maker, SJ_FRAME_REPORT, &report,
                        (sj_slice){.data = (const uint8_t *)payload, .size = strlen(payload)});
}

sj_slice frame_maker_end(frame_maker *maker)
{
    uint8_t id[16];
    Sojourn__SessionEnd end = SOJOURN__SESSION_END__INIT;
    end.session_id = session_id(maker, id);
    end.how = (char *)(uintptr_t) "completed";
    end.ended_ticks = maker->ticks;
    end.calls = maker->next_call;
    end.blocks = maker->blocks;
    return wrap_message(maker, SJ_FRAME_SESSION_END, &end, (sj_slice){0});
}

sj_slice frame_maker_gap(frame_maker *maker, uint64_t number, uint64_t lost_calls)
{
    uint8_t id[16];
    Sojourn__Gap gap = SOJOURN__GAP__INIT;
    gap.session_id = session_id(maker, id);
    gap.gap = number;
    gap.stream = stream_of(maker);
    gap.reason = SJ_GAP_RING_FULL;
    gap.calls = lost_calls;
    gap.start_ticks = gap.end_ticks = maker->ticks;
    return wrap_message(maker, SJ_FRAME_GAP, &gap, (sj_slice){0});
}

static uint32_t next_random(frame_maker *maker)
{
    maker->random ^= maker->random << 13;
    maker->random ^= maker->random >> 17;
    maker->random ^= maker->random << 5;
    return maker->random;
}

static void leave(frame_maker *maker)
{
    const sj_stack_frame *ended = &maker->stack[--maker->depth];
    if (maker->depth > 0) {
        maker->stack[maker->depth - 1].child_ticks += maker->ticks - ended->start_ticks;
    }
}

static uint32_t choose_callee(frame_maker *maker, uint32_t random)
{
    /* A call grammar: each function calls three others, so that call paths repeat. */
    const uint32_t caller = maker->depth > 0 ? maker->stack[maker->depth - 1].function : 0;
    return 1 + (caller * 3 + (random >> 8) % 3) % FRAME_MAKER_FUNCTIONS;
}

/* Chooses the function that the next event enters, or 0 for an exit. */
static uint32_t choose_event(frame_maker *maker, uint32_t random)
{
    if (!maker->steady) {
        const bool enter = maker->depth == 0 || (maker->depth < 8 && (random >> 16) % 2 == 0);
        return enter ? choose_callee(maker, random) : 0;
    }
    if (maker->depth == 0) {
        return 1 + maker->roots++ % 4;
    }
    const uint32_t caller = maker->stack[maker->depth - 1].function;
    const uint32_t noise = (random >> 16) % 32 == 0 ? 1 : 0;
    uint32_t *made = &maker->children[maker->depth - 1];
    if (maker->depth >= 8 || *made >= caller % 4 + noise) {
        return 0;
    }
    return 1 + (caller * 3 + (*made)++) % FRAME_MAKER_FUNCTIONS;
}

static sj_slice encode_block(frame_maker *maker, const sj_block_input *input)
{
    const size_t bound = sj_block_bound(input);
    if (maker->block_capacity < bound) {
        free(maker->block);
        maker->block = malloc(bound);
        maker->block_capacity = bound;
        must(maker->block != NULL);
    }
    size_t size = 0;
    must(sj_block_encode(maker->encoder, input, maker->block, maker->block_capacity, &size) ==
         SJ_OK);
    return frame_maker_wrap(maker, SJ_FRAME_BLOCK, (sj_slice){0},
                            (sj_slice){.data = maker->block, .size = size});
}

sj_slice frame_maker_block(frame_maker *maker, uint32_t event_count, unsigned flags)
{
    sj_stack_frame key_frame[64];
    const uint32_t open_depth = maker->depth;
    memcpy(key_frame, maker->stack, sizeof(key_frame));
    uint32_t calls = 0;
    const uint64_t first_ticks = maker->ticks + 26;
    for (uint32_t i = 0; i < event_count; ++i) {
        const uint32_t random = next_random(maker);
        maker->ticks += 26u * (1 + (random & 7));
        const uint32_t chosen = choose_event(maker, random);
        const uint32_t function =
            chosen == 1 && maker->called_for_first != 0 ? maker->called_for_first : chosen;
        maker->events[i] = (sj_event){.ticks = maker->ticks, .function = function};
        if (function != SJ_EVENT_LEAVE) {
            const bool is_untimed = maker->counted && (random >> 20) % 4 != 0;
            maker->events[i].tail_call = is_untimed ? SJ_EVENT_UNTIMED : 0;
            maker->children[maker->depth] = 0;
            maker->stack[maker->depth++] =
                (sj_stack_frame){.call_index = maker->next_call + calls++,
                                 .start_ticks = maker->ticks,
                                 .stack = 0x7fff0000u - maker->depth * 64u,
                                 .function = function,
                                 .flags = is_untimed ? SJ_CALL_UNTIMED : 0};
        } else {
            leave(maker);
        }
    }
    sj_block_input input = {.frames = key_frame + maker->deep_frames, .events = maker->events};
    input.header.version = SJ_BLOCK_VERSION;
    input.header.kind = SJ_BLOCK_CALLS;
    input.header.flags = (uint8_t)flags;
    memset(input.header.session.bytes, maker->session_tag, 16);
    number_id(maker, input.header.session.bytes);
    input.header.stream = stream_of(maker);
    input.header.first_event = maker->next_event;
    input.header.first_call = maker->next_call;
    input.header.event_count = event_count;
    input.header.open_depth = open_depth;
    input.header.stack_frames = maker->deep_frames;
    input.header.stack_reference = maker->deep_frames != 0 ? maker->deep_blocks : 0;
    input.header.first_ticks = event_count > 0 ? maker->events[0].ticks : first_ticks;
    input.header.last_ticks = event_count > 0 ? maker->ticks : first_ticks;
    input.header.clock_step = 26;
    const sj_gap gap = {.before_event = maker->gap_before != 0 ? maker->gap_before : event_count,
                        .reason = SJ_GAP_RING_FULL,
                        .calls = maker->lost_calls,
                        .events = 2 * (uint64_t)maker->lost_calls,
                        .start_ticks = input.header.last_ticks,
                        .end_ticks = input.header.last_ticks};
    input.gaps = &gap;
    input.gap_count = maker->lost_calls != 0;
    input.header.lost_calls = gap.calls;
    input.header.lost_events = gap.events;
    maker->next_event += event_count + gap.events;
    maker->next_call += calls + gap.calls;
    maker->deep_frames = 0;
    return encode_block(maker, &input);
}

sj_slice frame_maker_deep_frames(frame_maker *maker)
{
    sj_block_input input = {.frames = maker->stack};
    input.header.version = SJ_BLOCK_VERSION;
    input.header.kind = SJ_BLOCK_DEEP_FRAMES;
    memset(input.header.session.bytes, maker->session_tag, 16);
    number_id(maker, input.header.session.bytes);
    input.header.stream = stream_of(maker);
    input.header.first_event = ++maker->deep_blocks;
    input.header.open_depth = maker->depth;
    input.header.end_depth = maker->depth;
    input.header.first_ticks = maker->ticks;
    input.header.last_ticks = maker->ticks;
    input.header.clock_step = 26;
    maker->deep_frames = maker->depth;
    return encode_block(maker, &input);
}

sj_slice frame_maker_profile(frame_maker *maker, uint64_t number, const sj_block_header *sums,
                             sj_slice raw)
{
    uint8_t id[16];
    const size_t bound = ZSTD_compressBound(raw.size);
    uint8_t *packed = malloc(bound);
    must(packed != NULL);
    const sj_slice payload = {.data = packed,
                              .size = ZSTD_compress(packed, bound, raw.data, raw.size, 1)};
    must(!ZSTD_isError(payload.size));
    Sojourn__Profile profile = SOJOURN__PROFILE__INIT;
    profile.session_id = session_id(maker, id);
    profile.profile = number;
    profile.first_ticks = sums->first_ticks;
    profile.last_ticks = sums->last_ticks;
    profile.calls = sums->call_count;
    profile.events = sums->event_count;
    profile.raw_bytes = (uint32_t)raw.size;
    const sj_slice frame = wrap_message(maker, SJ_FRAME_PROFILE, &profile, payload);
    free(packed);
    return frame;
}
