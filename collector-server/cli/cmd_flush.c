#include "agent/daemon/enrolment.h"
#include "agent/host/device.h"
#include "agent/host/directories.h"
#include "agent/recording/recovery.h"
#include "agent/uplink/nng_channel.h"
#include "agent/uplink/spool_secret.h"
#include "agent/uplink/uplink.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/embedded.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { DEFAULT_WAIT_MS = 10000, FILE_WAIT_MS = 60000, NOT_GIVEN = -1 };

typedef struct flush_totals {
    unsigned delivered;
    unsigned in_use;
    unsigned kept;
    unsigned salvaged;
} flush_totals;

/* drain_moving waits as long as frames are taken, and `wait_ms` for the next one: a database may be
 * locked or its disk full for ever. */
static sj_status drain_moving(sj_uplink *uplink, int64_t wait_ms)
{
    sj_uplink_status before = {0};
    for (;;) {
        sj_uplink_status now;
        const sj_status status = sj_uplink_drain(uplink, wait_ms);
        sj_uplink_get_status(uplink, &now);
        if (status != SJ_ETIMEDOUT || now.acknowledged_frames == before.acknowledged_frames) {
            return status;
        }
        before = now;
    }
}

/* send_spool delivers one spool and deletes it. SJ_ETIMEDOUT, SJ_EPERM: it is kept. */
static sj_status send_spool(const char *directory, const char *url, bool is_file, int64_t wait_ms,
                            sj_error *error)
{
    const sj_spool_options options = {.directory = directory};
    sj_device device;
    sj_spool *spool = NULL;
    sj_uplink *uplink = NULL;
    uint8_t *hello = NULL;
    size_t hello_bytes = 0;
    uint8_t secret[SJ_SPOOL_SECRET_BYTES];
    SJ_TRY(sj_enrolment_device(&device, error));
    SJ_TRY(sj_spool_open(&options, &spool, error));
    sj_status status = sj_spool_secret_read(directory, secret, error);
    if (status == SJ_OK) {
        status = sj_device_hello(&device, getenv("SOJOURN_TOKEN"),
                                 (sj_slice){.data = secret, .size = sizeof(secret)}, &hello,
                                 &hello_bytes);
    }
    if (status == SJ_OK) {
        const sj_uplink_options link = {.channel = &sj_channel_nng,
                                        .url = url,
                                        .hello = {.data = hello, .size = hello_bytes},
                                        .window = is_file ? SJ_EMBEDDED_WINDOW : 0};
        status = sj_uplink_start(spool, &link, &uplink, error);
    }
    free(hello);
    if (status == SJ_OK) {
        sj_uplink_status reported;
        status = is_file ? drain_moving(uplink, wait_ms) : sj_uplink_drain(uplink, wait_ms);
        sj_uplink_get_status(uplink, &reported);
        sj_uplink_stop(uplink);
        if (status != SJ_OK) {
            sj_fail(error, status, "%s has not taken everything: %s", url,
                    reported.message[0] != '\0' ? reported.message : "no answer");
        }
    }
    if (status == SJ_OK && sj_spool_remove(spool, error) == SJ_OK) {
        return SJ_OK;
    }
    sj_spool_close(spool);
    return status;
}

static sj_status deliver_spool(const char *directory, const char *destination, int64_t wait_ms,
                               sj_error *error)
{
    static const char file_prefix[] = "file ";
    sj_embedded *embedded = NULL;
    if (strncmp(destination, file_prefix, sizeof(file_prefix) - 1) != 0) {
        return send_spool(directory, destination, false,
                          wait_ms != NOT_GIVEN ? wait_ms : DEFAULT_WAIT_MS, error);
    }
    SJ_TRY(sj_embedded_start(destination + sizeof(file_prefix) - 1, &embedded, error));
    const sj_status status = send_spool(directory, sj_embedded_url(embedded), true,
                                        wait_ms != NOT_GIVEN ? wait_ms : FILE_WAIT_MS, error);
    sj_embedded_stop(embedded, false);
    return status;
}

/* flush_one handles the session whose destination is in `path`. */
static void flush_one(const char *path, const char *to, int64_t wait_ms, flush_totals *totals)
{
    sj_recovery_claim claim;
    sj_recovery_result salvaged;
    sj_error error = {0};
    bool delivered = false;
    const sj_status claimed = sj_recovery_claim_session(path, &claim);
    if (claimed != SJ_OK) {
        totals->in_use += claimed == SJ_EAGAIN;
        return;
    }
    sj_status status = sj_recovery_session(&claim, &salvaged, &error);
    totals->salvaged += salvaged.recovered;
    if (status == SJ_OK && claim.destination[0] == '\0' && to == NULL) {
        /* Its recorder died before it had anything to send. */
        delivered = true;
    } else if (status == SJ_OK) {
        status = deliver_spool(claim.spool_directory, to != NULL ? to : claim.destination, wait_ms,
                               &error);
        delivered = status == SJ_OK;
        totals->delivered += delivered;
    }
    if (status != SJ_OK) {
        totals->kept++;
        (void)sj_command_error(&sj_command_flush, SJ_EXIT_FAILED, "%s: %s", claim.spool_directory,
                               error.text);
    }
    sj_recovery_release(&claim, delivered);
}

static int flush_all(const char *root, const char *to, int64_t wait_ms)
{
    flush_totals totals = {0};
    DIR *directory = opendir(root);
    if (directory == NULL) {
        return sj_command_error(&sj_command_flush, SJ_EXIT_NOT_FOUND, "%s: %s", root,
                                strerror(errno));
    }
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        char path[PATH_MAX];
        if (!sj_recovery_is_claim_name(entry->d_name)) {
            continue;
        }
        const int written = snprintf(path, sizeof(path), "%s/%s", root, entry->d_name);
        if (written > 0 && (size_t)written < sizeof(path)) {
            flush_one(path, to, wait_ms, &totals);
        }
    }
    closedir(directory);
    if (totals.salvaged != 0) {
        printf("%u sessions finished whose recorder was killed\n", totals.salvaged);
    }
    printf("%u sessions delivered, %u kept, %u being recorded\n", totals.delivered, totals.kept,
           totals.in_use);
    return totals.kept == 0 ? SJ_EXIT_OK : SJ_EXIT_FAILED;
}

typedef struct flush_options {
    const char *spool;
    const char *collector;
    int64_t wait_ms;
} flush_options;

static int run_flush(int argc, char **argv)
{
    flush_options options = {.wait_ms = NOT_GIVEN};
    char usual[PATH_MAX];
    sj_error error = {0};
    int first = 0;
    const int code = sj_options_parse(&sj_command_flush, argc, argv, &options, &first);
    if (code >= 0) {
        return code;
    }
    if (first != argc) {
        return sj_command_usage_error(&sj_command_flush, "unexpected argument \"%s\"", argv[first]);
    }
    if (options.spool == NULL) {
        if (sj_state_directory("spool", usual, sizeof(usual), &error) != SJ_OK) {
            return sj_command_failed(&sj_command_flush, &error);
        }
        options.spool = usual;
    }
    return flush_all(options.spool, options.collector, options.wait_ms);
}

static const sj_option flush_table[] = {
    {.name = "spool",
     .argument = "DIR",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(flush_options, spool),
     .help = "the spool (default: that of `sojourn record`)"},
    {.name = "collector",
     .argument = "URL",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(flush_options, collector),
     .help = "deliver to this server instead"},
    {.name = "wait",
     .argument = "TIME",
     .kind = SJ_ARG_TIME,
     .offset = offsetof(flush_options, wait_ms),
     .least = 0,
     .most = 86400 * 1000,
     .help = "wait so long for each session (default 10s), or, for a\n"
             "database, for its next answer (default 1m)"},
    {0}};

const sj_command sj_command_flush = {
    .name = "flush",
    .summary = "deliver what earlier recordings could not",
    .usage = "sojourn flush [OPTIONS]",
    .help = "Sends the frames that lie in the spool to the server or database that they were\n"
            "meant for, and deletes what was taken. Recordings in progress are not touched; those\n"
            "whose recorder was killed are finished first: what its programs had recorded until\n"
            "then is read from shared memory.\n",
    .options = flush_table,
    .examples = "Examples:\n"
                "  sojourn flush\n"
                "  sojourn flush --collector tcp://collector:7654 --wait 60\n",
    .run = run_flush,
};
