#include "collector-server/cli/spool_discard.h"

#include "agent/recording/recovery.h"
#include "agent/uplink/spool.h"
#include "agent/uplink/spool_aside.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DESCRIPTORS = 8 };

static sj_status find_session(const char *root, const char *id, sj_discarded *found,
                              sj_error *error)
{
    unsigned matches = 0;
    DIR *directory = opendir(root);
    if (directory == NULL) {
        return sj_fail(error, SJ_ENOTFOUND, "%s: %s", root, strerror(errno));
    }
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        if (sj_recovery_is_claim_name(entry->d_name) &&
            strncmp(entry->d_name, id, strlen(id)) == 0) {
            snprintf(found->session, sizeof(found->session), "%.*s",
                     (int)sizeof(found->session) - 1, entry->d_name);
            ++matches;
        }
    }
    closedir(directory);
    if (matches == 0) {
        return sj_fail(error, SJ_ENOTFOUND, "no session in %s has an id that begins with %s", root,
                       id);
    }
    return matches == 1 ? SJ_OK
                        : sj_fail(error, SJ_EINVAL,
                                  "%u sessions in %s have ids that begin with %s; give more digits",
                                  matches, root, id);
}

static sj_status count_frames(const char *directory, sj_discarded *discarded, sj_error *error)
{
    const sj_spool_options options = {.directory = directory};
    sj_spool_counters counters;
    sj_spool_aside aside;
    sj_spool *spool = NULL;
    SJ_TRY(sj_spool_open(&options, &spool, error));
    sj_spool_get_counters(spool, &counters);
    sj_spool_close(spool);
    discarded->frames = counters.pending_frames;
    discarded->bytes = counters.pending_bytes;
    if (sj_spool_aside_read(directory, &aside)) {
        discarded->refused = aside.refused_frames + aside.damaged_frames;
    }
    return SJ_OK;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    return remove(path);
}

/* Finishes the session of a killed recorder first, so that its shared memory is freed. */
static sj_status discard_claimed(const sj_recovery_claim *claim, sj_discarded *discarded,
                                 sj_error *error)
{
    sj_recovery_result recovered;
    SJ_TRY(sj_recovery_session(claim, &recovered, error));
    if (access(claim->spool_directory, F_OK) != 0) {
        return SJ_OK; /* the recorder died before it had frames to send */
    }
    SJ_TRY(count_frames(claim->spool_directory, discarded, error));
    return nftw(claim->spool_directory, remove_entry, DESCRIPTORS, FTW_DEPTH | FTW_PHYS) == 0
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "cannot remove %s: %s", claim->spool_directory,
                         strerror(errno));
}

sj_status sj_discard_spool(const char *root, const char *id, sj_discarded *discarded,
                           sj_error *error)
{
    char path[PATH_MAX];
    sj_recovery_claim claim;
    *discarded = (sj_discarded){0};
    SJ_TRY(find_session(root, id, discarded, error));
    snprintf(path, sizeof(path), "%.3900s/%s.to", root, discarded->session);
    const sj_status claimed = sj_recovery_claim_session(path, &claim);
    if (claimed != SJ_OK) {
        return sj_fail(error, claimed, "session %s is being recorded or delivered; end that first",
                       discarded->session);
    }
    const sj_status status = discard_claimed(&claim, discarded, error);
    sj_recovery_release(&claim, status == SJ_OK);
    return status;
}
