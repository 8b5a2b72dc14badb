/* Says how much of the heap was watched for uses of freed memory. Finding nothing means little if
 * few blocks were watched, so every report about freed memory gives this share. */
#ifndef SJ_COLLECTOR_SERVER_CLI_ZOMBIE_COVERAGE_H
#define SJ_COLLECTOR_SERVER_CLI_ZOMBIE_COVERAGE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* Sums of the view zombie_coverage, and of the objects in zombie_accounts. */
typedef struct sj_zombie_coverage {
    int64_t allocations;
    int64_t guarded;
    int64_t recycled; /* guarded allocations that were freed and whose memory was used again */
    int64_t not_sampled;
    int64_t bad_size;
    int64_t no_block;
    int64_t over_memory;
    int64_t refused;
    int64_t delayed; /* ordinary blocks whose free was delayed */
    int64_t kept;    /* freed objects that were kept */
    int64_t not_kept;
} sj_zombie_coverage;

enum { SJ_ZOMBIE_COVERAGE_BYTES = 512 };

/* Reads the sums of one session, or of all if `session_id` is 0. Returns false if nothing was
 * watched or the database cannot be read. Blocks on the database. */
bool sj_zombie_coverage_read(sqlite3 *database, int64_t session_id, sj_zombie_coverage *coverage);

/* Writes "watched 3 % of 1200 allocations; ..." with each reason and its remedy into `text`, and
 * returns `text`. */
const char *sj_zombie_coverage_text(const sj_zombie_coverage *coverage,
                                    char text[SJ_ZOMBIE_COVERAGE_BYTES]);

/* Returns the percentage of the allocations that were guarded; 0 if there were none. */
double sj_zombie_coverage_percent(const sj_zombie_coverage *coverage);

#endif
