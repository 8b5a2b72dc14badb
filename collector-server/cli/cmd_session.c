#include "agent/policy/suggest.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/database_choice.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/fleet/audit.h"
#include "collector-server/maintenance/block_move.h"
#include "collector-server/maintenance/removal.h"
#include "collector-server/maintenance/retention.h"
#include "collector-server/maintenance/session_copy.h"
#include "collector-server/query/query.h"
#include "collector-server/store/database.h"
#include "collector-server/store/store.h"
#include "proto/base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AUDITED_BYTES = 4096 };

typedef struct session_request {
    const char *file;
    bool force;
    bool dry_run;
    const char *at; /* FROM..TO in ns since the session's start */
    const char *call;
    const char *author;
    const char *move_to;
    bool as_json;
    json_t *done;     /* rows of the JSON output; NULL: the output is text */
    int move_failure; /* exit code of the last failed move; SJ_EXIT_OK: none failed */
    char **words;     /* words after the verb */
    int count;
    sqlite3 *database; /* open for writing; has the tables of query.h */
    int64_t session_id;
} session_request;

typedef struct session_verb {
    const char *name;
    int least, most; /* allowed number of words after the verb */
    bool of_session; /* the first word names a session */
    int (*run)(session_request *request);
} session_verb;

/* Runs SQL that changes the database. Binds the session to ?1, `first` to ?2 and `second` to ?3. A
 * NULL text binds as NULL. Returns an exit code. */
static int change_session(const session_request *request, const char *sql, const char *first,
                          const char *second)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(request->database, sql, -1, &statement, NULL);
    if (result == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, request->session_id);
        const char *const texts[] = {first, second};
        for (int i = 0; i < 2 && i + 2 <= sqlite3_bind_parameter_count(statement); ++i) {
            sqlite3_bind_text(statement, i + 2, texts[i], -1, SQLITE_STATIC);
        }
        result = sqlite3_step(statement);
    }
    sqlite3_finalize(statement);
    return result == SQLITE_DONE ? SJ_EXIT_OK
                                 : sj_command_error(&sj_command_session, SJ_EXIT_FAILED, "%s",
                                                    sqlite3_errmsg(request->database));
}

/* Appends an action on a session to the JSON output, with the members of `more`. Takes ownership of
 * `more`, which may be NULL. */
static void list_done(const session_request *request, const char *what, int64_t session_id,
                      json_t *more)
{
    json_t *row = json_pack("{ss sI}", "action", what, "session_id", (json_int_t)session_id);
    (void)json_object_update(row, more);
    json_decref(more);
    (void)json_array_append_new(request->done, row);
}

static int run_pin(session_request *request)
{
    return change_session(request, "UPDATE sessions SET pinned = 1 WHERE session_id = ?1", NULL,
                          NULL);
}

static int run_unpin(session_request *request)
{
    return change_session(request, "UPDATE sessions SET pinned = 0 WHERE session_id = ?1", NULL,
                          NULL);
}

static int run_name(session_request *request)
{
    return change_session(request, "UPDATE sessions SET name = ?2 WHERE session_id = ?1",
                          request->words[1], NULL);
}

static int run_tag(session_request *request)
{
    int exit_code = SJ_EXIT_OK;
    for (int i = 1; i < request->count; ++i) {
        const char *equals = strchr(request->words[i], '=');
        if (equals == NULL || equals == request->words[i]) {
            return sj_command_usage_error(&sj_command_session, "a tag is KEY=VALUE, not \"%s\"",
                                          request->words[i]);
        }
    }
    for (int i = 1; i < request->count && exit_code == SJ_EXIT_OK; ++i) {
        char *equals = strchr(request->words[i], '=');
        *equals = '\0';
        exit_code =
            change_session(request,
                           "UPDATE sessions SET tags = json_patch(tags, json_object(?2, ?3)) "
                           "WHERE session_id = ?1",
                           request->words[i], equals + 1);
    }
    return exit_code;
}

static int run_untag(session_request *request)
{
    return change_session(
        request,
        "UPDATE sessions SET tags = json_patch(tags, json_object(?2, NULL)) WHERE "
        "session_id = ?1",
        request->words[1], NULL);
}

/* Parses "FROM..TO" in ns. `*from` and `*to` point into `text`: `*from` has `*from_bytes` bytes,
 * and `*to` ends with a NUL byte. Returns false if the text is malformed. If `text` is NULL, sets
 * both to NULL and returns true. */
static bool read_span(const char *text, const char **from, int *from_bytes, const char **to)
{
    const char *dots = text != NULL ? strstr(text, "..") : NULL;
    *from = *to = NULL;
    if (text == NULL) {
        return true;
    }
    if (dots == NULL || text[strspn(text, "0123456789.-")] != '\0') {
        return false;
    }
    *from_bytes = (int)(dots - text);
    *from = text;
    *to = dots + 2;
    return true;
}

static int run_note(session_request *request)
{
    const char *from;
    const char *to;
    int from_bytes = 4; /* of NULL, which %Q writes for a null pointer */
    if (!read_span(request->at, &from, &from_bytes, &to)) {
        return sj_command_usage_error(&sj_command_session, "--at takes FROM..TO in ns");
    }
    char *sql = sqlite3_mprintf(
        "INSERT INTO annotations(session_id, call_id, start_ns, end_ns, author, note, "
        "created_realtime_ns) VALUES (?1, CAST(%Q AS INTEGER), CAST(%.*Q AS INTEGER), CAST(%Q AS "
        "INTEGER), ?3, ?2, unixepoch() * 1000000000)",
        request->call, from_bytes, from, to);
    const char *author = request->author != NULL ? request->author : getenv("USER");
    const int exit_code =
        sql == NULL ? SJ_EXIT_FAILED
                    : change_session(request, sql, request->words[1], author != NULL ? author : "");
    sqlite3_free(sql);
    return exit_code;
}

static int run_remove(session_request *request)
{
    sj_error error = {0};
    const sj_status status = sj_session_remove(request->database, request->session_id,
                                               "sojourn session remove", request->force, &error);
    return status == SJ_OK ? SJ_EXIT_OK : sj_command_failed(&sj_command_session, &error);
}

static int run_export(session_request *request)
{
    sj_error error = {0};
    sqlite3 *target = NULL;
    sj_copied_session copied;
    const char *path = request->words[1];
    if (access(path, F_OK) == 0) {
        return sj_command_error(&sj_command_session, SJ_EXIT_FAILED, "%s exists already", path);
    }
    sj_status status = sj_database_open(path, SJ_DATABASE_CREATE, &target, &error);
    if (status == SJ_OK) {
        status = sj_session_copy(sqlite3_db_filename(request->database, "main"),
                                 request->session_id, target, &copied, &error);
        /* removes the log files beside the output */
        sqlite3_exec(target, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
        sqlite3_close(target);
    }
    if (status != SJ_OK) {
        unlink(path);
        return sj_command_failed(&sj_command_session, &error);
    }
    return SJ_EXIT_OK;
}

/* True if the import continues with the next session: this one was copied, or the database already
 * has it or a part of it that cannot be joined. */
static bool can_continue(sj_status status)
{
    return status == SJ_OK || status == SJ_EEXIST || status == SJ_EUNSUPPORTED;
}

/* Copies one session and tells the user. Returns an exit code; `*status` is the copy's. */
static int import_session(const session_request *request, const char *path, int64_t session_id,
                          sj_status *status)
{
    sj_copied_session copied;
    sj_error error = {0};
    *status = sj_session_copy(path, session_id, request->database, &copied, &error);
    sj_work_progress_hide();
    if (*status == SJ_EEXIST) {
        fprintf(stderr, "sojourn session: session %lld of %s exists already\n",
                (long long)session_id, path);
    } else if (*status != SJ_OK) {
        return sj_command_failed(&sj_command_session, &error);
    } else if (request->done != NULL) {
        list_done(request, "import", copied.session_id,
                  json_pack("{sI sb}", "imported_from", (json_int_t)session_id, "joined",
                            copied.is_joined));
    } else if (copied.is_joined) {
        printf("session %lld of %s is joined with session %lld\n", (long long)session_id, path,
               (long long)copied.session_id);
    } else {
        printf("session %lld of %s is session %lld now\n", (long long)session_id, path,
               (long long)copied.session_id);
    }
    return SJ_EXIT_OK;
}

static int import_all(const session_request *request, sqlite3 *source, const char *path)
{
    sj_sql_numbers sessions = {0};
    sj_error error = {0};
    int exit_code = SJ_EXIT_OK;
    sj_status status = sj_sql_list_numbers(source,
                                           "SELECT session_id FROM sessions"
                                           " WHERE state <> 'removing'"
                                           " ORDER BY started_realtime_ns",
                                           (sj_sql_binds){0}, &sessions, &error);
    if (status != SJ_OK) {
        exit_code = sj_command_failed(&sj_command_session, &error);
    }
    const sj_progress_work work = sj_progress_begin_list(sessions.count);
    for (size_t i = 0; i < sessions.count && can_continue(status); i++) {
        const int code = import_session(request, path, sessions.values[i], &status);
        exit_code = code != SJ_EXIT_OK ? code : exit_code;
        sj_progress_step(work);
    }
    sj_progress_end(work);
    free(sessions.values);
    return exit_code;
}

static int run_import(session_request *request)
{
    sj_error error = {0};
    sqlite3 *source = NULL;
    if (sj_database_open(request->words[0], SJ_DATABASE_READ, &source, &error) != SJ_OK) {
        return sj_command_failed(&sj_command_session, &error);
    }
    const int exit_code =
        sj_session_copy_check(request->words[0], request->database, &error) == SJ_OK
            ? import_all(request, source, request->words[0])
            : sj_command_failed(&sj_command_session, &error);
    sqlite3_close(source);
    return exit_code;
}

static void report_moved(const session_request *request, int64_t session_id,
                         const sj_blocks_moved *moved, bool into_files)
{
    if (request->done != NULL) {
        list_done(request, into_files ? "move" : "return", session_id,
                  json_pack("{sI sI}", "blocks", (json_int_t)moved->blocks, "bytes",
                            (json_int_t)moved->bytes));
        return;
    }
    printf("session %lld: %s (%s) %s %s\n", (long long)session_id,
           SJ_COUNTED(moved->blocks, "block"), SJ_COUNTED(moved->bytes, "byte"),
           moved->blocks == 1 ? "is" : "are",
           into_files ? "in files now" : "in the database again");
}

static int run_move(session_request *request)
{
    sj_error error = {0};
    sj_blocks_moved moved;
    const sj_status status =
        sj_blocks_move(request->database, request->session_id, request->words[1], &moved, &error);
    report_moved(request, request->session_id, &moved, true);
    return status == SJ_OK ? SJ_EXIT_OK : sj_command_failed(&sj_command_session, &error);
}

static int run_return(session_request *request)
{
    sj_error error = {0};
    sj_blocks_moved moved;
    const sj_status status =
        sj_blocks_return(request->database, request->session_id, &moved, &error);
    report_moved(request, request->session_id, &moved, false);
    return status == SJ_OK ? SJ_EXIT_OK : sj_command_failed(&sj_command_session, &error);
}

/* Moves the blocks of a session to the folder of --move-to. With --dry-run, only reports the move.
 * Always returns false, so that retention keeps the session itself. */
static bool move_old(session_request *request, int64_t session_id, int64_t bytes)
{
    sj_error error = {0};
    sj_blocks_moved moved;
    if (request->dry_run && request->done != NULL) {
        list_done(request, "would_move", session_id, json_pack("{sI}", "bytes", (json_int_t)bytes));
    } else if (request->dry_run) {
        printf("would move session %lld (%lld bytes)\n", (long long)session_id, (long long)bytes);
    } else if (sj_blocks_move(request->database, session_id, request->move_to, &moved, &error) !=
               SJ_OK) {
        request->move_failure = sj_command_failed(&sj_command_session, &error);
    } else if (moved.blocks != 0) {
        sj_work_progress_hide();
        report_moved(request, session_id, &moved, true);
    }
    return false;
}

static bool report_removal(void *context, int64_t session_id, int64_t bytes)
{
    session_request *request = context;
    sj_work_progress_hide();
    if (request->move_to != NULL) {
        return move_old(request, session_id, bytes);
    }
    if (request->done != NULL) {
        list_done(request, request->dry_run ? "would_remove" : "remove", session_id,
                  json_pack("{sI}", "bytes", (json_int_t)bytes));
        return !request->dry_run;
    }
    printf("%s session %lld (%lld bytes)\n", request->dry_run ? "would remove" : "removing",
           (long long)session_id, (long long)bytes);
    return !request->dry_run;
}

static int run_retain(session_request *request)
{
    sj_error error = {0};
    sj_status status = request->dry_run ? SJ_OK : sj_removal_resume(request->database, &error);
    for (int i = 0; i < request->count && status == SJ_OK; ++i) {
        sj_retention_rule rule;
        int64_t removed;
        status = sj_retention_rule_read(request->words[i], &rule, &error);
        if (status == SJ_OK) {
            status = sj_retention_apply(request->database, &rule, report_removal, request, &removed,
                                        &error);
        }
    }
    return status == SJ_OK ? request->move_failure : sj_command_failed(&sj_command_session, &error);
}

static const session_verb verbs[] = {
    {"pin", 1, 1, true, run_pin},        {"unpin", 1, 1, true, run_unpin},
    {"name", 2, 2, true, run_name},      {"tag", 2, 32, true, run_tag},
    {"untag", 2, 2, true, run_untag},    {"note", 2, 2, true, run_note},
    {"remove", 1, 1, true, run_remove},  {"export", 2, 2, true, run_export},
    {"import", 1, 1, false, run_import}, {"retain", 1, 32, false, run_retain},
    {"move", 2, 2, true, run_move},      {"return", 1, 1, true, run_return},
};

/* Adds a record of `import`, `remove` or `retain` to the audit log. Ignores other verbs, and dry
 * runs. */
static void audit(const session_request *request, const session_verb *verb, int exit_code)
{
    char object[AUDITED_BYTES];
    const bool is_import = verb->run == run_import;
    if ((!is_import && verb->run != run_remove && verb->run != run_retain) || request->dry_run) {
        return;
    }
    size_t size = (size_t)snprintf(object, sizeof(object), "%s", verb->name);
    for (int i = 0; i < request->count && size < sizeof(object); i++) {
        size += (size_t)snprintf(object + size, sizeof(object) - size, " %s", request->words[i]);
    }
    sj_audit_add_local(request->database, is_import ? "import" : "sessions", object,
                       exit_code == SJ_EXIT_OK ? "done" : "failed");
}

static int run_verb(session_request *request, const session_verb *verb)
{
    sj_error error = {0};
    sqlite3 *reader = NULL;
    char path[PATH_MAX];
    sj_status status = sj_database_choose(request->file, &reader, &error);
    if (status == SJ_OK) {
        status = sj_database_path(request->file, path, &error);
    }
    if (status == SJ_OK) {
        status = verb->of_session
                     ? sj_session_choose(reader, request->words[0], &request->session_id, &error)
                     : SJ_OK;
        sqlite3_close(reader);
    } else if (strcmp(verb->name, "import") == 0 && request->file != NULL) {
        snprintf(path, sizeof(path), "%s", request->file); /* created below */
        status = SJ_OK;
    }
    if (status == SJ_OK) {
        status = sj_database_open(path, verb->of_session ? SJ_DATABASE_WRITE : SJ_DATABASE_CREATE,
                                  &request->database, &error);
    }
    if (status == SJ_OK && sj_query_register(request->database, NULL, &error) != SJ_OK) {
        status = error.status;
        sqlite3_close(request->database);
    }
    if (status != SJ_OK) {
        return sj_command_failed(&sj_command_session, &error);
    }
    request->done = request->as_json ? json_array() : NULL;
    const int exit_code = verb->run(request);
    audit(request, verb, exit_code);
    sqlite3_close(request->database);
    if (!request->as_json) {
        return exit_code;
    }
    if (exit_code == SJ_EXIT_OK && verb->of_session && json_array_size(request->done) == 0) {
        list_done(request, verb->name, request->session_id, NULL);
    }
    const int written = sj_json_output(&sj_command_session, request->done);
    return exit_code != SJ_EXIT_OK ? exit_code : written;
}

static sj_status parse_call(const sj_option *option, void *values, const char *text,
                            sj_error *error)
{
    (void)option;
    ((session_request *)values)->call = text;
    return text[strspn(text, "0123456789")] == '\0'
               ? SJ_OK
               : sj_fail(error, SJ_EINVAL, "--call needs a call_id, not \"%s\"", text);
}

/* Reports a missing or unknown action, with the nearest action or with a list of all. */
static int report_unknown_action(const char *name)
{
    enum { VERBS = sizeof(verbs) / sizeof(verbs[0]) };
    const char *names[VERBS];
    sqlite3_str *list = sqlite3_str_new(NULL);
    for (size_t i = 0; i < VERBS; i++) {
        names[i] = verbs[i].name;
        sqlite3_str_appendf(list, "%s%s", i == 0 ? "" : ", ", names[i]);
    }
    const char *nearest = sj_suggest(name, names, VERBS);
    char *text = sqlite3_str_finish(list);
    const char *all = text != NULL ? text : "";
    const int code =
        nearest != NULL
            ? sj_command_usage_error(&sj_command_session, "unknown action '%s'; did you mean '%s'?",
                                     name, nearest)
        : name[0] != '\0'
            ? sj_command_usage_error(&sj_command_session, "unknown action '%s'; the actions are %s",
                                     name, all)
            : sj_command_usage_error(&sj_command_session, "name an action: %s", all);
    sqlite3_free(text);
    return code;
}

static int run_session(int argc, char **argv)
{
    session_request request = {0};
    int first = 0;
    const int code = sj_options_parse(&sj_command_session, argc, argv, &request, &first);
    if (code >= 0) {
        return code;
    }
    sj_work_progress_start();
    const char *name = first < argc ? argv[first] : "";
    request.words = argv + first + 1;
    request.count = argc - first - 1;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); ++i) {
        if (strcmp(verbs[i].name, name) != 0) {
            continue;
        }
        if (request.count < verbs[i].least || request.count > verbs[i].most) {
            return sj_command_usage_error(&sj_command_session, "%s: wrong number of words", name);
        }
        return run_verb(&request, &verbs[i]);
    }
    return report_unknown_action(name);
}

static const sj_option session_options[] = {
    SJ_DATABASE_OPTION(offsetof(session_request, file)),
    {.name = "force",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(session_request, force),
     .help = "remove a session that is still recording"},
    {.name = "dry-run",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(session_request, dry_run),
     .help = "retain: only print what would be removed"},
    {.name = "move-to",
     .argument = "FOLDER",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(session_request, move_to),
     .help = "retain: move blocks there instead of removing sessions"},
    {.name = "at",
     .argument = "FROM..TO",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(session_request, at),
     .help = "note: this time, ns since the session's start"},
    {.name = "call",
     .argument = "ID",
     .kind = SJ_ARG_PARSED,
     .parse = parse_call,
     .help = "note: this call"},
    {.name = "author",
     .argument = "NAME",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(session_request, author),
     .help = "note: by whom (default $USER)"},
    {.name = "json",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(session_request, as_json),
     .help = "write what was done as JSON"},
    {0}};

const sj_command sj_command_session = {
    .name = "session",
    .summary = "pin, tag, note, remove, export or import sessions",
    .usage = "sojourn session [OPTIONS] ACTION [SESSION] [WORDS]",
    .help =
        "Actions:\n"
        "  pin SESSION, unpin SESSION     retention keeps pinned sessions\n"
        "  name SESSION TEXT              set its label\n"
        "  tag SESSION KEY=VALUE...       set tags; untag SESSION KEY removes one\n"
        "  note SESSION TEXT              add a note to it, or to a time or call in it\n"
        "  remove SESSION                 remove it, and give its space back to the file system\n"
        "  export SESSION FILE            write it to a new database\n"
        "  import FILE                    copy all sessions of another database into this one\n"
        "  retain SET=LIMIT...            remove what is older (all=30d) or too much "
        "(tag:nightly=50G)\n"
        "  move SESSION FOLDER            move its blocks into files there; queries work as "
        "before\n"
        "  return SESSION                 move its blocks back into the database\n",
    .options = session_options,
    .examples = "Examples:\n"
                "  sojourn session tag last build=42 branch=main\n"
                "  sojourn session export 7 crash.db --database lab.db\n"
                "  sojourn session retain all=90d tag:nightly=7d --database lab.db\n",
    .run = run_session,
};
