/* Stores reports of monitors. All reports are in one table, so a new monitor needs no migration.
 * Some monitors also have tables of their own. */
#include "collector-server/store/store_internal.h"

#include <jansson.h>

/* True for a name that is easy to write in queries: 1 to SJ_REPORT_NAME_BYTES letters, digits, '_',
 * '-' and '.'. */
static bool is_name(const char *text)
{
    const size_t length = strlen(text);
    return length > 0 && length <= SJ_REPORT_NAME_BYTES &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
               length;
}

static sj_status check_payload(sj_slice payload, sj_error *error)
{
    json_error_t where;
    if (payload.size > SJ_REPORT_MAX_BYTES) {
        return sj_fail(error, SJ_ELIMIT, "a report has %zu bytes; the limit is %d bytes",
                       payload.size, (int)SJ_REPORT_MAX_BYTES);
    }
    json_t *object =
        json_loadb((const char *)payload.data, payload.size, JSON_REJECT_DUPLICATES, &where);
    const bool is_object = json_is_object(object);
    json_decref(object);
    return is_object ? SJ_OK
           : object != NULL
               ? sj_fail(error, SJ_ECORRUPT, "a report's payload is not a JSON object")
               : sj_fail(error, SJ_ECORRUPT, "a report's payload is not JSON: %.100s", where.text);
}

/* True if the report says in which source lines methods are written. */
static bool has_first_lines(const Sojourn__Report *report)
{
    return strcmp(report->monitor, "first_lines") == 0 ||
           (strcmp(report->monitor, "lines") == 0 && strcmp(report->kind, "there") == 0);
}

sj_status sj_store_apply_report(sj_store *store, sj_frame_input *frame, sj_error *error)
{
    const Sojourn__Report *report = frame->message;
    sj_session_state *state = NULL;
    SJ_TRY(sj_store_session(store, report->session_id.data, report->session_id.len, &state, error));
    if (report->report == 0 || !is_name(report->monitor) || !is_name(report->kind)) {
        return sj_fail(error, SJ_ECORRUPT,
                       "a report has no number, or its monitor or kind is not a name");
    }
    SJ_TRY(check_payload(frame->payload, error));
    const int64_t process = (int64_t)(report->process & INT64_MAX);
    const int64_t thread = (int64_t)(report->thread & INT64_MAX);
    SJ_TRY(SJ_RUN(&store->sql, report_add, error, .session_id = state->session_id,
                  .number = report->report, .at_ns = sj_ticks_at_ns(&state->clock, report->ticks),
                  .process_number = process != 0 ? &process : NULL,
                  .thread_number = thread != 0 ? &thread : NULL, .monitor = report->monitor,
                  .kind = report->kind, .payload = frame->payload));
    frame->is_duplicate = sqlite3_changes(store->database) == 0;
    if (!frame->is_duplicate && has_first_lines(report)) {
        return SJ_RUN(&store->sql, first_lines_add, error, .session_id = state->session_id,
                      .payload = frame->payload);
    }
    if (frame->is_duplicate || strcmp(report->monitor, "zombies") != 0) {
        return SJ_OK;
    }
    const sj_zombie_row row = {.report_id = sqlite3_last_insert_rowid(store->database),
                               .session_id = state->session_id,
                               .at_ns = sj_ticks_at_ns(&state->clock, report->ticks),
                               .process = process != 0 ? &process : NULL,
                               .kind = report->kind};
    return sj_store_zombie_add(store, &row, frame->payload, error);
}
