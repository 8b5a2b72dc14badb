#include "collector-server/cli/device_request.h"

#include "agent/policy/draft.h"
#include "collector-server/cli/query_command.h"
#include "proto/base/units.h"

#include <stdlib.h>
#include <string.h>

/* The words after the device's name, and the arguments made from them. */
typedef struct words {
    const sj_device_options *options;
    int count;
    char **word;
    json_t *arguments;
} words;

static void put_text(const words *read, const char *key, const char *text)
{
    if (text != NULL) {
        json_object_set_new(read->arguments, key, json_string(text));
    }
}

/* Adds a policy: a shipped policy by name, or a file. Mistakes in the file are reported with their
 * line. */
static sj_status put_policy(const words *read, const char *name, sj_error *error)
{
    sj_policy_draft *draft = NULL;
    SJ_TRY(sj_policy_draft_new(&draft, error));
    const sj_status status = sj_policy_draft_load(draft, name, error);
    sj_policy_draft_free(draft);
    SJ_TRY(status);
    if (sj_policy_preset(name) != NULL) {
        put_text(read, "policy", name);
        return SJ_OK;
    }
    json_t *document = json_load_file(name, JSON_REJECT_DUPLICATES, NULL);
    return document != NULL && json_object_set_new(read->arguments, "policy", document) == 0
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "cannot read %s", name);
}

static sj_status put_recording(const words *read, sj_error *error)
{
    put_text(read, "name", read->options->name);
    return read->options->policy != NULL ? put_policy(read, read->options->policy, error) : SJ_OK;
}

static sj_status read_pid(const words *read, sj_error *error)
{
    char *end = NULL;
    const long pid = read->count == 1 ? strtol(read->word[0], &end, 10) : 0;
    if (pid <= 0 || pid > INT32_MAX || *end != '\0') {
        return sj_fail(error, SJ_EINVAL, "name one process by its number");
    }
    json_object_set_new(read->arguments, "pid", json_integer((json_int_t)pid));
    return SJ_OK;
}

static sj_status read_nothing(const words *read, sj_error *error)
{
    return read->count == 0 ? SJ_OK : sj_fail(error, SJ_EINVAL, "it takes no arguments");
}

static sj_status read_launch(const words *read, sj_error *error)
{
    if (read->count == 0) {
        return sj_fail(error, SJ_EINVAL,
                       "name an app of the device's catalogue, or a program by "
                       "its path");
    }
    if (read->count == 1 && strchr(read->word[0], '/') == NULL) {
        put_text(read, "app", read->word[0]);
    } else {
        json_t *command = json_array();
        for (int i = 0; i < read->count; i++) {
            json_array_append_new(command, json_string(read->word[i]));
        }
        json_object_set_new(read->arguments, "command", command);
    }
    return put_recording(read, error);
}

static sj_status read_record(const words *read, sj_error *error)
{
    put_text(read, "format", read->options->format);
    put_text(read, "to", read->options->directory);
    return read_launch(read, error);
}

/* Reads the words of `prepare`. A preparation has no options for recording. */
static sj_status read_prepare(const words *read, sj_error *error)
{
    static const sj_device_options none;
    const words plain = {
        .options = &none, .count = read->count, .word = read->word, .arguments = read->arguments};
    return read_launch(&plain, error);
}

static sj_status read_attach(const words *read, sj_error *error)
{
    SJ_TRY(read_pid(read, error));
    if (read->options->for_ms != 0) {
        json_object_set_new(read->arguments, "duration_ms", json_integer(read->options->for_ms));
    }
    return put_recording(read, error);
}

static sj_status read_stop(const words *read, sj_error *error)
{
    if (read->count > 1) {
        return sj_fail(error, SJ_EINVAL, "name one session, or none for all");
    }
    put_text(read, "session", read->count == 1 ? read->word[0] : read->options->session);
    return SJ_OK;
}

static sj_status read_mark(const words *read, sj_error *error)
{
    const bool is_end = read->count == 2 && strcmp(read->word[0], "end") == 0;
    if (read->count != 2 || (!is_end && strcmp(read->word[0], "begin") != 0)) {
        return sj_fail(error, SJ_EINVAL, "say begin or end, and a name");
    }
    json_object_set_new(read->arguments, "end", json_boolean(is_end));
    put_text(read, "mark", read->word[1]);
    put_text(read, "session", read->options->session);
    return SJ_OK;
}

static sj_status read_dump(const words *read, sj_error *error)
{
    if (read->count > 1) {
        return sj_fail(error, SJ_EINVAL, "name one trigger, or none for \"dump\"");
    }
    put_text(read, "trigger", read->count == 1 ? read->word[0] : NULL);
    put_text(read, "session", read->options->session);
    return SJ_OK;
}

static sj_status read_export(const words *read, sj_error *error)
{
    if (read->count != 1) {
        return sj_fail(error, SJ_EINVAL, "name the session by the beginning of its id, or `last`");
    }
    put_text(read, "session", read->word[0]);
    put_text(read, "format", read->options->format);
    put_text(read, "directory", read->options->directory);
    return SJ_OK;
}

static sj_status read_policy(const words *read, sj_error *error)
{
    if (read->count != 1) {
        return sj_fail(error, SJ_EINVAL, "name a policy file, a shipped policy, or `none`");
    }
    put_text(read, "app", read->options->app);
    return strcmp(read->word[0], "none") == 0 ? SJ_OK : put_policy(read, read->word[0], error);
}

static sj_status read_tags(const words *read, sj_error *error)
{
    json_t *tags = json_object();
    json_object_set_new(read->arguments, "tags", tags);
    for (int i = 0; i < read->count; i++) {
        char *equals = strchr(read->word[i], '=');
        if (equals == NULL) {
            return sj_fail(error, SJ_EINVAL, "\"%.100s\": write KEY=VALUE, or KEY= to take it away",
                           read->word[i]);
        }
        *equals = '\0';
        json_object_set_new(tags, read->word[i],
                            equals[1] != '\0' ? json_string(equals + 1) : json_null());
    }
    return read->count != 0 ? SJ_OK : sj_fail(error, SJ_EINVAL, "write KEY=VALUE");
}

/* Reads `bytes=SIZE`, `sessions=N`, `none` or `default`. */
static sj_status read_quota(const words *read, sj_error *error)
{
    const char *first = read->count == 1 ? read->word[0] : "";
    if (strcmp(first, "none") == 0) {
        json_object_set_new(read->arguments, "unlimited", json_true());
        return SJ_OK;
    }
    for (int i = 0; i < read->count && strcmp(first, "default") != 0; i++) {
        const char *equals = strchr(read->word[i], '=');
        const bool is_bytes = strncmp(read->word[i], "bytes=", 6) == 0;
        const bool is_sessions = strncmp(read->word[i], "sessions=", 9) == 0;
        uint64_t limit = 0;
        if (equals == NULL || !(is_bytes || is_sessions) || !sj_size_parse(equals + 1, &limit) ||
            limit == 0) {
            return sj_fail(
                error, SJ_EINVAL,
                "\"%.100s\": write bytes=SIZE, as 2G, or sessions=N, or both; or `none`, "
                "or `default`",
                read->word[i]);
        }
        json_object_set_new(read->arguments, is_bytes ? "bytes" : "sessions",
                            json_integer((json_int_t)limit));
    }
    return read->count != 0
               ? SJ_OK
               : sj_fail(error, SJ_EINVAL, "write bytes=SIZE, sessions=N, `none` or `default`");
}

typedef struct request_kind {
    const char *word;
    const char *kind; /* NULL: the same as `word` */
    sj_status (*read)(const words *read, sj_error *error);
} request_kind;

static const request_kind kinds[] = {
    {"launch", NULL, read_launch},   {"attach", NULL, read_attach}, {"detach", NULL, read_pid},
    {"shrink", NULL, read_pid},      {"stop", NULL, read_stop},     {"mark", NULL, read_mark},
    {"dump", NULL, read_dump},       {"export", NULL, read_export}, {"record", NULL, read_record},
    {"prepare", NULL, read_prepare}, {"policy", NULL, read_policy}, {"tag", "tags", read_tags},
    {"quota", NULL, read_quota},
};

sj_status sj_device_request(const sj_device_options *options, int argc, char **argv,
                            const char **kind, json_t **arguments, sj_error *error)
{
    sj_status (*read)(const words *read, sj_error *error) = read_nothing;
    words all = {
        .options = options, .count = argc - 1, .word = argv + 1, .arguments = json_object()};
    sj_error problem = {0};
    *kind = argv[0];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].word, argv[0]) == 0) {
            read = kinds[i].read;
            *kind = kinds[i].kind != NULL ? kinds[i].kind : kinds[i].word;
        }
    }
    const sj_status status = read(&all, &problem);
    if (status != SJ_OK) {
        json_decref(all.arguments);
        return sj_fail(error, status, "%s: %s", argv[0], problem.text);
    }
    *arguments = all.arguments;
    return SJ_OK;
}
