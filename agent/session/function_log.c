/* Design notes. The log copies events from blocks as they arrive: 24 bytes each, and a text only if
 * values were recorded. Events wait in one queue per stream. A heap finds the queue with the
 * earliest next event. If more than PENDING_MAX events wait, all are written at once, in the order
 * known so far. */
#include "agent/session/function_log.h"

#include "agent/objfile/demangle.h"
#include "agent/session/function_log_file.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"
#include "proto/base/hash_map.h"
#include "proto/block/call_text.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S UINT64_C(1000000000)
/* The clock's rate is measured over at least this time. */
#define RATE_NS UINT64_C(20000000)

enum {
    PENDING_MAX = 4 * 1024 * 1024,
    NAME_BYTES = 4096,
    END_BYTES = 32, /* end of a line: its thread, and " ~" for estimates */
    LINE_BYTES = 64 + 2 * NAME_BYTES
};

typedef struct line_event {
    uint64_t ticks;
    /* The name and, after its NUL, the result. NULL: the texts of `function` and `ending`. */
    char *texts;
    uint32_t function;
    uint8_t is_leave;
    uint8_t ending; /* sj_ending */
    bool is_estimate;
} line_event;

typedef struct open_call {
    uint64_t call_index;
    char *name; /* with values; NULL: the function's name */
    uint32_t function;
    bool is_estimate; /* its times are estimates (SJ_CALL_UNTIMED) */
} open_call;

typedef struct log_stream {
    uint64_t next_event; /* number of the event after the last block */
    int32_t tid;         /* tid of its thread; 0: not known */
    open_call *open;
    size_t depth, open_capacity;
    line_event *events; /* from `first` on */
    size_t first, count, capacity;
    size_t heap_place;
    bool is_known, is_in_heap;
    bool has_ended; /* no further events */
} log_stream;

typedef struct function_name {
    char *name;
    bool is_symbol; /* not yet demangled */
} function_name;

struct sj_function_log {
    pthread_mutex_t mutex; /* guards the members below */
    sj_clock_pair start;
    double ns_per_tick;
    uint64_t last_ns; /* time of the last line */
    function_name *names;
    size_t name_count, name_capacity;
    sj_block_decoder *decoder;
    sj_hash_map numbers; /* stream -> its index */
    log_stream **streams;
    size_t stream_count, stream_capacity;
    log_stream **heap;
    size_t heap_count, heap_capacity;
    const sj_block_value **values; /* values of the current block, sorted by call */
    size_t value_capacity;
    uint64_t pending;
    sj_function_log_counters counters;
    sj_function_log_file file;
    char line[LINE_BYTES];
};

sj_status sj_function_log_open(const sj_function_log_options *options, sj_function_log **log,
                               sj_error *error)
{
    sj_function_log *made = calloc(1, sizeof(*made));
    if (made == NULL || sj_block_decoder_new(&made->decoder) != SJ_OK) {
        free(made);
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    pthread_mutex_init(&made->mutex, NULL);
    made->start = options->start;
    const sj_status status = sj_function_log_file_open(
        options->directory, options->max_bytes, options->max_files != 0 ? options->max_files : 1,
        &made->file, error);
    if (status != SJ_OK) {
        sj_function_log_close(made);
        return status;
    }
    *log = made;
    return SJ_OK;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

void sj_function_log_name(sj_function_log *log, uint32_t function, const char *symbol,
                          const char *module, uint64_t offset)
{
    char unnamed[300];
    snprintf(unnamed, sizeof(unnamed), "%.255s+0x%llx", file_name(module),
             (unsigned long long)offset);
    pthread_mutex_lock(&log->mutex);
    const size_t needed = (size_t)function + 1;
    if (needed > log->name_count && function <= SJ_FUNCTION_ID_MAX &&
        sj_array_reserve(&log->names, &log->name_capacity, log->name_count,
                         needed - log->name_count, sizeof(*log->names)) == SJ_OK) {
        memset(log->names + log->name_count, 0, (needed - log->name_count) * sizeof(*log->names));
        log->name_count = needed;
    }
    if (function < log->name_count && log->names[function].name == NULL) {
        log->names[function].name = strdup(symbol[0] != '\0' ? symbol : unnamed);
        log->names[function].is_symbol = symbol[0] != '\0';
    }
    pthread_mutex_unlock(&log->mutex);
}

/* Returns the demangled name of a function. */
static const char *name_of(sj_function_log *log, uint32_t function)
{
    char shown[NAME_BYTES];
    function_name *name = function < log->name_count ? &log->names[function] : NULL;
    if (name == NULL || name->name == NULL) {
        return "(unknown function)";
    }
    if (name->is_symbol) {
        sj_demangle(name->name, shown, sizeof(shown));
        char *kept = strdup(shown);
        if (kept != NULL) {
            free(name->name);
            name->name = kept;
        }
        name->is_symbol = false;
    }
    return name->name;
}

/* --- the heap: streams by the time of their next event --- */

static uint64_t next_ticks(const log_stream *stream)
{
    return stream->events[stream->first].ticks;
}

static void place(sj_function_log *log, size_t at, log_stream *stream)
{
    log->heap[at] = stream;
    stream->heap_place = at;
}

static void sink_down(sj_function_log *log, size_t at)
{
    log_stream *moved = log->heap[at];
    for (;;) {
        size_t least = 2 * at + 1;
        if (least >= log->heap_count) {
            break;
        }
        if (least + 1 < log->heap_count &&
            next_ticks(log->heap[least + 1]) < next_ticks(log->heap[least])) {
            least++;
        }
        if (next_ticks(moved) <= next_ticks(log->heap[least])) {
            break;
        }
        place(log, at, log->heap[least]);
        at = least;
    }
    place(log, at, moved);
}

static void rise(sj_function_log *log, size_t at)
{
    log_stream *moved = log->heap[at];
    while (at != 0 && next_ticks(moved) < next_ticks(log->heap[(at - 1) / 2])) {
        place(log, at, log->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    place(log, at, moved);
}

static sj_status enter_heap(sj_function_log *log, log_stream *stream)
{
    if (stream->is_in_heap || stream->first == stream->count) {
        return SJ_OK;
    }
    SJ_TRY(
        sj_array_reserve(&log->heap, &log->heap_capacity, log->heap_count, 1, sizeof(*log->heap)));
    stream->is_in_heap = true;
    place(log, log->heap_count, stream);
    rise(log, log->heap_count++);
    return SJ_OK;
}

/* --- from blocks to events --- */

static sj_status find_stream(sj_function_log *log, uint32_t number, log_stream **stream)
{
    const sj_hash_entry *known = sj_hash_map_find(&log->numbers, number, 0);
    if (known != NULL) {
        *stream = log->streams[known->first];
        return SJ_OK;
    }
    SJ_TRY(sj_array_reserve(&log->streams, &log->stream_capacity, log->stream_count, 1,
                            sizeof(*log->streams)));
    log_stream *made = calloc(1, sizeof(*made));
    const sj_hash_entry entry = {.key = number, .first = (uint32_t)log->stream_count};
    if (made == NULL || sj_hash_map_put(&log->numbers, &entry) != SJ_OK) {
        free(made);
        return SJ_ENOMEM;
    }
    log->streams[log->stream_count++] = made;
    *stream = made;
    return SJ_OK;
}

void sj_function_log_stream(sj_function_log *log, uint32_t stream, int32_t tid)
{
    log_stream *known = NULL;
    pthread_mutex_lock(&log->mutex);
    if (find_stream(log, stream, &known) == SJ_OK) {
        known->tid = tid;
    }
    pthread_mutex_unlock(&log->mutex);
}

static sj_status push_open(log_stream *stream, const open_call *call)
{
    SJ_TRY(sj_array_reserve(&stream->open, &stream->open_capacity, stream->depth, 1,
                            sizeof(*stream->open)));
    stream->open[stream->depth++] = *call;
    return SJ_OK;
}

/* If earlier blocks are missing, replaces the open calls by the open calls at the start of the
 * block. The outermost calls of a very deep stack then have no names. */
static sj_status follow(log_stream *stream, const sj_block *block)
{
    const bool is_next = stream->is_known && stream->next_event == block->header.first_event &&
                         stream->depth == block->header.open_depth;
    stream->is_known = true;
    stream->next_event =
        block->header.first_event + block->header.event_count + block->header.lost_events;
    if (is_next) {
        return SJ_OK;
    }
    while (stream->depth != 0) {
        free(stream->open[--stream->depth].name);
    }
    const size_t unknown = block->header.open_depth - block->frame_count;
    for (size_t i = 0; i < block->header.open_depth; i++) {
        open_call call = {0};
        if (i >= unknown) {
            call.function = block->frames[i - unknown].function;
            call.call_index = block->frames[i - unknown].call_index;
            call.is_estimate = (block->frames[i - unknown].flags & SJ_CALL_UNTIMED) != 0;
        }
        SJ_TRY(push_open(stream, &call));
    }
    return SJ_OK;
}

static int by_call(const void *left, const void *right)
{
    const sj_block_value *a = *(const sj_block_value *const *)left;
    const sj_block_value *b = *(const sj_block_value *const *)right;
    return a->call_index != b->call_index
               ? (a->call_index < b->call_index ? -1 : 1)
               : (int)sj_value_position(a->descriptor) - (int)sj_value_position(b->descriptor);
}

/* Sorts the values of arguments, results and errno by their calls; sets `*count`. */
static sj_status sort_values(sj_function_log *log, const sj_block *block, size_t *count)
{
    SJ_TRY(sj_array_reserve(&log->values, &log->value_capacity, 0, block->value_count,
                            sizeof(*log->values)));
    *count = 0;
    for (size_t i = 0; i < block->value_count; i++) {
        if (sj_value_kind_of(block->values[i].descriptor) != SJ_VALUE_COST) {
            log->values[(*count)++] = &block->values[i];
        }
    }
    if (*count != 0) {
        qsort(log->values, *count, sizeof(*log->values), by_call);
    }
    return SJ_OK;
}

/* Returns the index of a call's first value; `count` if it has none. */
static size_t first_value(const sj_function_log *log, size_t count, uint64_t call_index)
{
    const size_t low = SJ_BISECT(0, count, i, log->values[i]->call_index < call_index);
    return low < count && log->values[low]->call_index == call_index ? low : count;
}

/* Returns the name of a call with the values of its arguments; NULL: none are recorded. The caller
 * frees it. */
static char *name_call(sj_function_log *log, size_t value_count, const open_call *call)
{
    sj_call_arguments arguments;
    char name[SJ_CALL_TEXT_NAME];
    size_t i = first_value(log, value_count, call->call_index);
    if (i == value_count) {
        return NULL;
    }
    sj_call_arguments_clear(&arguments);
    for (; i < value_count && log->values[i]->call_index == call->call_index; i++) {
        const int position = (int)sj_value_position(log->values[i]->descriptor);
        if (position != 0 && position < SJ_CALL_TEXT_ARGUMENTS) {
            sj_cut_text to =
                sj_cut_text_init(arguments.values[position], sizeof(arguments.values[position]));
            sj_call_text_value(log->values[i], &to);
            arguments.is_known[position] = true;
            arguments.last = position;
        }
    }
    if (arguments.last == 0) {
        return NULL;
    }
    sj_cut_text to = sj_cut_text_init(name, sizeof(name));
    sj_call_text_name(name_of(log, call->function), &arguments, &to);
    return strdup(name);
}

/* Recorded data of a call's end; NULL: not recorded. */
typedef struct recorded_end {
    const sj_block_value *result, *error_number;
} recorded_end;

static recorded_end find_end(const sj_function_log *log, size_t value_count, uint64_t call_index)
{
    recorded_end end = {0};
    for (size_t i = first_value(log, value_count, call_index);
         i < value_count && log->values[i]->call_index == call_index &&
         sj_value_position(log->values[i]->descriptor) == SJ_VALUE_RESULT;
         i++) {
        const sj_block_value *value = log->values[i];
        const bool is_errno = sj_value_kind_of(value->descriptor) == SJ_VALUE_ERRNO;
        end.error_number = is_errno ? value : end.error_number;
        end.result = !is_errno && end.result == NULL ? value : end.result;
    }
    return end;
}

/* Returns the texts of an exit (line_event), or NULL if no value of the call was recorded. */
static char *end_texts(sj_function_log *log, size_t value_count, const open_call *call,
                       uint32_t ending)
{
    char recorded[SJ_CALL_TEXT_VALUE];
    char result[SJ_CALL_TEXT_RESULT];
    const recorded_end end = find_end(log, value_count, call->call_index);
    if (end.result == NULL && end.error_number == NULL && call->name == NULL) {
        return NULL;
    }
    if (end.result != NULL) {
        sj_cut_text to = sj_cut_text_init(recorded, sizeof(recorded));
        sj_call_text_value(end.result, &to);
    }
    sj_cut_text to = sj_cut_text_init(result, sizeof(result));
    sj_call_text_result((sj_ending)ending, end.result != NULL ? recorded : NULL, &to);
    if (end.error_number != NULL) {
        sj_call_text_errno((int64_t)end.error_number->bits, &to);
    }
    const char *name = call->name != NULL ? call->name : name_of(log, call->function);
    const size_t name_bytes = strlen(name) + 1;
    char *texts = malloc(name_bytes + to.used + 1);
    if (texts != NULL) {
        memcpy(texts, name, name_bytes);
        memcpy(texts + name_bytes, result, to.used + 1);
    }
    return texts;
}

static void enter(sj_function_log *log, log_stream *stream, size_t value_count, open_call *call,
                  line_event *event)
{
    call->name = name_call(log, value_count, call);
    event->texts = call->name != NULL ? strdup(call->name) : NULL;
    event->function = call->function;
    event->is_estimate = call->is_estimate;
    if (push_open(stream, call) != SJ_OK) {
        free(call->name);
    }
}

static void leave(sj_function_log *log, log_stream *stream, size_t value_count, line_event *event)
{
    event->is_leave = 1;
    if (stream->depth == 0) {
        return;
    }
    open_call *call = &stream->open[--stream->depth];
    event->texts = end_texts(log, value_count, call, event->ending);
    event->function = call->function;
    event->is_estimate = call->is_estimate;
    free(call->name);
}

/* Removes the innermost call, which is open at the end of the recording. It has not returned, so
 * its exit has no line. */
static void forget_innermost(log_stream *stream)
{
    if (stream->depth != 0) {
        free(stream->open[--stream->depth].name);
    }
}

/* Moves the waiting events to the start of the array, if half of it holds written events. */
static void move_down(log_stream *stream)
{
    if (stream->first > stream->capacity / 2) {
        stream->count -= stream->first;
        memmove(stream->events, stream->events + stream->first,
                stream->count * sizeof(*stream->events));
        stream->first = 0;
    }
}

static sj_status append_events(sj_function_log *log, log_stream *stream, const sj_block *block,
                               size_t value_count)
{
    uint64_t call_index = block->header.first_call;
    size_t ending = 0;
    size_t gap = 0;
    const uint32_t count = block->header.event_count;
    move_down(stream);
    SJ_TRY(sj_array_reserve(&stream->events, &stream->capacity, stream->count, count,
                            sizeof(*stream->events)));
    for (uint32_t i = 0; i < count; i++) {
        line_event event = {.ticks = block->ticks[i]};
        for (; gap < block->gap_count && block->gaps[gap].before_event <= i; gap++) {
            call_index += block->gaps[gap].calls;
        }
        const uint32_t symbol =
            block->symbols16 != NULL ? block->symbols16[i] : block->symbols32[i];
        if (symbol != 0) {
            open_call call = {.call_index = call_index++,
                              .function = block->functions[symbol - 1],
                              .is_estimate = block->untimed != NULL && block->untimed[symbol] != 0};
            enter(log, stream, value_count, &call, &event);
        } else {
            if (ending < block->ending_count && block->endings[ending].event == i) {
                event.ending = (uint8_t)block->endings[ending++].ending;
            }
            if (event.ending == SJ_ENDING_OPEN) {
                forget_innermost(stream);
                continue;
            }
            leave(log, stream, value_count, &event);
        }
        stream->events[stream->count++] = event;
        log->pending++;
    }
    stream->has_ended = (block->header.flags & SJ_BLOCK_LAST) != 0;
    return enter_heap(log, stream);
}

/* --- from events to lines --- */

static uint64_t real_ns_of(sj_function_log *log, uint64_t ticks)
{
    const uint64_t passed = ticks > log->start.ticks ? ticks - log->start.ticks : 0;
    const uint64_t ns = log->start.realtime_ns + (uint64_t)((double)passed * log->ns_per_tick);
    log->last_ns = ns > log->last_ns ? ns : log->last_ns; /* meanwhile the rate is measured again */
    return log->last_ns;
}

static char *add_number(char *to, uint64_t number)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (count != 0) {
        *to++ = digits[--count];
    }
    return to;
}

static char *add_text(char *to, const char *text, size_t bytes)
{
    memcpy(to, text, bytes);
    return to + bytes;
}

static void write_line(sj_function_log *log, const line_event *event, int32_t tid)
{
    static const char *const results[] = {SJ_CALL_TEXT_UNRECORDED, "!", SJ_CALL_TEXT_UNRECORDED,
                                          "?"};
    const char *name = event->texts != NULL ? event->texts : name_of(log, event->function);
    const char *result = event->texts != NULL && event->is_leave != 0
                             ? event->texts + strlen(event->texts) + 1
                             : results[event->ending & 3];
    const uint64_t ns = real_ns_of(log, event->ticks);
    const size_t name_bytes = strnlen(name, NAME_BYTES);
    char *to = add_number(log->line, ++log->counters.lines);
    *to++ = '[';
    to = add_number(to, ns / NS_PER_S);
    *to++ = ',';
    to = add_number(to, ns % NS_PER_S);
    to = add_text(to, event->is_leave != 0 ? "]leave:" : "]enter:", 7);
    sj_cut_text shown = sj_cut_text_init(to, (size_t)(log->line + LINE_BYTES - END_BYTES - to));
    sj_cut_text_add_bytes(&shown, name, name_bytes);
    if (event->is_leave != 0) {
        sj_cut_text_add(&shown, "ret:");
        sj_cut_text_add(&shown, result);
    }
    shown.capacity += END_BYTES;
    sj_call_text_thread(tid, &shown);
    to += shown.used;
    to = add_text(to, event->is_estimate ? " ~\n" : "\n", event->is_estimate ? 3 : 1);
    sj_function_log_file_write(&log->file, log->line, (size_t)(to - log->line));
}

/* Removes the first stream from the heap, because all its events are written. */
static void leave_heap(sj_function_log *log)
{
    log_stream *stream = log->heap[0];
    stream->is_in_heap = false;
    stream->first = stream->count = 0;
    if (stream->has_ended) {
        free(stream->events);
        stream->events = NULL;
        stream->capacity = 0;
    }
    place(log, 0, log->heap[--log->heap_count]);
}

/* Writes the events before `ticks`, in order. */
static void write_until(sj_function_log *log, uint64_t ticks)
{
    while (log->heap_count != 0 && next_ticks(log->heap[0]) < ticks) {
        log_stream *stream = log->heap[0];
        line_event *event = &stream->events[stream->first++];
        write_line(log, event, stream->tid);
        free(event->texts);
        log->pending--;
        if (stream->first == stream->count) {
            leave_heap(log);
        }
        if (log->heap_count != 0) {
            sink_down(log, 0);
        }
    }
}

static void measure_rate(sj_function_log *log)
{
    sj_clock_pair now;
    sj_clock_read_pair(0, &now);
    if (now.monotonic_raw_ns - log->start.monotonic_raw_ns < RATE_NS && log->ns_per_tick != 0) {
        return;
    }
    if (now.ticks > log->start.ticks) {
        log->ns_per_tick = (double)(now.monotonic_raw_ns - log->start.monotonic_raw_ns) /
                           (double)(now.ticks - log->start.ticks);
    }
}

void sj_function_log_block(sj_function_log *log, sj_slice bytes)
{
    sj_block block;
    sj_block_header header;
    log_stream *stream = NULL;
    if (sj_block_read_header(bytes, &header) != SJ_OK || header.kind != SJ_BLOCK_CALLS) {
        return;
    }
    size_t value_count = 0;
    pthread_mutex_lock(&log->mutex);
    sj_status status = find_stream(log, header.stream, &stream);
    if (status == SJ_OK) {
        status = sj_block_decode(log->decoder, bytes, SJ_WANT_ALL, &block);
    }
    if (status == SJ_OK) {
        status = follow(stream, &block);
    }
    if (status == SJ_OK) {
        status = sort_values(log, &block, &value_count);
    }
    if (status == SJ_OK) {
        status = append_events(log, stream, &block, value_count);
    }
    if (status != SJ_OK) {
        log->counters.unwritten_lines += header.event_count;
        if (stream != NULL) {
            stream->is_known = false;
        }
    }
    if (log->pending > PENDING_MAX) {
        measure_rate(log);
        write_until(log, UINT64_MAX);
    }
    pthread_mutex_unlock(&log->mutex);
}

void sj_function_log_advance(sj_function_log *log, uint64_t ticks)
{
    pthread_mutex_lock(&log->mutex);
    measure_rate(log);
    write_until(log, ticks);
    sj_function_log_file_flush(&log->file);
    pthread_mutex_unlock(&log->mutex);
}

static void free_stream(log_stream *stream)
{
    while (stream->depth != 0) {
        free(stream->open[--stream->depth].name);
    }
    for (size_t i = stream->first; i < stream->count; i++) {
        free(stream->events[i].texts);
    }
    free(stream->open);
    free(stream->events);
    free(stream);
}

void sj_function_log_get_counters(sj_function_log *log, sj_function_log_counters *counters)
{
    pthread_mutex_lock(&log->mutex);
    *counters = log->counters;
    counters->removed_files = log->file.removed;
    counters->failure = log->file.failure;
    pthread_mutex_unlock(&log->mutex);
}

void sj_function_log_close(sj_function_log *log)
{
    if (log == NULL) {
        return;
    }
    measure_rate(log);
    write_until(log, UINT64_MAX);
    sj_function_log_file_close(&log->file);
    for (size_t i = 0; i < log->stream_count; i++) {
        free_stream(log->streams[i]);
    }
    for (size_t i = 0; i < log->name_count; i++) {
        free(log->names[i].name);
    }
    sj_block_decoder_free(log->decoder);
    sj_hash_map_deinit(&log->numbers);
    free(log->streams);
    free(log->heap);
    free(log->names);
    free((void *)log->values);
    pthread_mutex_destroy(&log->mutex);
    free(log);
}
