#include "agent/zombies/zombie_report.h"

#include "agent/objfile/demangle.h"
#include "agent/objfile/system_library.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { FRAMES_MAX = 64, NAME_BYTES = 512 };

const char *sj_zombie_kind_text(uint32_t kind)
{
    static const char *const texts[] = {NULL,
                                        "use_after_free",
                                        "overflow",
                                        "underflow",
                                        "double_free",
                                        "invalid_free",
                                        "overflow_at_free",
                                        "underflow_at_free",
                                        "realloc_after_free",
                                        "wild_access"};
    return kind < sizeof(texts) / sizeof(texts[0]) ? texts[kind] : NULL;
}

const char *sj_zombie_refusal_text(uint32_t refusal)
{
    switch (refusal) {
    case SJ_ZOMBIE_MONITORED:
        return "";
    case SJ_ZOMBIE_NO_PLAN:
        return "the entries of the allocator cannot all be patched";
    case SJ_ZOMBIE_OTHER_MALLOC:
        return "malloc is not the C library's";
    case SJ_ZOMBIE_NO_MEMORY:
        return "there is no room for the guarded blocks";
    case SJ_ZOMBIE_CODE_DIFFERS:
        return "the allocator's code in memory is not that of its file";
    case SJ_ZOMBIE_MACHINE:
        return "this processor is not supported";
    case SJ_ZOMBIE_OTHER_AGENT:
        return "another version of Sojourn has left guarded blocks in it";
    case SJ_ZOMBIE_NO_HANDLER:
        return "SIGSEGV cannot be handled";
    default:
        return "the monitor did not start";
    }
}

/* Frames of the agent itself, which the monitor adds at the inner end. */
static bool is_agent(const sj_code_place *frame)
{
    return frame->path != NULL && strstr(frame->path, "/libsojourn-") != NULL;
}

static json_t *frame_json(const sj_code_place *frame)
{
    char name[NAME_BYTES] = "";
    if (frame->function != NULL) {
        sj_demangle(frame->function, name, sizeof(name));
    }
    const bool is_own = frame->path != NULL && !sj_is_system_library(frame->path);
    return json_pack("{s:s, s:s, s:I, s:b}", "function", name, "module",
                     frame->path != NULL ? frame->path : "", "offset", (json_int_t)frame->offset,
                     "own", is_own);
}

static json_t *stack_json(sj_unwinder *walker, sj_zombie_trace *trace, const uint8_t *stack,
                          uint32_t capacity, bool is_fault)
{
    sj_code_place frames[FRAMES_MAX];
    size_t first = 0;
    trace->stack_bytes = trace->stack_bytes < capacity ? trace->stack_bytes : capacity;
    const size_t count =
        walker != NULL ? sj_stack_walk(walker, trace, stack, is_fault, frames, FRAMES_MAX) : 0;
    while (first < count && is_agent(&frames[first])) {
        first++;
    }
    json_t *list = json_array();
    for (size_t i = first; i < count; i++) {
        (void)json_array_append_new(list, frame_json(&frames[i]));
    }
    return json_pack("{s:I, s:I, s:o}", "tid", (json_int_t)trace->tid, "ticks",
                     (json_int_t)(trace->ticks & INT64_MAX), "frames", list);
}

static bool is_access(uint32_t kind)
{
    return kind == SJ_ZOMBIE_USE_AFTER_FREE || kind == SJ_ZOMBIE_OVERFLOW ||
           kind == SJ_ZOMBIE_UNDERFLOW || kind == SJ_ZOMBIE_WILD_ACCESS;
}

char *sj_zombie_report_json(sj_unwinder *walker, const sj_zombie_report *report)
{
    char address[32];
    char thread[SJ_ZOMBIE_NAME_BYTES + 1] = "";
    /* Copies: the program may write while it is read. */
    sj_zombie_trace allocation = report->allocation;
    sj_zombie_trace release = report->release;
    sj_zombie_trace use = report->use;
    const uint32_t kind = report->kind;
    memcpy(thread, report->thread_name, SJ_ZOMBIE_NAME_BYTES);
    snprintf(address, sizeof(address), "0x%" PRIx64, report->address);
    json_t *object = json_pack(
        "{s:s, s:I, s:I, s:s*, s:o}", "address", address, "offset",
        (json_int_t)(report->address - report->block), "size", (json_int_t)report->size, "access",
        is_access(kind) ? report->is_write != 0 ? "write" : "read" : NULL, "use",
        stack_json(walker, &use, report->use_stack, SJ_ZOMBIE_USE_STACK_BYTES, is_access(kind)));
    json_t *name = json_string(thread);
    (void)json_object_set_new(object, "thread", name != NULL ? name : json_string(""));
    if (release.ticks != 0) {
        (void)json_object_set_new(
            object, "free",
            stack_json(walker, &release, report->release_stack, SJ_ZOMBIE_STACK_BYTES, false));
    }
    if (allocation.ticks != 0) {
        (void)json_object_set_new(object, "allocation",
                                  stack_json(walker, &allocation, report->allocation_stack,
                                             SJ_ZOMBIE_STACK_BYTES, false));
    }
    char *text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return text;
}

static json_int_t counter(const _Atomic uint64_t *value)
{
    return (json_int_t)(atomic_load(value) & INT64_MAX);
}

char *sj_zombie_account_json(const sj_zombie_region *region, uint32_t refusal)
{
    const sj_zombie_counters *counters = &region->counters;
    json_t *object = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "not_watched",
        sj_zombie_refusal_text(refusal), "one_in", (json_int_t)region->settings.one_in, "guarded",
        counter(&counters->guarded), "released", counter(&counters->released), "evicted",
        counter(&counters->evicted), "emptied", counter(&counters->emptied), "refused_size",
        counter(&counters->refused_size), "refused_room", counter(&counters->refused_room),
        "refused_memory", counter(&counters->refused_memory), "uses", counter(&counters->uses),
        "suppressed", counter(&counters->suppressed));
    char *text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return text;
}
