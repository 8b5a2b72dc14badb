/* The tracks and clocks of a Perfetto trace (perfetto.c). Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_IMPORT_PERFETTO_TRACKS_H
#define SJ_COLLECTOR_SERVER_IMPORT_PERFETTO_TRACKS_H

#include "collector-server/import/import_log.h"

enum {
    SJ_PERFETTO_SEQUENCES = 64 * 1024,
    SJ_PERFETTO_TRACKS = 64 * 1024,
    SJ_PERFETTO_CLOCKS = 64,      /* clocks of a sequence */
    SJ_PERFETTO_FIRST_CLOCK = 64, /* number of the first of them; others count ns */
};

/* A clock of a sequence. A zeroed one counts ns. */
typedef struct sj_perfetto_clock {
    uint64_t at, at_ns; /* the clock showed `at` at this time of the trace */
    uint64_t unit_ns;
    bool is_incremental; /* times are distances from the time before them */
    bool is_set;
} sj_perfetto_clock;

/* Packets of one writer, which share interned names and defaults. */
typedef struct sj_perfetto_sequence {
    uint32_t generation; /* the names that are valid; a new one begins when the writer says so */
    uint64_t default_track, default_clock;
    sj_perfetto_clock *clocks; /* SJ_PERFETTO_CLOCKS, owned; NULL: none yet */
} sj_perfetto_sequence;

typedef struct sj_perfetto_track {
    uint64_t uuid, parent;
    int64_t pid, tid; /* tid 0: it is not the track of a thread */
    char *name;       /* owned; NULL: unknown */
    uint32_t thread;  /* 1 + thread of the log; 0: no events yet */
    bool is_described;
} sj_perfetto_track;

typedef struct sj_perfetto_tracks {
    sj_perfetto_sequence *sequences;
    size_t sequence_count, sequence_capacity;
    sj_hash_map by_sequence;
    sj_perfetto_track *tracks;
    size_t track_count, track_capacity;
    sj_hash_map by_uuid;
    uint32_t generations;
} sj_perfetto_tracks;

void sj_perfetto_tracks_deinit(sj_perfetto_tracks *tracks);

/* Finds or adds a sequence, borrowed until the next one is added. Returns SJ_ELIMIT if there are
 * too many, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_perfetto_sequence_find(sj_perfetto_tracks *tracks, uint64_t id,
                                                  sj_perfetto_sequence **sequence);

/* Forgets the interned names, clocks and defaults of a sequence. */
void sj_perfetto_sequence_clear(sj_perfetto_tracks *tracks, sj_perfetto_sequence *sequence);

/* Reads a ClockSnapshot. Returns SJ_ECORRUPT if it is damaged, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_perfetto_clocks_read(sj_perfetto_sequence *sequence, sj_slice snapshot);

/* Returns the time in ns of a timestamp, and moves an incremental clock on. */
uint64_t sj_perfetto_time(sj_perfetto_sequence *sequence, uint64_t clock, uint64_t timestamp);

/* Reads a TrackDescriptor. Names threads and processes in the log. Returns SJ_ECORRUPT if it is
 * damaged, SJ_ELIMIT or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_perfetto_track_read(sj_perfetto_tracks *tracks, sj_import_log *log,
                                               sj_slice descriptor);

/* Writes the thread of the log that has the events of a track. Returns SJ_ELIMIT or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_perfetto_track_thread(sj_perfetto_tracks *tracks, sj_import_log *log,
                                                 uint64_t uuid, uint32_t *thread);

#endif
