#include "collector-server/query/query_state.h"

#include "proto/block/block.h"

sj_query_state *sj_query_state_hold(sj_query_state *state)
{
    ++state->references;
    return state;
}

static void clear_warnings(sj_query_state *state)
{
    for (unsigned i = 0; i < state->warning_count; ++i) {
        sqlite3_free(state->warnings[i].text);
    }
    state->warning_count = 0;
    state->warnings_left_out = 0;
}

void sj_query_state_release(void *held)
{
    sj_query_state *state = held;
    if (--state->references == 0) {
        clear_warnings(state);
        sj_block_decoder_free(state->idle_decoder);
        sqlite3_free(state);
    }
}

void sj_query_warn(sj_query_state *state, int64_t block_id, char *text)
{
    if (text == NULL) {
        return;
    }
    for (unsigned i = 0; i < state->warning_count; ++i) {
        if (state->warnings[i].block_id == block_id) {
            sqlite3_free(text);
            return;
        }
    }
    if (state->warning_count == SJ_QUERY_MAX_WARNINGS) {
        ++state->warnings_left_out;
        sqlite3_free(text);
        return;
    }
    state->warnings[state->warning_count++] = (sj_query_warning){block_id, text};
}

static void query_warnings(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    sj_query_state *state = sqlite3_user_data(context);
    if (state->warning_count == 0) {
        return; /* the result is NULL */
    }
    sqlite3_str *lines = sqlite3_str_new(state->database);
    for (unsigned i = 0; i < state->warning_count; ++i) {
        sqlite3_str_appendf(lines, "%s%s", i == 0 ? "" : "\n", state->warnings[i].text);
    }
    if (state->warnings_left_out != 0) {
        sqlite3_str_appendf(lines, "\n... and %lld more reads of such blocks",
                            (long long)state->warnings_left_out);
    }
    clear_warnings(state);
    char *text = sqlite3_str_finish(lines);
    if (text == NULL) {
        sqlite3_result_error_nomem(context);
        return;
    }
    sqlite3_result_text(context, text, -1, sqlite3_free);
}

int sj_register_warnings(sj_query_state *state)
{
    return sqlite3_create_function_v2(state->database, "query_warnings", 0,
                                      SQLITE_UTF8 | SQLITE_DIRECTONLY, sj_query_state_hold(state),
                                      query_warnings, NULL, NULL, sj_query_state_release);
}
