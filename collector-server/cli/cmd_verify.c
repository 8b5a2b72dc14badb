#include "collector-server/store/verify.h"

#include "collector-server/cli/commands.h"
#include "collector-server/cli/database_choice.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/store/database.h"
#include "proto/base/array.h"
#include "proto/base/units.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct verify_request {
    const char *file;
    const char *rebuild; /* a session, or "all"; NULL: none */
    bool check_only;
    bool as_json;
    json_t *findings; /* for `as_json` */
    char path[PATH_MAX];
    int64_t *sessions; /* sessions to rebuild */
    size_t session_count;
} verify_request;

static void print_finding(void *context, const sj_finding *finding)
{
    const verify_request *request = context;
    if (request->as_json) {
        json_array_append_new(
            request->findings,
            json_pack("{sI sI sI sI so}", "session_id", (json_int_t)finding->session_id,
                      "stream_id", (json_int_t)finding->stream_id, "block_id",
                      (json_int_t)finding->block_id, "calls", (json_int_t)finding->calls, "what",
                      sj_json_clean_string(finding->what)));
        return;
    }
    sj_work_progress_hide();
    if (finding->block_id != 0) {
        printf("block %lld of session %lld, stream %lld: %s; %lld calls cannot be read\n",
               (long long)finding->block_id, (long long)finding->session_id,
               (long long)finding->stream_id, finding->what, (long long)finding->calls);
    } else if (finding->session_id != 0) {
        printf("session %lld: %s\n", (long long)finding->session_id, finding->what);
    } else {
        printf("file: %s\n", finding->what);
    }
}

static sj_status list_sessions(sqlite3 *reader, verify_request *request, sj_error *error)
{
    const bool all = strcmp(request->rebuild, "all") == 0;
    int64_t wanted = 0;
    if (!all) {
        SJ_TRY(sj_session_choose(reader, request->rebuild, &wanted, error));
    }
    sj_sql_numbers sessions = {0};
    const sj_status status =
        sj_sql_list_numbers(reader,
                            "SELECT session_id FROM sessions s WHERE session_id = ?1 OR (?1 = 0 AND"
                            " NOT EXISTS (SELECT 1 FROM profiles p WHERE p.session_id ="
                            " s.session_id)) ORDER BY 1",
                            SJ_SQL_INTS(wanted), &sessions, error);
    request->sessions = sessions.values;
    request->session_count = sessions.count;
    return status;
}

/* Writes the path of the database and the sessions to rebuild to the request. */
static sj_status choose_sessions(verify_request *request, sj_error *error)
{
    sqlite3 *reader = NULL;
    SJ_TRY(sj_database_path(request->file, request->path, error));
    SJ_TRY(sj_database_choose(request->file, &reader, error));
    const sj_status status =
        request->rebuild != NULL ? list_sessions(reader, request, error) : SJ_OK;
    sqlite3_close(reader);
    return status;
}

static int print_json(const verify_request *request, const sj_verified *verified)
{
    return sj_json_output(&sj_command_verify,
                          json_pack("{sI sI sI sI sI sI sO}", "rebuilt_sessions",
                                    (json_int_t)request->session_count, "sessions",
                                    (json_int_t)verified->sessions, "blocks",
                                    (json_int_t)verified->blocks, "released_blocks",
                                    (json_int_t)verified->freed_blocks, "bad_blocks",
                                    (json_int_t)verified->bad_blocks, "other",
                                    (json_int_t)verified->other, "findings", request->findings));
}

static int check_sessions(verify_request *request, sj_store *store)
{
    const sj_verify_options options = {
        .check_only = request->check_only, .report = print_finding, .context = request};
    sj_verified verified;
    sj_error error = {0};
    if (sj_store_verify(store, &options, &verified, &error) != SJ_OK) {
        return sj_command_failed(&sj_command_verify, &error);
    }
    if (request->as_json) {
        const int written = print_json(request, &verified);
        return written != SJ_EXIT_OK || verified.bad_blocks + verified.other == 0 ? written
                                                                                  : SJ_EXIT_FAILED;
    }
    printf("%s, %s: ", SJ_COUNTED(verified.sessions, "session"),
           SJ_COUNTED(verified.blocks, "block"));
    if (verified.freed_blocks != 0) {
        printf("%s can be read again, ", SJ_COUNTED(verified.freed_blocks, "marked block"));
    }
    if (verified.bad_blocks + verified.other == 0) {
        printf("sound\n");
        return SJ_EXIT_OK;
    }
    printf("%s cannot be read%s, %s\n", SJ_COUNTED(verified.bad_blocks, "block"),
           request->check_only        ? ""
           : verified.bad_blocks == 1 ? " and is left out"
                                      : " and are left out",
           SJ_COUNTED(verified.other, "other finding"));
    return SJ_EXIT_FAILED;
}

static sj_status rebuild_sessions(const verify_request *request, sj_store *store, sj_error *error)
{
    sj_status status = SJ_OK;
    const sj_progress_work work = sj_progress_begin_list(request->session_count);
    for (size_t i = 0; i < request->session_count && status == SJ_OK; ++i) {
        status = sj_store_rebuild(store, request->sessions[i], error);
        sj_progress_step(work);
    }
    sj_progress_end(work);
    return status;
}

static int verify_database(verify_request *request)
{
    sj_error error = {0};
    sj_store *store = NULL;
    if (choose_sessions(request, &error) != SJ_OK) {
        return sj_command_failed(&sj_command_verify, &error);
    }
    const sj_store_options options = {.path = request->path};
    if (sj_store_open(&options, &store, &error) != SJ_OK) {
        return sj_command_failed(&sj_command_verify, &error);
    }
    const sj_status status = rebuild_sessions(request, store, &error);
    if (request->rebuild != NULL && status == SJ_OK && !request->as_json) {
        printf("%s: aggregates rebuilt\n", SJ_COUNTED(request->session_count, "session"));
    }
    const int exit_code = status == SJ_OK ? check_sessions(request, store)
                                          : sj_command_failed(&sj_command_verify, &error);
    sj_store_close(store);
    return exit_code;
}

static int run_verify(int argc, char **argv)
{
    verify_request request = {0};
    int first = 0;
    const int code = sj_options_parse(&sj_command_verify, argc, argv, &request, &first);
    if (code >= 0) {
        return code;
    }
    sj_work_progress_start();
    if (request.check_only && request.rebuild != NULL) {
        return sj_command_usage_error(&sj_command_verify,
                                      "--check-only changes nothing, --rebuild does");
    }
    const int file_code = sj_query_parse_file(&sj_command_verify, argc, argv, first, &request.file);
    if (file_code >= 0) {
        return file_code;
    }
    request.findings = request.as_json ? json_array() : NULL;
    const int exit_code = verify_database(&request);
    json_decref(request.findings);
    free(request.sessions);
    return exit_code;
}

static const sj_option verify_options[] = {
    SJ_DATABASE_OPTION(offsetof(verify_request, file)),
    {.name = "check-only",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(verify_request, check_only),
     .help = "change nothing"},
    {.name = "rebuild",
     .argument = "SESSION",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(verify_request, rebuild),
     .help = "first rebuild the sums of a session (or `all`) from its\n"
             "blocks"},
    {.name = "json",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(verify_request, as_json),
     .help = "as JSON"},
    {0}};

const sj_command sj_command_verify = {
    .name = "verify",
    .summary = "find stored calls that cannot be read, and quarantine them",
    .usage = "sojourn verify [OPTIONS] [FILE]",
    .help = "Reads every stored block, compares sums with the blocks that they were made of, and\n"
            "the file with itself. Blocks that cannot be read are named and marked: queries\n"
            "leave them out and say so (`sojourn sql --query quarantined` lists them), the rest\n"
            "stays readable. Marked blocks that can be read are released from quarantine. The "
            "server may run.\n",
    .options = verify_options,
    .examples = "Exit status: 0 sound, 1 something was found or failed, 3 no such database.\n"
                "\n"
                "Examples:\n"
                "  sojourn verify lab.db\n"
                "  sojourn verify --rebuild last\n",
    .run = run_verify,
};
