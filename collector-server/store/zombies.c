/* Stores reports of the monitor "zombies" as rows: findings, their reports, stacks, histories and
 * accounts.
 *
 * The fingerprint identifies a finding. It hashes the kind, the program's own functions on the
 * stacks of use and free, and, if the report has them, class and selector. So a finding is one row
 * over all sessions, devices and builds. */
#include "collector-server/store/allocation_wrappers.h"
#include "collector-server/store/owner_pairs.h"
#include "collector-server/store/store_internal.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

enum { STACKS = 3, FRAMES_MAX = 256, OWN_FRAMES = 6, FINGERPRINT_BYTES = 17, NAME_BYTES = 512 };

static const char *const stack_names[STACKS] = {"use", "free", "allocation"};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static int64_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const json_t *frames_of(const json_t *report, const char *stack)
{
    return json_object_get(json_object_get(report, stack), "frames");
}

/* Writes a function's name without the suffixes that compilers append to split or specialised
 * functions. Such suffixes differ between builds. */
static void plain_name(const json_t *frame, char name[NAME_BYTES])
{
    static const char *const marks[] = {" [clone ", ".constprop.", ".isra.", ".part.",
                                        ".cold",    ".lto_priv.",  ".llvm."};
    snprintf(name, NAME_BYTES, "%s", text_of(frame, "function"));
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        char *mark = strstr(name, marks[i]);
        if (mark != NULL && mark != name) {
            *mark = '\0';
        }
    }
}

/* Writes the name of the program's innermost own function that is not an allocation wrapper. If all
 * own functions are wrappers, writes the innermost wrapper. Writes "" if no own function has a
 * name. */
static void own_function_of(const json_t *frames, char name[NAME_BYTES])
{
    char wrapper[NAME_BYTES] = "";
    for (size_t i = 0; i < json_array_size(frames); i++) {
        const json_t *frame = json_array_get(frames, i);
        plain_name(frame, name);
        if (!json_is_true(json_object_get(frame, "own")) || name[0] == '\0') {
            continue;
        }
        if (!sj_is_allocation_wrapper(name)) {
            return;
        }
        memcpy(wrapper, wrapper[0] == '\0' ? name : wrapper, NAME_BYTES);
    }
    memcpy(name, wrapper, NAME_BYTES);
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++) {
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    }
    return (hash ^ 0xff) * UINT64_C(0x100000001b3);
}

static bool is_among(const uint64_t *hashes, unsigned count, uint64_t hash)
{
    for (unsigned i = 0; i < count; i++) {
        if (hashes[i] == hash) {
            return true;
        }
    }
    return false;
}

/* Adds the innermost OWN_FRAMES own functions of a stack to `hash`. For a function without a name,
 * adds its module's file name, because offsets differ between builds. Adds each function once, so
 * that a fault inside a recursion is one finding at any depth. */
static uint64_t hash_stack(uint64_t hash, const json_t *report, const char *stack)
{
    const json_t *frames = frames_of(report, stack);
    uint64_t counted[OWN_FRAMES];
    unsigned taken = 0;
    char name[NAME_BYTES];
    for (size_t i = 0; i < json_array_size(frames) && taken < OWN_FRAMES; i++) {
        const json_t *frame = json_array_get(frames, i);
        if (json_is_true(json_object_get(frame, "own"))) {
            plain_name(frame, name);
            const char *slash = strrchr(text_of(frame, "module"), '/');
            const char *text = name[0] != '\0' ? name : slash != NULL ? slash : "";
            const uint64_t own = hash_text(0, text);
            if (!is_among(counted, taken, own)) {
                hash = hash_text(hash, text);
                counted[taken++] = own;
            }
        }
    }
    return hash_text(hash, stack);
}

static void make_fingerprint(const char *kind, const json_t *report, char text[FINGERPRINT_BYTES])
{
    uint64_t hash = hash_text(UINT64_C(0xcbf29ce484222325), kind);
    hash = hash_stack(hash, report, "use");
    hash = hash_stack(hash, report, "free");
    if (json_object_get(report, "class") != NULL) {
        hash = hash_text(hash, text_of(report, "class"));
        hash = hash_text(hash, text_of(report, "selector"));
    }
    snprintf(text, FINGERPRINT_BYTES, "%016" PRIx64, hash);
}

/* Stores the innermost FRAMES_MAX frames of `moment` under the stack name `stack`. `moment` is the
 * report's use, free or allocation, or an event of its history. */
static sj_status add_frames(sj_store *store, int64_t report_id, const json_t *moment,
                            const char *stack, sj_error *error)
{
    const json_t *frames = json_object_get(moment, "frames");
    const int64_t tid = number_of(moment, "tid");
    const size_t count =
        json_array_size(frames) < FRAMES_MAX ? json_array_size(frames) : FRAMES_MAX;
    for (size_t i = 0; i < count; i++) {
        const json_t *frame = json_array_get(frames, i);
        SJ_TRY(SJ_RUN(&store->sql, zombie_frame_add, error, .report_id = report_id, .stack = stack,
                      .depth = i, .tid = tid, .function = text_of(frame, "function"),
                      .module = text_of(frame, "module"), .offset = number_of(frame, "offset"),
                      .is_own = json_is_true(json_object_get(frame, "own"))));
    }
    return SJ_OK;
}

static sj_status add_history(sj_store *store, const sj_zombie_row *row, const json_t *report,
                             sj_error *error)
{
    const json_t *events = json_object_get(report, "history");
    sj_owner_event kept[SJ_OWNER_EVENTS_MAX];
    char functions[SJ_OWNER_EVENTS_MAX][NAME_BYTES];
    size_t count = json_array_size(events);
    count = count < SJ_OWNER_EVENTS_MAX ? count : SJ_OWNER_EVENTS_MAX;
    for (size_t i = 0; i < count; i++) {
        const json_t *event = json_array_get(events, i);
        own_function_of(json_object_get(event, "frames"), functions[i]);
        kept[i] = (sj_owner_event){.event = text_of(event, "event"), .function = functions[i]};
    }
    sj_pair_owners(kept, count);
    for (size_t i = 0; i < count; i++) {
        const json_t *event = json_array_get(events, i);
        const int64_t partner = kept[i].partner;
        char stack[32];
        snprintf(stack, sizeof(stack), "history %zu", i);
        SJ_TRY(SJ_RUN(&store->sql, zombie_event_add, error, .report_id = row->report_id,
                      .number = i, .event = kept[i].event, .owners = number_of(event, "count"),
                      .tid = number_of(event, "tid"), .ticks = number_of(event, "ticks"),
                      .function = functions[i], .partner = partner >= 0 ? &partner : NULL));
        SJ_TRY(add_frames(store, row->report_id, event, stack, error));
    }
    return SJ_OK;
}

static sj_status add_finding(sj_store *store, const sj_zombie_row *row, const json_t *report,
                             sj_error *error)
{
    char fingerprint[FINGERPRINT_BYTES];
    char functions[STACKS][NAME_BYTES];
    int64_t zombie_id = 0;
    const char *access = json_string_value(json_object_get(report, "access"));
    make_fingerprint(row->kind, report, fingerprint);
    for (int i = 0; i < STACKS; i++) {
        own_function_of(frames_of(report, stack_names[i]), functions[i]);
    }
    SJ_TRY(SJ_RUN(&store->sql, zombie_put, error, .fingerprint = fingerprint, .kind = row->kind,
                  .used_in = functions[0], .freed_in = functions[1], .allocated_in = functions[2],
                  .session_id = row->session_id, .at_ns = row->at_ns,
                  .class = text_of(report, "class"), .selector = text_of(report, "selector")));
    SJ_TRY(SJ_GET(&store->sql, zombie_find, &zombie_id, error, .fingerprint = fingerprint));
    SJ_TRY(SJ_RUN(&store->sql, zombie_report_add, error, .report_id = row->report_id,
                  .zombie_id = zombie_id, .session_id = row->session_id, .at_ns = row->at_ns,
                  .thread_name = text_of(report, "thread"),
                  .tid = number_of(json_object_get(report, "use"), "tid"), .access = access,
                  .size = number_of(report, "size"), .offset = number_of(report, "offset")));
    for (int i = 0; i < STACKS; i++) {
        SJ_TRY(add_frames(store, row->report_id, json_object_get(report, stack_names[i]),
                          stack_names[i], error));
    }
    return add_history(store, row, report, error);
}

static sj_status add_account(sj_store *store, const sj_zombie_row *row, const json_t *account,
                             sj_error *error)
{
    return SJ_RUN(
        &store->sql, zombie_account_add, error, .report_id = row->report_id,
        .session_id = row->session_id, .process_number = row->process,
        .not_watched = text_of(account, "not_watched"), .one_in = number_of(account, "one_in"),
        .guarded = number_of(account, "guarded"), .released = number_of(account, "released"),
        .evicted = number_of(account, "evicted"),
        .refused_size = number_of(account, "refused_size"),
        .refused_full = number_of(account, "refused_full"),
        .refused_limit = number_of(account, "refused_limit"),
        .not_sampled = number_of(account, "not_sampled"),
        .refused_memory = number_of(account, "refused_memory"), .uses = number_of(account, "uses"),
        .suppressed = number_of(account, "suppressed"), .kept = number_of(account, "kept"),
        .kept_full = number_of(account, "kept_full"), .kept_old = number_of(account, "kept_old"),
        .kept_pressure = number_of(account, "kept_pressure"),
        .kept_left = number_of(account, "kept_left"), .kept_used = number_of(account, "kept_used"),
        .not_kept = number_of(account, "not_kept"), .emptied = number_of(account, "emptied"),
        .delayed = number_of(account, "delayed"),
        .delayed_full = number_of(account, "delayed_full"),
        .delayed_pressure = number_of(account, "delayed_pressure"),
        .delayed_left = number_of(account, "delayed_left"),
        .not_delayed = number_of(account, "not_delayed"),
        .methods_without_trampoline = number_of(account, "methods_without_trampoline"),
        .one_in_most = number_of(account, "one_in_most"),
        .history_pauses = number_of(account, "history_pauses"),
        .pressure_unseen = text_of(account, "pressure_unseen"),
        .delayed_one_in_most = number_of(account, "delayed_one_in_most"));
}

/* True if the report is stored already. A recorder may be killed after it sent a report and before
 * it released the report's slot. The recorder that recovers the session then sends the report again
 * under another number.
 *
 * Session and process identify an account. Session, time, thread, size and offset identify another
 * report, because a thread makes one report at a time. */
static bool is_known(sj_store *store, const sj_zombie_row *row, const json_t *report)
{
    int64_t known = 0;
    sj_error error = {0};
    if (strcmp(row->kind, "account") == 0) {
        return SJ_GET(&store->sql, zombie_account_known, &known, &error,
                      .session_id = row->session_id, .process_number = row->process) == SJ_OK;
    }
    return SJ_GET(&store->sql, zombie_report_known, &known, &error, .session_id = row->session_id,
                  .at_ns = row->at_ns, .tid = number_of(json_object_get(report, "use"), "tid"),
                  .size = number_of(report, "size"),
                  .offset = number_of(report, "offset")) == SJ_OK;
}

static sj_status forget_report(sj_store *store, int64_t report_id, sj_error *error)
{
    return SJ_RUN(&store->sql, report_remove, error, .report_id = report_id);
}

sj_status sj_store_zombie_add(sj_store *store, const sj_zombie_row *row, sj_slice payload,
                              sj_error *error)
{
    json_t *report = json_loadb((const char *)payload.data, payload.size, 0, NULL);
    if (report == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const bool is_account = strcmp(row->kind, "account") == 0;
    const sj_status status = is_known(store, row, report)
                                 ? forget_report(store, row->report_id, error)
                             : is_account ? add_account(store, row, report, error)
                                          : add_finding(store, row, report, error);
    json_decref(report);
    return status;
}
