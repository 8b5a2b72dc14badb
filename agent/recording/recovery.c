#include "agent/recording/recovery.h"

#include "agent/drain/drain.h"
#include "agent/drain/stored_offers.h"
#include "agent/host/clock.h"
#include "agent/host/device.h"
#include "agent/host/directories.h"
#include "agent/modes/flight_recorder.h"
#include "agent/modes/profile.h"
#include "agent/session/session_frames.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char suffix[] = ".to";

enum { SUFFIX_BYTES = sizeof(suffix) - 1 };

bool sj_recovery_is_claim_name(const char *name)
{
    return strlen(name) == SJ_SESSION_TEXT_BYTES - 1 + SUFFIX_BYTES &&
           strspn(name, "0123456789abcdef") == SJ_SESSION_TEXT_BYTES - 1 &&
           strcmp(name + SJ_SESSION_TEXT_BYTES - 1, suffix) == 0;
}

sj_status sj_recovery_claim_session(const char *path, sj_recovery_claim *claim)
{
    char text[sizeof(claim->destination) + sizeof(claim->runtime_directory)] = "";
    *claim = (sj_recovery_claim){.fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)};
    if (claim->fd < 0 || strlen(path) >= sizeof(claim->path)) {
        sj_recovery_release(claim, false);
        return SJ_ENOTFOUND;
    }
    if (flock(claim->fd, LOCK_EX | LOCK_NB) != 0) {
        sj_recovery_release(claim, false);
        return SJ_EAGAIN;
    }
    snprintf(claim->path, sizeof(claim->path), "%s", path);
    snprintf(claim->spool_directory, sizeof(claim->spool_directory), "%.*s",
             (int)(strlen(path) - SUFFIX_BYTES), path);
    if (read(claim->fd, text, sizeof(text) - 1) > 0) {
        char *line_end = strchr(text, '\n');
        if (line_end != NULL) {
            *line_end = '\0';
            snprintf(claim->runtime_directory, sizeof(claim->runtime_directory), "%.*s",
                     (int)strcspn(line_end + 1, "\n"), line_end + 1);
        }
        snprintf(claim->destination, sizeof(claim->destination), "%.4100s", text);
    }
    return SJ_OK;
}

void sj_recovery_release(sj_recovery_claim *claim, bool delivered)
{
    if (delivered) {
        unlink(claim->path);
    }
    if (claim->fd >= 0) {
        close(claim->fd);
    }
    *claim = (sj_recovery_claim){.fd = -1};
}

/* The parts of a recording that are needed to end it. */
typedef struct recovery_state {
    sj_journal journal;
    sj_spool *spool;
    sj_frame_writer *writer;
    sj_registry *registry;
    sj_drain *drain;
    sj_zombies *zombies;
    sj_device device;
    sj_selection selection;
    sj_flight_recorder *flight; /* NULL: not in flight mode */
} recovery_state;

static sj_status remember(void *context, sj_frame_type type, sj_slice header, sj_slice payload)
{
    return sj_frame_writer_remember(context, type, header, payload);
}

/* Loads the blocks of flight mode, and requests a dump that sends all of them as a child session.
 * The dump is sent at the end, because the arenas have calls that are in no block yet. */
static sj_status load_flight(recovery_state *recovery, const sj_recovery_claim *claim)
{
    sj_session_id child;
    const sj_flight_recorder_options options = {.writer = recovery->writer,
                                                .before_ticks = UINT64_MAX,
                                                .after_ticks = UINT64_MAX,
                                                .max_bytes = UINT64_MAX,
                                                .directory = claim->runtime_directory};
    const sj_status status =
        sj_metadata_store_read(claim->runtime_directory, recovery->writer, remember);
    if (status != SJ_OK) {
        return status == SJ_ENOTFOUND ? SJ_OK : status;
    }
    sj_frame_writer_keep_threads(recovery->writer, true);
    SJ_TRY(sj_flight_recorder_new(&options, &recovery->flight));
    SJ_TRY(sj_flight_recorder_load(recovery->flight, claim->runtime_directory));
    return sj_flight_recorder_dump(recovery->flight, sj_clock_ticks(), "the recorder was killed",
                                   &child);
}

/* Reports the status of reading data that the recorder kept outside of the arenas. */
static sj_status check_kept(sj_status status, const sj_recovery_claim *claim, sj_error *error)
{
    return status == SJ_OK
               ? SJ_OK
               : sj_fail(error, status, "%s: the data that the recorder held cannot be used: %s",
                         claim->runtime_directory, sj_status_text(status));
}

static sj_status open_flight(recovery_state *recovery, const sj_recovery_claim *claim,
                             sj_error *error)
{
    return recovery->journal.data->mode == SJ_POLICY_FLIGHT
               ? check_kept(load_flight(recovery, claim), claim, error)
               : SJ_OK;
}

static sj_status recover_profile(const recovery_state *recovery, const sj_recovery_claim *claim,
                                 sj_error *error)
{
    const sj_profiler_options profiler = {.writer = recovery->writer,
                                          .journal = &recovery->journal,
                                          .runtime_directory = claim->runtime_directory};
    return recovery->journal.data->mode == SJ_POLICY_PROFILE
               ? check_kept(sj_profiler_recover(&profiler), claim, error)
               : SJ_OK;
}

/* Writes the path of the arena of a process in the journal. Returns false if its name is invalid.
 */
static bool name_arena(const char *runtime_directory, const sj_journal_process *process,
                       char path[PATH_MAX])
{
    const char *name = process->arena_name;
    const size_t length = strnlen(name, sizeof(process->arena_name) - 1);
    const int written = snprintf(path, PATH_MAX, "%s/%.*s", runtime_directory, (int)length, name);
    return memchr(name, '/', length) == NULL && written > 0 && written < PATH_MAX;
}

/* Decides about the blocks and gaps that were being stored when the recorder was killed. */
static sj_status settle_offers(const recovery_state *recovery, const char *runtime_directory,
                               sj_error *error)
{
    const sj_journal_data *journal = recovery->journal.data;
    const sj_stored_offers stored = {
        .blocks = sj_frame_writer_resumed_blocks(recovery->writer),
        .gaps = sj_frame_writer_resumed_gaps(recovery->writer),
        .summed_events = atomic_load(&journal->summed_events),
        .flight_blocks =
            recovery->flight != NULL ? sj_flight_recorder_last_number(recovery->flight) : 0};
    for (uint32_t i = 0; i < journal->process_count; i++) {
        char path[PATH_MAX];
        if (name_arena(runtime_directory, &journal->processes[i], path) &&
            sj_stored_offers_settle(path, &stored) != SJ_OK) {
            return sj_fail(error, SJ_ENOMEM, "%s: out of memory", path);
        }
    }
    return SJ_OK;
}

static sj_status open_pipeline(recovery_state *recovery, const sj_recovery_claim *claim,
                               sj_error *error)
{
    const sj_spool_options spool = {.directory = claim->spool_directory};
    SJ_TRY(sj_device_read(&recovery->device, error));
    SJ_TRY(sj_spool_open(&spool, &recovery->spool, error));
    const sj_frame_writer_options writer = {.session = recovery->journal.data->session,
                                            .spool = recovery->spool,
                                            .journal = &recovery->journal,
                                            .redaction = recovery->journal.data->redaction};
    if (sj_frame_writer_new(&writer, &recovery->writer) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    sj_frame_writer_resume(recovery->writer);
    SJ_TRY(open_flight(recovery, claim, error));
    SJ_TRY(settle_offers(recovery, claim->runtime_directory, error));
    SJ_TRY(recover_profile(recovery, claim, error));
    const sj_registry_options registry = {.writer = recovery->writer,
                                          .selection = &recovery->selection,
                                          .runtime_directory = claim->runtime_directory};
    if (sj_registry_new(&registry, &recovery->registry) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_zombies_options zombies = {.runtime_directory = claim->runtime_directory,
                                        .writer = recovery->writer};
    if (sj_zombies_new(&zombies, &recovery->zombies) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_drain_options drain = {.writer = recovery->writer,
                                    .zombies = recovery->zombies,
                                    .registry = recovery->registry,
                                    .runtime_directory = claim->runtime_directory,
                                    .journal = &recovery->journal,
                                    .flight = recovery->flight,
                                    .salvage = true};
    return sj_drain_start(&drain, &recovery->drain, error);
}

/* If the recovery failed, the blocks of a flight recording stay for the next attempt. */
static void close_pipeline(recovery_state *recovery, sj_status status)
{
    sj_drain_free(recovery->drain);
    sj_zombies_free(recovery->zombies);
    if (status == SJ_OK) {
        sj_flight_recorder_free(recovery->flight);
    } else {
        sj_flight_recorder_leave(recovery->flight);
    }
    sj_registry_free(recovery->registry);
    sj_frame_writer_free(recovery->writer);
    if (recovery->spool != NULL) {
        sj_spool_close(recovery->spool);
    }
    sj_journal_close(&recovery->journal);
}

/* Adds the processes whose arena still exists. The others had ended before. */
static sj_status adopt_processes(recovery_state *recovery, const char *runtime_directory,
                                 sj_error *error)
{
    const sj_journal_data *journal = recovery->journal.data;
    const uint32_t count = journal->process_count;
    for (uint32_t i = 0; i < count; i++) {
        sj_journal_process process = journal->processes[i];
        char path[PATH_MAX];
        process.arena_name[sizeof(process.arena_name) - 1] = '\0';
        sj_status status = sj_registry_adopt_process(recovery->registry, &process);
        if (status == SJ_OK && name_arena(runtime_directory, &process, path) &&
            access(path, F_OK) == 0) {
            sj_zombies_adopt(recovery->zombies, process.number, process.arena_name);
            status = sj_drain_add(recovery->drain, process.number, (pid_t)process.pid,
                                  process.arena_name);
        }
        if (status != SJ_OK) {
            return sj_fail(error, status, "%s: the journal cannot be used: %s", runtime_directory,
                           sj_status_text(status));
        }
    }
    return SJ_OK;
}

static sj_status end_session(recovery_state *recovery, sj_recovery_result *result, sj_error *error)
{
    sj_drain_counters drain;
    sj_frame_writer_counters writer;
    sj_drain_get_counters(recovery->drain, &drain);
    sj_frame_writer_get_counters(recovery->writer, &writer);
    const uint64_t lost_calls = writer.block_lost_calls + writer.gap_calls;
    sj_session_finish finish = {.how = "lost",
                                .records = writer.block_events,
                                .calls = writer.block_calls + lost_calls,
                                .lost_calls = lost_calls,
                                .lost_events = writer.block_lost_events + writer.gap_events,
                                .blocks = writer.blocks};
    sj_clock_read_pair(recovery->journal.data->ns_per_tick, &finish.clock);
    sj_status status = drain.failure;
    if (status == SJ_OK) {
        status = sj_clock_frame_send(recovery->writer, &recovery->device, &finish.clock);
    }
    if (status == SJ_OK) {
        status = sj_session_end_frame_send(recovery->writer, &finish);
    }
    if (status == SJ_OK && sj_frame_writer_retry(recovery->writer) != 0) {
        status = SJ_EFULL;
    }
    *result = (sj_recovery_result){.recovered = true,
                                   .records = drain.records,
                                   .calls = drain.calls,
                                   .unreadable_processes = drain.processes_unreadable};
    return status == SJ_OK ? SJ_OK
                           : sj_fail(error, status, "the session cannot be finished: %s",
                                     sj_status_text(status));
}

/* Writes to `*announced` whether the session's first frame was in the spool. Without that frame the
 * spool is empty. */
static sj_status was_announced(const sj_recovery_claim *claim, const sj_journal_data *journal,
                               bool *announced, sj_error *error)
{
    const sj_spool_options options = {.directory = claim->spool_directory};
    sj_spool *spool = NULL;
    *announced = journal->ns_per_tick > 0;
    if (*announced) {
        SJ_TRY(sj_spool_open(&options, &spool, error));
        *announced = sj_spool_was_used(spool);
        sj_spool_close(spool);
    }
    return SJ_OK;
}

static sj_status recover_session(recovery_state *recovery, const sj_recovery_claim *claim,
                                 sj_recovery_result *result, sj_error *error)
{
    SJ_TRY(open_pipeline(recovery, claim, error));
    SJ_TRY(adopt_processes(recovery, claim->runtime_directory, error));
    sj_drain_finish(recovery->drain);
    return end_session(recovery, result, error);
}

sj_status sj_recovery_session(const sj_recovery_claim *claim, sj_recovery_result *result,
                              sj_error *error)
{
    recovery_state recovery = {.journal = {.fd = -1}};
    *result = (sj_recovery_result){0};
    if (claim->runtime_directory[0] != '/') {
        return SJ_OK;
    }
    sj_status status = sj_journal_open(claim->runtime_directory, &recovery.journal, error);
    if (status == SJ_ENOTFOUND) {
        sj_directory_remove(claim->runtime_directory);
        return SJ_OK;
    }
    SJ_TRY(status);
    bool announced = false;
    status = was_announced(claim, recovery.journal.data, &announced, error);
    if (status == SJ_OK && announced) {
        status = recover_session(&recovery, claim, result, error);
    }
    close_pipeline(&recovery, status);
    if (status == SJ_OK) {
        sj_directory_remove(claim->runtime_directory);
    }
    return status;
}

sj_status sj_recovery_all(const char *spool_root, unsigned *count, sj_error *error)
{
    sj_status worst = SJ_OK;
    DIR *directory = opendir(spool_root);
    *count = 0;
    if (directory == NULL) {
        return errno == ENOENT ? SJ_OK
                               : sj_fail(error, errno == ENOMEM ? SJ_ENOMEM : SJ_EIO, "%s: %s",
                                         spool_root, strerror(errno));
    }
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        char path[PATH_MAX];
        sj_recovery_claim claim;
        sj_recovery_result result;
        const int written = snprintf(path, sizeof(path), "%s/%s", spool_root, entry->d_name);
        if (!sj_recovery_is_claim_name(entry->d_name) || written < 0 ||
            (size_t)written >= sizeof(path) || sj_recovery_claim_session(path, &claim) != SJ_OK) {
            continue;
        }
        const sj_status status = sj_recovery_session(&claim, &result, error);
        worst = status != SJ_OK ? status : worst;
        *count += result.recovered;
        sj_recovery_release(&claim, false);
    }
    closedir(directory);
    return worst;
}
