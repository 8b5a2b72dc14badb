#include "agent/direct/options.h"

#include "agent/abi/link.h"
#include "agent/policy/draft.h"
#include "agent/uplink/sp_address.h"
#include "proto/base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SPOOL_BYTES (UINT64_C(256) << 20)

/* Checks that the environment names the directories for files. Without it, libc would query the
 * system's user database, which may load libraries into the program. */
static sj_status check_places(sj_error *error)
{
    const char *home = getenv("HOME");
    const char *state = getenv("XDG_STATE_HOME");
    const char *cache = getenv("XDG_CACHE_HOME");
    if ((home == NULL || home[0] != '/') &&
        (state == NULL || state[0] != '/' || cache == NULL || cache[0] != '/')) {
        return sj_fail(error, SJ_EINVAL,
                       "neither HOME nor XDG_STATE_HOME and XDG_CACHE_HOME name a directory: set "
                       "them for the program");
    }
    return SJ_OK;
}

const char *sj_direct_folder(const sj_direct_settings *settings)
{
    static const char prefix[] = "file://";
    const bool is_file = strncmp(settings->url, prefix, sizeof(prefix) - 1) == 0;
    return is_file ? settings->url + sizeof(prefix) - 1 : NULL;
}

/* Makes the recording stay in `folder`, and names the database there as its destination. Refuses a
 * relative path, or a separate spool directory. */
static sj_status check_folder(const sj_direct_settings *settings, const char *folder,
                              sj_recording_options *options, sj_error *error)
{
    static char destination[SJ_DIRECT_TEXT_BYTES];
    if (folder[0] != '/') {
        return sj_fail(error, SJ_EINVAL,
                       "SOJOURN_DIRECT=%.200s needs the absolute path of a folder: file:///PATH",
                       settings->url);
    }
    if (settings->spool[0] != '\0') {
        return sj_fail(error, SJ_EINVAL,
                       "SOJOURN_DIRECT=%.200s is the folder that everything is kept in: leave "
                       "SOJOURN_DIRECT_SPOOL away",
                       settings->url);
    }
    snprintf(destination, sizeof(destination), "file %s/sessions.db", folder);
    options->spool_root = folder;
    options->destination = destination;
    return SJ_OK;
}

static sj_status check_url(const char *url, sj_error *error)
{
    sj_sp_address address;
    sj_error why = {0};
    if (sj_sp_address_read(url, &address, &why) != SJ_OK) {
        return sj_fail(error, SJ_EINVAL, "SOJOURN_DIRECT=%s", why.text);
    }
    if (address.is_ipc && url[strlen("ipc://")] != '/') {
        return sj_fail(error, SJ_EINVAL,
                       "SOJOURN_DIRECT=%.200s: the socket needs an absolute path, because the "
                       "program may change its directory",
                       url);
    }
    return SJ_OK;
}

static sj_status read_children(const char *text, uint32_t *children, sj_error *error)
{
    if (text[0] == '\0' || strcmp(text, "all") == 0) {
        *children = SJ_FOLLOW_FORK | SJ_FOLLOW_EXEC;
    } else if (strcmp(text, "forked") == 0) {
        *children = SJ_FOLLOW_FORK;
    } else if (strcmp(text, "none") == 0) {
        *children = SJ_FOLLOW_NONE;
    } else {
        return sj_fail(error, SJ_EINVAL,
                       "SOJOURN_DIRECT_CHILDREN is \"all\", \"forked\" or \"none\", not \"%.100s\"",
                       text);
    }
    return SJ_OK;
}

static sj_status read_bytes(const char *text, uint64_t *bytes, sj_error *error)
{
    if (text[0] == '\0') {
        *bytes = DEFAULT_SPOOL_BYTES;
        return SJ_OK;
    }
    if (!sj_size_parse(text, bytes) || *bytes == 0) {
        return sj_fail(error, SJ_EINVAL,
                       "SOJOURN_DIRECT_SPOOL_BYTES needs a size such as 256M or 1G, not \"%s\"",
                       text);
    }
    return SJ_OK;
}

/* Refuses what needs a recorder outside the process: one that stops threads, or one that loads
 * libdw. */
static sj_status check_policy(const sj_policy *policy, sj_error *error)
{
    const char *what = NULL;
    if (policy->budget_percent > 0) {
        what = "\"budget\"";
    } else if (sj_selection_has_sources(&policy->selection)) {
        what = "\"sources\"";
    } else if (sj_value_rules_ask_types(policy->selection.values)) {
        what = "a rule about values that has no types";
    }
    for (size_t i = 0; i < policy->trigger_count; i++) {
        what =
            (policy->triggers[i].actions & SJ_ACTION_STACKS) != 0 ? "the action \"stacks\"" : what;
    }
    return what == NULL
               ? SJ_OK
               : sj_fail(error, SJ_EUNSUPPORTED,
                         "SOJOURN_DIRECT_POLICY: %s needs a recorder outside of the program: take "
                         "it out of the policy, or use sojourn-device or `sojourn record`",
                         what);
}

static sj_status read_policy(const char *name, sj_policy *policy, sj_error *error)
{
    sj_policy_draft *draft = NULL;
    SJ_TRY(sj_policy_draft_new(&draft, error));
    sj_status status = name[0] != '\0' ? sj_policy_draft_load(draft, name, error) : SJ_OK;
    if (status == SJ_OK) {
        status = sj_policy_draft_finish(draft, policy, error);
    }
    sj_policy_draft_free(draft);
    if (status == SJ_OK && (status = check_policy(policy, error)) != SJ_OK) {
        sj_policy_free(policy);
    }
    return status;
}

sj_status sj_direct_options(const sj_direct_settings *settings, char **arguments, sj_policy *policy,
                            sj_recording_options *options, sj_error *error)
{
    *options =
        (sj_recording_options){.arguments = arguments,
                               .name = settings->name[0] != '\0' ? settings->name : NULL,
                               .spool_root = settings->spool[0] != '\0' ? settings->spool : NULL,
                               .destination = settings->url,
                               .policy = policy};
    if (settings->is_too_long) {
        return sj_fail(error, SJ_ELIMIT, "the SOJOURN_DIRECT variables are longer than %d bytes",
                       SJ_DIRECT_TEXT_BYTES);
    }
    const char *folder = sj_direct_folder(settings);
    SJ_TRY(folder != NULL ? check_folder(settings, folder, options, error)
                          : check_url(settings->url, error));
    SJ_TRY(check_places(error));
    SJ_TRY(read_children(settings->children, &options->children, error));
    SJ_TRY(read_bytes(settings->spool_bytes, &options->spool_bytes, error));
    if (options->spool_root != NULL && options->spool_root[0] != '/') {
        return sj_fail(error, SJ_EINVAL, "SOJOURN_DIRECT_SPOOL=%.200s needs an absolute path",
                       options->spool_root);
    }
    SJ_TRY(read_policy(settings->policy, policy, error));
    options->selection = policy->selection;
    options->chunks_per_thread = policy->chunks_per_thread;
    options->full_policy = policy->drop_when_full ? SJ_FULL_DROP_NEW : SJ_FULL_WAIT;
    options->block_ms = policy->block_ms;
    return SJ_OK;
}
