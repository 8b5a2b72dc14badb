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
                                        "wild_access",
                                        "message_to_freed",
                                        "mismatched_free",
                                        "write_after_free",
                                        "virtual_call_on_freed",
                                        "overflow_at_call",
                                        "underflow_at_call"};
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
        return "the program has several allocators";
    case SJ_ZOMBIE_SANITIZER:
        return "malloc is a sanitizer's";
    case SJ_ZOMBIE_COLLECTOR:
        return "malloc is a garbage collector's";
    case SJ_ZOMBIE_NO_MEMORY:
        return "there is no memory for the guarded blocks";
    case SJ_ZOMBIE_CODE_DIFFERS:
        return "the allocator's code in memory is not that of its file";
    case SJ_ZOMBIE_MACHINE:
        return "this processor is not supported";
    case SJ_ZOMBIE_OTHER_AGENT:
        return "another version of Sojourn has left guarded blocks in it";
    case SJ_ZOMBIE_OTHER_RUNTIME:
        return "the Objective-C runtime is not GCC's, or has another layout";
    case SJ_ZOMBIE_OWN_ZOMBIES:
        return "the program keeps freed objects itself (NSZombieEnabled)";
    case SJ_ZOMBIE_NO_HANDLER:
        return "SIGSEGV cannot be handled";
    case SJ_ZOMBIE_NO_SIZES:
        return "the allocator does not say how large its blocks are";
    case SJ_ZOMBIE_NOT_COUNTING:
        return "freed memory has been watched without counting: record again with this policy";
    case SJ_ZOMBIE_MUSL:
        return "its C library is musl, whose blocks are not watched";
    default:
        return "the monitor did not start";
    }
}

static bool is_agent(const sj_code_place *frame)
{
    return frame->path != NULL && strstr(frame->path, "/libsojourn-") != NULL;
}

/* Returns how many of the innermost frames belong to the monitor: frames of the agent, and
 * generated code between them, which belongs to no file. */
static size_t count_inner_agent(const sj_code_place *frames, size_t count)
{
    size_t inner = 0;
    for (size_t i = 0; i < count && (frames[i].path == NULL || is_agent(&frames[i])); i++) {
        inner = is_agent(&frames[i]) ? i + 1 : inner;
    }
    return inner;
}

static json_t *frame_json(const sj_frame_namer *namer, const sj_code_place *frame)
{
    char name[NAME_BYTES] = "";
    const char *method =
        frame->path != NULL ? sj_method_names_find(namer->names, frame->path, frame->offset) : NULL;
    if (method != NULL) {
        snprintf(name, sizeof(name), "%s", method);
    } else if (frame->function != NULL) {
        sj_demangle(frame->function, name, sizeof(name));
    }
    const bool is_own =
        frame->path != NULL && !sj_is_system_library(frame->path) && !is_agent(frame);
    return json_pack("{s:s, s:s, s:I, s:b}", "function", name, "module",
                     frame->path != NULL ? frame->path : "", "offset", (json_int_t)frame->offset,
                     "own", is_own);
}

static json_t *stack_json(const sj_frame_namer *namer, sj_zombie_trace *trace, const uint8_t *stack,
                          uint32_t capacity, bool is_fault)
{
    sj_code_place frames[FRAMES_MAX];
    trace->stack_bytes = trace->stack_bytes < capacity ? trace->stack_bytes : capacity;
    const size_t count = namer->walker != NULL ? sj_stack_walk(namer->walker, trace, stack,
                                                               is_fault, frames, FRAMES_MAX)
                                               : 0;
    json_t *list = json_array();
    for (size_t i = count_inner_agent(frames, count); i < count; i++) {
        (void)json_array_append_new(list, frame_json(namer, &frames[i]));
    }
    return json_pack("{s:I, s:I, s:o}", "tid", (json_int_t)trace->tid, "ticks",
                     (json_int_t)(trace->ticks & INT64_MAX), "frames", list);
}

static bool is_access(uint32_t kind)
{
    return kind == SJ_ZOMBIE_USE_AFTER_FREE || kind == SJ_ZOMBIE_OVERFLOW ||
           kind == SJ_ZOMBIE_UNDERFLOW || kind == SJ_ZOMBIE_WILD_ACCESS;
}

/* Copies a text that the program may have damaged. */
static json_t *text_json(const char *text, size_t capacity)
{
    const size_t bytes = strnlen(text, capacity);
    json_t *made = json_stringn(text, bytes);
    return made != NULL ? made : json_string("");
}

/* Copies texts that follow each other; the last one is empty. */
static json_t *list_json(const char *texts, size_t capacity, char end)
{
    json_t *list = json_array();
    for (size_t at = 0; at < capacity && texts[at] != '\0';) {
        size_t bytes = 0;
        while (at + bytes < capacity && texts[at + bytes] != end && texts[at + bytes] != '\0') {
            bytes++;
        }
        (void)json_array_append_new(list, text_json(texts + at, bytes));
        at += bytes + (at + bytes < capacity && texts[at + bytes] == end ? 1 : 0);
    }
    return list;
}

static const char *event_text(uint32_t kind)
{
    static const char *const texts[] = {NULL, "allocation", "retain", "release", "autorelease"};
    return kind < sizeof(texts) / sizeof(texts[0]) ? texts[kind] : NULL;
}

static json_t *history_json(const sj_frame_namer *namer, const sj_zombie_object *object)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < object->event_count && i < SJ_ZOMBIE_EVENTS; i++) {
        const sj_zombie_event *event = &object->events[i];
        sj_zombie_trace trace = event->trace;
        const char *kind = event_text(event->kind);
        if (kind != NULL) {
            json_t *made =
                stack_json(namer, &trace, event->stack, SJ_ZOMBIE_EVENT_STACK_BYTES, false);
            (void)json_object_set_new(made, "event", json_string(kind));
            (void)json_object_set_new(made, "count", json_integer((json_int_t)event->count));
            (void)json_array_append_new(list, made);
        }
    }
    return list;
}

static void add_object(json_t *report, const sj_frame_namer *namer, const sj_zombie_object *object)
{
    (void)json_object_set_new(report, "class",
                              text_json(object->class_name, sizeof(object->class_name)));
    (void)json_object_set_new(report, "selector",
                              text_json(object->selector, sizeof(object->selector)));
    if (object->real_class[0] != '\0') {
        (void)json_object_set_new(report, "real_class",
                                  text_json(object->real_class, sizeof(object->real_class)));
    }
    (void)json_object_set_new(report, "ancestors",
                              list_json(object->lineage, sizeof(object->lineage), '\0'));
    (void)json_object_set_new(report, "values",
                              list_json(object->values, sizeof(object->values), '\n'));
    if (object->event_count != 0) {
        (void)json_object_set_new(report, "history", history_json(namer, object));
        (void)json_object_set_new(report, "history_is_whole", json_boolean(object->is_whole != 0));
    }
}

/* Finds the class of the deleting destructor on the stack of a free; "" if there is none. This is
 * the class of the object when it died: its type information may be that of a base by then. */
static void find_deleted_class(const sj_frame_namer *namer, const sj_zombie_report *report,
                               char name[NAME_BYTES])
{
    sj_code_place frames[FRAMES_MAX];
    sj_zombie_trace release = report->release;
    name[0] = '\0';
    if (namer->walker == NULL || release.stack_bytes > SJ_ZOMBIE_STACK_BYTES) {
        return;
    }
    const size_t count =
        sj_stack_walk(namer->walker, &release, report->release_stack, false, frames, FRAMES_MAX);
    for (size_t i = 0; i < count; i++) {
        const char *symbol = frames[i].function;
        if (symbol != NULL && strncmp(symbol, "_ZN", 3) == 0 && strstr(symbol, "D0Ev") != NULL) {
            sj_demangle(symbol, name, NAME_BYTES);
            char *destructor = strstr(name, "::~");
            if (destructor != NULL) {
                *destructor = '\0';
                return;
            }
        }
    }
    name[0] = '\0';
}

static void without_prefix(char *name, const char *prefix)
{
    if (strncmp(name, prefix, strlen(prefix)) == 0) {
        memmove(name, name + strlen(prefix), strlen(name + strlen(prefix)) + 1);
    }
}

static void name_type(const char *mangled, char name[NAME_BYTES])
{
    char symbol[SJ_ZOMBIE_CLASS_BYTES + 8];
    snprintf(symbol, sizeof(symbol), "_ZTS%.*s", (int)SJ_ZOMBIE_CLASS_BYTES - 1, mangled);
    sj_demangle(symbol, name, NAME_BYTES);
    without_prefix(name, "typeinfo name for ");
}

/* Writes the name of the virtual function that was called. If a destructor may have left the table
 * of a base, which has other and fewer functions, writes only the function's number. */
static void name_virtual(const sj_frame_namer *namer, const sj_zombie_report *report,
                         bool is_own_table, char method[NAME_BYTES])
{
    sj_code_place place = {0};
    if (is_own_table && namer->walker != NULL && report->code != 0) {
        sj_unwinder_locate(namer->walker, report->code, &place);
    }
    if (place.function != NULL) {
        sj_demangle(place.function, method, NAME_BYTES);
        without_prefix(method, "non-virtual thunk to ");
        without_prefix(method, "virtual thunk to ");
    } else {
        snprintf(method, NAME_BYTES, "virtual function %u", report->place);
    }
}

static void add_virtual_call(json_t *json, const sj_frame_namer *namer,
                             const sj_zombie_report *report)
{
    char mangled[SJ_ZOMBIE_CLASS_BYTES];
    char type[NAME_BYTES];
    char name[NAME_BYTES];
    char method[NAME_BYTES];
    memcpy(mangled, report->object.class_name, sizeof(mangled));
    mangled[sizeof(mangled) - 1] = '\0';
    name_type(mangled, type);
    find_deleted_class(namer, report, name);
    if (name[0] == '\0') {
        snprintf(name, sizeof(name), "%s", type);
    }
    name_virtual(namer, report, strcmp(name, type) == 0, method);
    (void)json_object_set_new(json, "class", text_json(name, sizeof(name)));
    (void)json_object_set_new(json, "selector", text_json(method, sizeof(method)));
}

/* Writes the stack of a use. A deep stack is in a large buffer. */
static json_t *use_json(const sj_frame_namer *namer, const sj_zombie_region *region,
                        const sj_zombie_report *report, sj_zombie_trace *use)
{
    const uint32_t deep = report->deep_stack;
    const bool is_deep = deep != 0 && deep <= SJ_ZOMBIE_DEEP_STACKS;
    return stack_json(namer, use, is_deep ? region->deep[deep - 1].bytes : report->use_stack,
                      is_deep ? SJ_ZOMBIE_DEEP_BYTES : SJ_ZOMBIE_USE_STACK_BYTES,
                      is_access(report->kind));
}

char *sj_zombie_report_json(const sj_frame_namer *namer, const sj_zombie_region *region,
                            const sj_zombie_report *report)
{
    char address[32];
    char thread[SJ_ZOMBIE_NAME_BYTES + 1] = "";
    /* Copies, because the program may write while they are read. */
    sj_zombie_trace allocation = report->allocation;
    sj_zombie_trace release = report->release;
    sj_zombie_trace use = report->use;
    const uint32_t kind = report->kind;
    memcpy(thread, report->thread_name, SJ_ZOMBIE_NAME_BYTES);
    snprintf(address, sizeof(address), "0x%" PRIx64, report->address);
    json_t *object =
        json_pack("{s:s, s:I, s:I, s:s*, s:o}", "address", address, "offset",
                  (json_int_t)(report->block != 0 ? report->address - report->block : 0), "size",
                  (json_int_t)report->size, "access",
                  is_access(kind) ? report->is_write != 0 ? "write" : "read" : NULL, "use",
                  use_json(namer, region, report, &use));
    json_t *name = json_string(thread);
    (void)json_object_set_new(object, "thread", name != NULL ? name : json_string(""));
    if (release.ticks != 0) {
        (void)json_object_set_new(
            object, "free",
            stack_json(namer, &release, report->release_stack, SJ_ZOMBIE_STACK_BYTES, false));
    }
    if (allocation.ticks != 0) {
        (void)json_object_set_new(
            object, "allocation",
            stack_json(namer, &allocation, report->allocation_stack, SJ_ZOMBIE_STACK_BYTES, false));
    }
    if (kind == SJ_ZOMBIE_MESSAGE) {
        add_object(object, namer, &report->object);
    } else if (kind == SJ_ZOMBIE_VIRTUAL_CALL) {
        add_virtual_call(object, namer, report);
    } else if (report->object.class_name[0] != '\0') {
        (void)json_object_set_new(
            object, "class",
            text_json(report->object.class_name, sizeof(report->object.class_name)));
    }
    char *text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return text;
}

static json_int_t counter(const _Atomic uint64_t *value)
{
    return (json_int_t)(atomic_load(value) & INT64_MAX);
}

static json_int_t count_kept(const sj_zombie_region *region)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < SJ_ZOMBIE_CELLS; i++) {
        sum += atomic_load(&region->kept[i].count);
    }
    return (json_int_t)(sum & INT64_MAX);
}

static json_int_t count_full(const sj_zombie_region *region)
{
    uint64_t sum = atomic_load(&region->counters.kept_full);
    for (uint32_t i = 0; i < SJ_ZOMBIE_CELLS; i++) {
        sum += atomic_load(&region->kept[i].full);
    }
    return (json_int_t)(sum & INT64_MAX);
}

static void add_objects(json_t *account, const sj_zombie_region *region)
{
    const sj_zombie_counters *counters = &region->counters;
    json_t *objects = json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "kept", count_kept(region), "kept_full",
        count_full(region), "kept_old", counter(&counters->kept_old), "kept_pressure",
        counter(&counters->kept_pressure), "kept_left", counter(&counters->kept_left), "kept_used",
        counter(&counters->kept_used), "not_kept", counter(&counters->not_kept),
        "methods_without_trampoline", counter(&counters->methods_without_trampoline));
    (void)json_object_update(account, objects);
    json_decref(objects);
}

static void add_delayed(json_t *account, const sj_zombie_counters *counters)
{
    json_t *delayed_free =
        json_pack("{s:I, s:I, s:I, s:I, s:I}", "delayed", counter(&counters->delayed),
                  "delayed_full", counter(&counters->delayed_full), "delayed_pressure",
                  counter(&counters->delayed_pressure), "delayed_left",
                  counter(&counters->delayed_left), "not_delayed", counter(&counters->not_delayed));
    (void)json_object_update(account, delayed_free);
    json_decref(delayed_free);
}

static const char *objects_not_watched(const sj_zombie_region *region)
{
    const uint32_t refusal = atomic_load(&region->objects_refusal);
    const bool is_asked = region->settings.objects.is_on != 0 && refusal != SJ_ZOMBIE_NOT_STARTED;
    return is_asked ? sj_zombie_refusal_text(refusal) : "";
}

/* Returns the reason why blocks or objects were not monitored. A program without Objective-C
 * objects is not reported as unmonitored. If heap and objects are both wanted, returns the heap's
 * reason. */
static const char *not_watched(const sj_zombie_region *region, uint32_t refusal)
{
    const char *heap = region->settings.one_in != 0 ? sj_zombie_refusal_text(refusal) : "";
    return heap[0] != '\0' ? heap : objects_not_watched(region);
}

/* Names the facts about memory pressure that are unknown. */
static json_t *unseen_json(uint32_t unseen)
{
    static const char *const names[] = {"/proc/pressure/memory", "/proc/meminfo", "control group"};
    char text[128] = "";
    for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const size_t used = strlen(text);
        if ((unseen >> i & 1) != 0) {
            snprintf(text + used, sizeof(text) - used, "%s%s", used != 0 ? ", " : "", names[i]);
        }
    }
    return json_string(text);
}

char *sj_zombie_account_json(const sj_zombie_region *region, uint32_t refusal,
                             const sj_zombie_limits *limits)
{
    const sj_zombie_counters *counters = &region->counters;
    json_t *object = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "not_watched",
        not_watched(region, refusal), "one_in", (json_int_t)region->settings.one_in, "guarded",
        counter(&counters->guarded), "released", counter(&counters->released), "evicted",
        counter(&counters->evicted), "emptied", counter(&counters->emptied), "refused_size",
        counter(&counters->refused_size), "refused_full", counter(&counters->refused_full),
        "refused_limit", counter(&counters->refused_limit), "not_sampled",
        counter(&counters->not_sampled), "refused_memory", counter(&counters->refused_memory),
        "uses", counter(&counters->uses), "suppressed", counter(&counters->suppressed));
    add_delayed(object, counters);
    (void)json_object_set_new(
        object, "one_in_most",
        json_integer((json_int_t)region->settings.one_in << (limits->shift_most & 31)));
    (void)json_object_set_new(object, "delayed_one_in_most",
                              json_integer(INT64_C(1) << (limits->delayed_shift_most & 31)));
    (void)json_object_set_new(object, "history_pauses", json_integer(limits->history_pauses));
    (void)json_object_set_new(object, "pressure_unseen", unseen_json(limits->pressure_unseen));
    if (object != NULL && region->settings.objects.is_on != 0) {
        add_objects(object, region);
    }
    char *text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return text;
}
