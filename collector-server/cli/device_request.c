#include "collector-server/cli/device_request.h"

#include "agent/policy/draft.h"
#include "collector-server/cli/query_command.h"
#include "proto/base/units.h"

#include <stdlib.h>
#include <string.h>

/* The input of the functions below, and the arguments that they make of it. */
typedef struct words {
    const sj_device_options *options;
    int count; /* number of words after the command's name */
    char **word;
    json_t *arguments; /* the command's arguments, for the device */
} words;

static void put_text(const words *input, const char *key, const char *text)
{
    if (text != NULL) {
        json_object_set_new(input->arguments, key, json_string(text));
    }
}

/* Adds a shipped policy by its name, or the document of a policy file. Fails if the policy is not
 * valid; the message names the line. */
static sj_status put_policy(const words *input, const char *name, sj_error *error)
{
    sj_policy_draft *draft = NULL;
    SJ_TRY(sj_policy_draft_new(&draft, error));
    const sj_status status = sj_policy_draft_load(draft, name, error);
    sj_policy_draft_free(draft);
    SJ_TRY(status);
    if (sj_policy_preset(name) != NULL) {
        put_text(input, "policy", name);
        return SJ_OK;
    }
    json_t *document = json_load_file(name, JSON_REJECT_DUPLICATES, NULL);
    return document != NULL && json_object_set_new(input->arguments, "policy", document) == 0
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "cannot read %s", name);
}

static sj_status put_recording(const words *input, sj_error *error)
{
    put_text(input, "name", input->options->name);
    return input->options->policy != NULL ? put_policy(input, input->options->policy, error)
                                          : SJ_OK;
}

static sj_status read_pid(const words *input, sj_error *error)
{
    char *end = NULL;
    const long pid = input->count == 1 ? strtol(input->word[0], &end, 10) : 0;
    if (pid <= 0 || pid > INT32_MAX || *end != '\0') {
        return sj_fail(error, SJ_EINVAL, "name one process by its number");
    }
    json_object_set_new(input->arguments, "pid", json_integer((json_int_t)pid));
    return SJ_OK;
}

static sj_status read_nothing(const words *input, sj_error *error)
{
    return input->count == 0 ? SJ_OK : sj_fail(error, SJ_EINVAL, "it takes no arguments");
}

static sj_status read_launch(const words *input, sj_error *error)
{
    if (input->count == 0) {
        return sj_fail(error, SJ_EINVAL,
                       "name an app of the device's catalogue, or a program by "
                       "its path");
    }
    if (input->count == 1 && strchr(input->word[0], '/') == NULL) {
        put_text(input, "app", input->word[0]);
    } else {
        json_t *command = json_array();
        for (int i = 0; i < input->count; i++) {
            json_array_append_new(command, json_string(input->word[i]));
        }
        json_object_set_new(input->arguments, "command", command);
    }
    return put_recording(input, error);
}

static sj_status read_record(const words *input, sj_error *error)
{
    put_text(input, "format", input->options->format);
    put_text(input, "to", input->options->directory);
    return read_launch(input, error);
}

/* Reads the request `prepare`. It has the words of `launch`, without the options for recording. */
static sj_status read_prepare(const words *input, sj_error *error)
{
    static const sj_device_options none;
    const words plain = {.options = &none,
                         .count = input->count,
                         .word = input->word,
                         .arguments = input->arguments};
    return read_launch(&plain, error);
}

static sj_status read_attach(const words *input, sj_error *error)
{
    SJ_TRY(read_pid(input, error));
    if (input->options->for_ms != 0) {
        json_object_set_new(input->arguments, "duration_ms", json_integer(input->options->for_ms));
    }
    return put_recording(input, error);
}

static sj_status read_stop(const words *input, sj_error *error)
{
    if (input->count > 1) {
        return sj_fail(error, SJ_EINVAL, "name one session, or none for all");
    }
    put_text(input, "session", input->count == 1 ? input->word[0] : input->options->session);
    return SJ_OK;
}

static sj_status read_mark(const words *input, sj_error *error)
{
    const bool is_end = input->count == 2 && strcmp(input->word[0], "end") == 0;
    if (input->count != 2 || (!is_end && strcmp(input->word[0], "begin") != 0)) {
        return sj_fail(error, SJ_EINVAL, "say begin or end, and a name");
    }
    json_object_set_new(input->arguments, "end", json_boolean(is_end));
    put_text(input, "mark", input->word[1]);
    put_text(input, "session", input->options->session);
    return SJ_OK;
}

static sj_status read_dump(const words *input, sj_error *error)
{
    if (input->count > 1) {
        return sj_fail(error, SJ_EINVAL, "name one trigger, or none for \"dump\"");
    }
    put_text(input, "trigger", input->count == 1 ? input->word[0] : NULL);
    put_text(input, "session", input->options->session);
    return SJ_OK;
}

static sj_status read_export(const words *input, sj_error *error)
{
    if (input->count != 1) {
        return sj_fail(error, SJ_EINVAL, "name the session by the beginning of its id, or `last`");
    }
    put_text(input, "session", input->word[0]);
    put_text(input, "format", input->options->format);
    put_text(input, "directory", input->options->directory);
    return SJ_OK;
}

static sj_status read_policy(const words *input, sj_error *error)
{
    if (input->count != 1) {
        return sj_fail(error, SJ_EINVAL, "name a policy file, a shipped policy, or `none`");
    }
    put_text(input, "app", input->options->app);
    return strcmp(input->word[0], "none") == 0 ? SJ_OK : put_policy(input, input->word[0], error);
}

static sj_status read_tags(const words *input, sj_error *error)
{
    json_t *tags = json_object();
    json_object_set_new(input->arguments, "tags", tags);
    for (int i = 0; i < input->count; i++) {
        char *equals = strchr(input->word[i], '=');
        if (equals == NULL) {
            return sj_fail(error, SJ_EINVAL, "\"%.100s\": write KEY=VALUE, or KEY= to take it away",
                           input->word[i]);
        }
        *equals = '\0';
        json_object_set_new(tags, input->word[i],
                            equals[1] != '\0' ? json_string(equals + 1) : json_null());
    }
    return input->count != 0 ? SJ_OK : sj_fail(error, SJ_EINVAL, "write KEY=VALUE");
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
    const char *word; /* as the user types it */
    const char *kind; /* as sent to the device; NULL: the same as `word` */
    sj_status (*parse)(const words *input, sj_error *error);
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
    sj_status (*parse)(const words *input, sj_error *error) = read_nothing;
    words input = {
        .options = options, .count = argc - 1, .word = argv + 1, .arguments = json_object()};
    sj_error problem = {0};
    *kind = argv[0];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].word, argv[0]) == 0) {
            parse = kinds[i].parse;
            *kind = kinds[i].kind != NULL ? kinds[i].kind : kinds[i].word;
        }
    }
    const sj_status status = parse(&input, &problem);
    if (status != SJ_OK) {
        json_decref(input.arguments);
        return sj_fail(error, status, "%s: %s", argv[0], problem.text);
    }
    *arguments = input.arguments;
    return SJ_OK;
}
