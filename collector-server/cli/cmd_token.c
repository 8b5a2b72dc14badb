#include "collector-server/cli/commands.h"
#include "collector-server/cli/database_choice.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/fleet/api_tokens.h"
#include "collector-server/fleet/audit.h"
#include "collector-server/store/database.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NS_PER_MS = 1000000, OBJECT_BYTES = 160 };

typedef struct token_options {
    sj_query_options query;
    const char *role;
    int64_t expires_ms; /* 0: never */
} token_options;

static int fail_with(const sj_error *error, sj_status status)
{
    return status == SJ_EINVAL ? sj_command_usage_error(&sj_command_token, "%s", error->text)
                               : sj_command_failed(&sj_command_token, error);
}

/* Prints only the token on standard output, so that a script can read it. */
static int add_token(sqlite3 *database, const token_options *options, const char *name)
{
    char text[SJ_SECRET_TEXT_BYTES];
    char object[OBJECT_BYTES];
    sj_error error = {0};
    sj_role role;
    if (options->role == NULL || !sj_role_parse(options->role, &role)) {
        return sj_command_usage_error(&sj_command_token,
                                      "add needs --role reader, analyst, operator or admin");
    }
    const sj_status status =
        sj_api_token_add(database, name, role, options->expires_ms * NS_PER_MS, text, &error);
    snprintf(object, sizeof(object), "add %.63s --role %s", name, sj_role_name(role));
    sj_audit_add_local(database, "token", object, status == SJ_OK ? "done" : error.text);
    if (status != SJ_OK) {
        return fail_with(&error, status);
    }
    puts(text);
    fprintf(stderr, "sojourn token: this is the only copy of the token \"%s\"; its role is %s\n",
            name, sj_role_name(role));
    return SJ_EXIT_OK;
}

static int revoke_token(sqlite3 *database, const char *name)
{
    char object[OBJECT_BYTES];
    sj_error error = {0};
    const sj_status status = sj_api_token_revoke(database, name, &error);
    snprintf(object, sizeof(object), "revoke %.100s", name);
    sj_audit_add_local(database, "token", object, status == SJ_OK ? "done" : error.text);
    if (status != SJ_OK) {
        return sj_command_failed(&sj_command_token, &error);
    }
    printf("the token \"%s\" is revoked\n", name);
    return SJ_EXIT_OK;
}

#define STATE                                                                                      \
    "iif(revoked_realtime_ns IS NOT NULL, 'revoked',"                                              \
    " iif(expires_realtime_ns <= unixepoch() * 1000000000, 'expired', 'valid')) AS state"

static int list_tokens(sqlite3 *database, const token_options *options)
{
    static const char data[] =
        "SELECT name, role, " STATE ", created_realtime_ns, expires_realtime_ns,"
        " revoked_realtime_ns FROM api_tokens ORDER BY name";
    static const char table[] =
        "SELECT name, role, " STATE ", datetime(created_realtime_ns / 1000000000, 'unixepoch') AS"
        " created, coalesce(datetime(expires_realtime_ns / 1000000000, 'unixepoch'), 'never')"
        " AS expires FROM api_tokens ORDER BY name";
    sqlite3_stmt *statement = NULL;
    const char *sql = sj_query_wants_data(&options->query) ? data : table;
    return sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK
               ? sj_query_print(&sj_command_token, &options->query, statement)
               : sj_command_error(&sj_command_token, SJ_EXIT_FAILED, "%s",
                                  sqlite3_errmsg(database));
}

static int run_action(sqlite3 *database, const token_options *options, int count, char **words)
{
    if (strcmp(words[0], "add") == 0 && count == 2) {
        return add_token(database, options, words[1]);
    }
    if (strcmp(words[0], "revoke") == 0 && count == 2) {
        return revoke_token(database, words[1]);
    }
    if (strcmp(words[0], "list") == 0 && count == 1) {
        return list_tokens(database, options);
    }
    return sj_command_usage_error(&sj_command_token, "say add NAME, list or revoke NAME");
}

static int run_token(int argc, char **argv)
{
    token_options options = {.role = NULL};
    sqlite3 *database = NULL;
    sj_error error = {0};
    int first = 0;
    const int code = sj_options_parse(&sj_command_token, argc, argv, &options, &first);
    if (code >= 0) {
        return code;
    }
    if (first == argc) {
        return sj_command_usage_error(&sj_command_token, "say add NAME, list or revoke NAME");
    }
    const char *usual = getenv(SJ_ENV_DATABASE);
    const char *file = options.query.file != NULL          ? options.query.file
                       : usual != NULL && usual[0] != '\0' ? usual
                                                           : "lab.db";
    if (sj_database_open(file, SJ_DATABASE_WRITE, &database, &error) != SJ_OK) {
        return sj_command_failed(&sj_command_token, &error);
    }
    const int exit_code = run_action(database, &options, argc - first, argv + first);
    sqlite3_close(database);
    return exit_code;
}

static const sj_option token_table[] = {
    {.name = "database",
     .letter = 'd',
     .argument = "FILE",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(token_options, query.file),
     .help = "the collector's database (default $SOJOURN_DATABASE, else lab.db)"},
    {.name = "role",
     .argument = "ROLE",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(token_options, role),
     .help = "add: reader, analyst, operator or admin"},
    {.name = "expires",
     .argument = "TIME",
     .kind = SJ_ARG_TIME,
     .offset = offsetof(token_options, expires_ms),
     .least = 1000,
     .help = "add: the token expires after this time, as 30d (default: never)"},
    SJ_QUERY_FORMAT_OPTIONS(offsetof(token_options, query)),
    {0}};

const sj_command sj_command_token = {
    .name = "token",
    .summary = "make, list and revoke tokens for a collector's dashboard and HTTP API",
    .usage = "sojourn token add NAME --role ROLE [OPTIONS]\n       sojourn token [OPTIONS] list | "
             "revoke NAME",
    .help = "A token has a name, a role and perhaps an expiry time. The database keeps only its\n"
            "SHA-256. Each role may do what those before it may do:\n"
            "  reader    read sessions, devices and shipped queries\n"
            "  analyst   run their own SQL, which reads all tables\n"
            "  operator  send commands, set policies; pin, tag and note sessions and findings\n"
            "  admin     import and remove sessions\n"
            "The token in DATABASE.token has the role admin. Revoking works at once.\n"
            "`sojourn audit` lists who made and revoked tokens.\n",
    .options = token_table,
    .examples = "Examples:\n"
                "  sojourn token add anna --role reader --expires 30d\n"
                "  sojourn token --database lab.db list\n"
                "  sojourn token revoke anna\n",
    .run = run_token,
};
