#include "agent/control/salvage.h"

#include "agent/control/clock.h"
#include "agent/control/device.h"
#include "agent/control/directories.h"
#include "agent/control/drain.h"
#include "agent/control/flight.h"
#include "agent/control/profiler.h"
#include "agent/control/session_frames.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char suffix[] = ".to";

enum { SUFFIX_BYTES = sizeof(suffix) - 1 };

bool sj_salvage_is_claim_name(const char *name)
{
    return strlen(name) == SJ_SESSION_TEXT_BYTES - 1 + SUFFIX_BYTES &&
           strspn(name, "0123456789abcdef") == SJ_SESSION_TEXT_BYTES - 1 &&
           strcmp(name + SJ_SESSION_TEXT_BYTES - 1, suffix) == 0;
}

sj_status sj_salvage_claim_session(const char *path, sj_salvage_claim *claim)
{
    char text[sizeof(claim->destination) + sizeof(claim->runtime_directory)] = "";
    *claim = (sj_salvage_claim){.fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)};
    if (claim->fd < 0 || strlen(path) >= sizeof(claim->path)) {
        sj_salvage_release(claim, false);
        return SJ_ENOTFOUND;
    }
    if (flock(claim->fd, LOCK_EX | LOCK_NB) != 0) {
        sj_salvage_release(claim, false);
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

void sj_salvage_release(sj_salvage_claim *claim, bool delivered)
{
    if (delivered) {
        unlink(claim->path);
    }
    if (claim->fd >= 0) {
        close(claim->fd);
    }
    *claim = (sj_salvage_claim){.fd = -1};
}

/* The rooms of a recording as far as its end needs them. */
typedef struct rescue {
    sj_journal journal;
    sj_spool *spool;
    sj_emitter *emitter;
    sj_roster *roster;
    sj_drain *drain;
    sj_device device;
    sj_selection selection;
    sj_flight *flight; /* NULL: not in flight mode */
} rescue;

static sj_status remember(void *context, sj_frame_type type, sj_slice header, sj_slice payload)
{
    return sj_emitter_remember(context, type, header, payload);
}

/* open_flight takes over the sealed blocks: they become a child session, as at a crash. */
static sj_status open_flight(rescue *rooms, const sj_salvage_claim *claim)
{
    sj_session_id child;
    const sj_flight_options options = {.emitter = rooms->emitter,
                                       .before_ticks = UINT64_MAX,
                                       .max_bytes = UINT64_MAX,
                                       .directory = claim->runtime_directory};
    const sj_status status =
        sj_control_store_read(claim->runtime_directory, rooms->emitter, remember);
    if (status != SJ_OK) {
        return status == SJ_ENOTFOUND ? SJ_OK : status;
    }
    sj_emitter_keep_threads(rooms->emitter, true);
    SJ_TRY(sj_flight_new(&options, &rooms->flight));
    SJ_TRY(sj_flight_load(rooms->flight, claim->runtime_directory));
    return sj_flight_dump(rooms->flight, sj_clock_ticks(), "the recorder was killed", &child);
}

/* recover_mode brings back what the recorder held besides the arenas. */
static sj_status recover_mode(rescue *rooms, const sj_salvage_claim *claim, sj_error *error)
{
    sj_status status = SJ_OK;
    if (rooms->journal.data->mode == SJ_POLICY_PROFILE) {
        const sj_profiler_options profiler = {.emitter = rooms->emitter,
                                              .journal = &rooms->journal,
                                              .runtime_directory = claim->runtime_directory};
        status = sj_profiler_recover(&profiler);
    } else if (rooms->journal.data->mode == SJ_POLICY_FLIGHT) {
        status = open_flight(rooms, claim);
    }
    return status == SJ_OK ? SJ_OK
                           : sj_fail(error, status, "%s: what the recorder held cannot be used: %s",
                                     claim->runtime_directory, sj_status_text(status));
}

static sj_status open_rooms(rescue *rooms, const sj_salvage_claim *claim, sj_error *error)
{
    const sj_spool_options spool = {.directory = claim->spool_directory};
    SJ_TRY(sj_device_read(&rooms->device, error));
    SJ_TRY(sj_spool_open(&spool, &rooms->spool, error));
    const sj_emitter_options emitter = {
        .session = rooms->journal.data->session, .spool = rooms->spool, .journal = &rooms->journal};
    if (sj_emitter_new(&emitter, &rooms->emitter) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    sj_emitter_resume(rooms->emitter);
    SJ_TRY(recover_mode(rooms, claim, error));
    const sj_roster_options roster = {.emitter = rooms->emitter,
                                      .selection = &rooms->selection,
                                      .runtime_directory = claim->runtime_directory};
    if (sj_roster_new(&roster, &rooms->roster) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_drain_options drain = {.emitter = rooms->emitter,
                                    .roster = rooms->roster,
                                    .runtime_directory = claim->runtime_directory,
                                    .journal = &rooms->journal,
                                    .flight = rooms->flight,
                                    .salvage = true};
    return sj_drain_start(&drain, &rooms->drain, error);
}

static void close_rooms(rescue *rooms)
{
    sj_drain_free(rooms->drain);
    sj_flight_free(rooms->flight);
    sj_roster_free(rooms->roster);
    sj_emitter_free(rooms->emitter);
    if (rooms->spool != NULL) {
        sj_spool_close(rooms->spool);
    }
    sj_journal_close(&rooms->journal);
}

/* adopt_processes hands those over whose arena is still there: the others had ended before. */
static sj_status adopt_processes(rescue *rooms, const char *runtime_directory, sj_error *error)
{
    const sj_journal_data *journal = rooms->journal.data;
    const uint32_t count = journal->process_count;
    for (uint32_t i = 0; i < count; i++) {
        sj_journal_process process = journal->processes[i];
        char path[PATH_MAX + SJ_JOURNAL_NAME_BYTES + 2];
        process.arena_name[sizeof(process.arena_name) - 1] = '\0';
        sj_status status = sj_roster_adopt_process(rooms->roster, &process);
        snprintf(path, sizeof(path), "%s/%s", runtime_directory, process.arena_name);
        if (status == SJ_OK && strchr(process.arena_name, '/') == NULL && access(path, F_OK) == 0) {
            status =
                sj_drain_add(rooms->drain, process.number, (pid_t)process.pid, process.arena_name);
        }
        if (status != SJ_OK) {
            return sj_fail(error, status, "%s: the journal cannot be used: %s", runtime_directory,
                           sj_status_text(status));
        }
    }
    return SJ_OK;
}

static sj_status end_session(rescue *rooms, sj_salvage_result *result, sj_error *error)
{
    sj_drain_counters drain;
    sj_emitter_counters emitter;
    sj_drain_get_counters(rooms->drain, &drain);
    sj_emitter_get_counters(rooms->emitter, &emitter);
    const uint64_t lost_calls = emitter.block_lost_calls + emitter.gap_calls;
    sj_session_finish finish = {.how = "lost",
                                .records = emitter.block_events,
                                .calls = emitter.block_calls + lost_calls,
                                .lost_calls = lost_calls,
                                .lost_events = emitter.block_lost_events + emitter.gap_events,
                                .blocks = emitter.blocks};
    sj_clock_take_pair(rooms->journal.data->ns_per_tick, &finish.clock);
    sj_status status = drain.failure;
    if (status == SJ_OK) {
        status = sj_clock_frame_send(rooms->emitter, &rooms->device, &finish.clock);
    }
    if (status == SJ_OK) {
        status = sj_session_end_frame_send(rooms->emitter, &finish);
    }
    if (status == SJ_OK && sj_emitter_retry(rooms->emitter) != 0) {
        status = SJ_EFULL;
    }
    *result = (sj_salvage_result){.salvaged = true, .records = drain.records, .calls = drain.calls};
    return status == SJ_OK ? SJ_OK
                           : sj_fail(error, status, "the session cannot be finished: %s",
                                     sj_status_text(status));
}

static sj_status rescue_session(rescue *rooms, const sj_salvage_claim *claim,
                                sj_salvage_result *result, sj_error *error)
{
    SJ_TRY(open_rooms(rooms, claim, error));
    SJ_TRY(adopt_processes(rooms, claim->runtime_directory, error));
    sj_drain_finish(rooms->drain);
    return end_session(rooms, result, error);
}

sj_status sj_salvage_session(const sj_salvage_claim *claim, sj_salvage_result *result,
                             sj_error *error)
{
    rescue rooms = {.journal = {.fd = -1}};
    *result = (sj_salvage_result){0};
    if (claim->runtime_directory[0] != '/') {
        return SJ_OK;
    }
    sj_status status = sj_journal_open(claim->runtime_directory, &rooms.journal, error);
    if (status == SJ_ENOTFOUND) {
        sj_directory_remove(claim->runtime_directory);
        return SJ_OK;
    }
    SJ_TRY(status);
    /* Without a rate the session was never announced: nobody could read its blocks. */
    if (rooms.journal.data->ns_per_tick > 0) {
        status = rescue_session(&rooms, claim, result, error);
    }
    close_rooms(&rooms);
    if (status == SJ_OK) {
        sj_directory_remove(claim->runtime_directory);
    }
    return status;
}

sj_status sj_salvage_all(const char *spool_root, unsigned *count, sj_error *error)
{
    sj_status worst = SJ_OK;
    DIR *directory = opendir(spool_root);
    *count = 0;
    if (directory == NULL) {
        return errno == ENOENT ? SJ_OK
                               : sj_fail(error, SJ_EIO, "%s: %s", spool_root, strerror(errno));
    }
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        char path[PATH_MAX];
        sj_salvage_claim claim;
        sj_salvage_result result;
        const int written = snprintf(path, sizeof(path), "%s/%s", spool_root, entry->d_name);
        if (!sj_salvage_is_claim_name(entry->d_name) || written < 0 ||
            (size_t)written >= sizeof(path) || sj_salvage_claim_session(path, &claim) != SJ_OK) {
            continue;
        }
        const sj_status status = sj_salvage_session(&claim, &result, error);
        worst = status != SJ_OK ? status : worst;
        *count += result.salvaged;
        sj_salvage_release(&claim, false);
    }
    closedir(directory);
    return worst;
}
