#include "collector-server/import/perfetto_tracks.h"

#include "collector-server/import/proto_fields.h"
#include "proto/base/array.h"

#include <stdlib.h>

enum {
    MOST_PARENTS = 16,
    /* fields of TrackDescriptor */
    UUID = 1,
    NAME = 2,
    PROCESS = 3,
    THREAD = 4,
    PARENT = 5,
    STATIC_NAME = 10
};

void sj_perfetto_tracks_deinit(sj_perfetto_tracks *tracks)
{
    for (size_t i = 0; i < tracks->sequence_count; i++) {
        free(tracks->sequences[i].clocks);
    }
    for (size_t i = 0; i < tracks->track_count; i++) {
        free(tracks->tracks[i].name);
    }
    free(tracks->sequences);
    free(tracks->tracks);
    sj_hash_map_deinit(&tracks->by_sequence);
    sj_hash_map_deinit(&tracks->by_uuid);
    *tracks = (sj_perfetto_tracks){0};
}

sj_status sj_perfetto_sequence_find(sj_perfetto_tracks *tracks, uint64_t id,
                                    sj_perfetto_sequence **sequence)
{
    const sj_hash_entry *known = sj_hash_map_find(&tracks->by_sequence, id, 1);
    if (known != NULL) {
        *sequence = &tracks->sequences[known->first];
        return SJ_OK;
    }
    if (tracks->sequence_count >= SJ_PERFETTO_SEQUENCES) {
        return SJ_ELIMIT;
    }
    SJ_TRY(sj_array_reserve(&tracks->sequences, &tracks->sequence_capacity, tracks->sequence_count,
                            1, sizeof(*tracks->sequences)));
    SJ_TRY(sj_hash_map_put(
        &tracks->by_sequence,
        &(sj_hash_entry){.key = id, .sub = 1, .first = (uint32_t)tracks->sequence_count}));
    *sequence = &tracks->sequences[tracks->sequence_count++];
    **sequence = (sj_perfetto_sequence){.generation = ++tracks->generations};
    return SJ_OK;
}

void sj_perfetto_sequence_clear(sj_perfetto_tracks *tracks, sj_perfetto_sequence *sequence)
{
    free(sequence->clocks);
    *sequence = (sj_perfetto_sequence){.generation = ++tracks->generations};
}

static sj_perfetto_clock *find_clock(sj_perfetto_sequence *sequence, uint64_t id)
{
    const uint64_t at = id - SJ_PERFETTO_FIRST_CLOCK;
    return sequence->clocks != NULL && at < SJ_PERFETTO_CLOCKS ? &sequence->clocks[at] : NULL;
}

/* Reads one clock of a snapshot. `at_ns` is the time of the trace at the snapshot. */
static void set_clock(sj_perfetto_sequence *sequence, const uint64_t numbers[5], uint64_t at_ns)
{
    sj_perfetto_clock *clock = find_clock(sequence, numbers[1]);
    if (clock != NULL) {
        *clock = (sj_perfetto_clock){.at = numbers[2],
                                     .at_ns = at_ns,
                                     .unit_ns = numbers[4] != 0 ? numbers[4] : 1,
                                     .is_incremental = numbers[3] != 0,
                                     .is_set = true};
    }
}

sj_status sj_perfetto_clocks_read(sj_perfetto_sequence *sequence, sj_slice snapshot)
{
    uint64_t at_ns = 0;
    if (sequence->clocks == NULL) {
        sequence->clocks = calloc(SJ_PERFETTO_CLOCKS, sizeof(*sequence->clocks));
    }
    if (sequence->clocks == NULL) {
        return SJ_ENOMEM;
    }
    /* The clocks of all writers come first, in the first pass; they count ns. */
    for (int pass = 0; pass < 2; pass++) {
        sj_reader message = sj_proto_message(snapshot);
        sj_proto_field field;
        while (sj_proto_next(&message, &field)) {
            uint64_t numbers[5] = {0};
            if (field.number != 1 || !field.is_bytes) {
                continue;
            }
            if (!sj_proto_numbers(field.bytes, numbers, 5)) {
                return SJ_ECORRUPT;
            }
            if (pass == 0 && numbers[1] < SJ_PERFETTO_FIRST_CLOCK && at_ns == 0) {
                at_ns = numbers[2];
            } else if (pass == 1) {
                set_clock(sequence, numbers, at_ns);
            }
        }
        if (message.bad) {
            return SJ_ECORRUPT;
        }
    }
    return SJ_OK;
}

uint64_t sj_perfetto_time(sj_perfetto_sequence *sequence, uint64_t clock, uint64_t timestamp)
{
    sj_perfetto_clock *known = find_clock(sequence, clock);
    if (known == NULL || !known->is_set) {
        return timestamp;
    }
    if (!known->is_incremental) {
        return known->at_ns + (timestamp - known->at) * known->unit_ns;
    }
    known->at_ns += timestamp * known->unit_ns;
    return known->at_ns;
}

static sj_status find_track(sj_perfetto_tracks *tracks, uint64_t uuid, sj_perfetto_track **track)
{
    const sj_hash_entry *known = sj_hash_map_find(&tracks->by_uuid, uuid, 1);
    if (known != NULL) {
        *track = &tracks->tracks[known->first];
        return SJ_OK;
    }
    if (tracks->track_count >= SJ_PERFETTO_TRACKS) {
        return SJ_ELIMIT;
    }
    SJ_TRY(sj_array_reserve(&tracks->tracks, &tracks->track_capacity, tracks->track_count, 1,
                            sizeof(*tracks->tracks)));
    SJ_TRY(sj_hash_map_put(
        &tracks->by_uuid,
        &(sj_hash_entry){.key = uuid, .sub = 1, .first = (uint32_t)tracks->track_count}));
    *track = &tracks->tracks[tracks->track_count++];
    **track = (sj_perfetto_track){.uuid = uuid};
    return SJ_OK;
}

static sj_status set_name(sj_perfetto_track *track, sj_slice name)
{
    char *copy = malloc(name.size + 1);
    if (copy == NULL) {
        return SJ_ENOMEM;
    }
    if (name.size != 0) {
        memcpy(copy, name.data, name.size);
    }
    copy[name.size] = '\0';
    free(track->name);
    track->name = copy;
    return SJ_OK;
}

static sj_status read_process(sj_perfetto_track *track, sj_import_log *log, sj_slice process)
{
    uint64_t numbers[2] = {0};
    sj_slice name;
    if (!sj_proto_numbers(process, numbers, 2) || !sj_proto_bytes(process, 6, &name)) {
        return SJ_ECORRUPT;
    }
    track->pid = (int32_t)numbers[1];
    return name.size != 0 ? sj_import_log_name_process(log, track->pid, name) : SJ_OK;
}

static sj_status read_thread(sj_perfetto_track *track, sj_slice thread)
{
    uint64_t numbers[3] = {0};
    sj_slice name;
    if (!sj_proto_numbers(thread, numbers, 3) || !sj_proto_bytes(thread, 5, &name)) {
        return SJ_ECORRUPT;
    }
    track->pid = (int32_t)numbers[1];
    track->tid = (int32_t)numbers[2];
    return name.size != 0 ? set_name(track, name) : SJ_OK;
}

sj_status sj_perfetto_track_read(sj_perfetto_tracks *tracks, sj_import_log *log,
                                 sj_slice descriptor)
{
    uint64_t numbers[PARENT + 1] = {0};
    sj_perfetto_track *track;
    if (!sj_proto_numbers(descriptor, numbers, PARENT + 1)) {
        return SJ_ECORRUPT;
    }
    SJ_TRY(find_track(tracks, numbers[UUID], &track));
    track->parent = numbers[PARENT];
    track->is_described = true;
    sj_reader message = sj_proto_message(descriptor);
    sj_proto_field field;
    while (sj_proto_next(&message, &field)) {
        if (!field.is_bytes) {
            continue;
        }
        if (field.number == THREAD) {
            SJ_TRY(read_thread(track, field.bytes));
        } else if (field.number == PROCESS) {
            SJ_TRY(read_process(track, log, field.bytes));
        } else if (field.number == NAME || field.number == STATIC_NAME) {
            SJ_TRY(set_name(track, field.bytes));
        }
    }
    return track->thread != 0 && track->name != NULL
               ? sj_import_log_name_thread(log, track->thread - 1, sj_import_text(track->name))
               : SJ_OK;
}

/* Returns the process of a track, or that of the nearest parent that has one. */
static int64_t find_pid(const sj_perfetto_tracks *tracks, const sj_perfetto_track *track)
{
    for (int i = 0; track->pid == 0 && track->parent != 0 && i < MOST_PARENTS; i++) {
        const sj_hash_entry *known = sj_hash_map_find(&tracks->by_uuid, track->parent, 1);
        if (known == NULL) {
            break;
        }
        track = &tracks->tracks[known->first];
    }
    return track->pid;
}

sj_status sj_perfetto_track_thread(sj_perfetto_tracks *tracks, sj_import_log *log, uint64_t uuid,
                                   uint32_t *thread)
{
    sj_perfetto_track *track;
    SJ_TRY(find_track(tracks, uuid, &track));
    if (track->thread == 0) {
        /* A track that is not of a thread gets a negative number, which no thread has. */
        const int64_t tid = track->tid != 0 ? track->tid : -(track - tracks->tracks) - 1;
        SJ_TRY(sj_import_log_thread(log, find_pid(tracks, track), tid, thread));
        track->thread = *thread + 1;
        if (track->name != NULL) {
            SJ_TRY(sj_import_log_name_thread(log, *thread, sj_import_text(track->name)));
        }
    }
    *thread = track->thread - 1;
    return SJ_OK;
}
