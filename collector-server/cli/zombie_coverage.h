/* Says how much of the heap was watched for uses of freed memory. Finding nothing means little if
 * few blocks were watched, so every report about freed memory gives this share. */
#ifndef SJ_COLLECTOR_SERVER_CLI_ZOMBIE_COVERAGE_H
#define SJ_COLLECTOR_SERVER_CLI_ZOMBIE_COVERAGE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Sums of the columns of the view zombie_coverage, and of the table zombie_accounts. `allocations`
 * is the sum of guarded, not_sampled, bad_size, no_block, over_memory and refused. */
typedef struct sj_zombie_coverage {
    int64_t allocations;
    int64_t guarded;
    int64_t recycled;    /* guarded allocations that were freed and whose memory was used again */
    int64_t not_sampled; /* an estimate */
    int64_t bad_size;    /* 0 bytes, or more than 1 MiB */
    int64_t no_block;    /* all guarded blocks of the policy were in use */
    int64_t over_memory; /* would have exceeded the memory of the policy */
    int64_t refused;     /* the kernel refused pages */
    int64_t delayed;     /* ordinary blocks whose free was delayed */
    int64_t kept;        /* freed Objective-C objects that were kept */
    int64_t not_kept;    /* freed Objective-C objects that were not kept */
} sj_zombie_coverage;

enum { SJ_ZOMBIE_COVERAGE_BYTES = 512 };

/* Reads the sums of one session, or of all if `session_id` is 0. Returns false if nothing was
 * watched or the database cannot be read. Blocks on the database. */
bool sj_zombie_coverage_read(sqlite3 *database, int64_t session_id, sj_zombie_coverage *coverage);

/* Writes "watched 3 % of 1200 allocations; ..." with each reason and its remedy into `text`, and
 * returns `text`. */
const char *sj_zombie_coverage_text(const sj_zombie_coverage *coverage,
                                    char text[SJ_ZOMBIE_COVERAGE_BYTES]);

/* Writes the sums as a JSON object, whose keys are the names of the members. */
void sj_zombie_coverage_json(FILE *file, const sj_zombie_coverage *coverage);

/* Returns the percentage of the allocations that were guarded; 0 if there were none. */
double sj_zombie_coverage_percent(const sj_zombie_coverage *coverage);

#endif
