/* What was written to a database since the log began, and what of it is on the disk when power
 * goes. fault_vfs.h notes it. One thread. */
#ifndef SJ_TESTS_SUPPORT_POWER_LOG_H
#define SJ_TESTS_SUPPORT_POWER_LOG_H

#include <stddef.h>
#include <stdint.h>

typedef enum power_file {
    POWER_DATABASE,
    POWER_WAL,
    POWER_JOURNAL,
    POWER_FILES,
    POWER_NONE
} power_file;

typedef enum power_loss {
    LOSS_DROPS,   /* nothing that no sync followed is on the disk */
    LOSS_KEEPS,   /* everything is */
    LOSS_SHUFFLES /* any sectors of it are, written in any order */
} power_loss;

/* power_log_begin begins a log; the one of before is forgotten. Only one database may be written
 * while it lasts, from its first byte on. */
void power_log_begin(void);

/* power_log_end ends it; power_log_count returns how many entries it has. */
void power_log_end(void);
uint64_t power_log_count(void);

/* power_log_lose makes `path`, `path`-wal and `path`-journal of what is on the disk when power goes
 * after the first `entries` of the log. Of these the last `lies` syncs did nothing. */
void power_log_lose(const char *path, uint64_t entries, power_loss loss, unsigned lies,
                    uint64_t seed);

/* power_log_write notes bytes, which are copied; power_log_truncate and power_log_sync the like.
 * Nothing is noted of POWER_NONE. */
void power_log_write(power_file file, uint64_t at, const void *bytes, size_t size);
void power_log_truncate(power_file file, uint64_t size);
void power_log_sync(power_file file);

/* power_log_delete notes that a file is gone; its name says which it was. */
void power_log_delete(const char *name);

#endif
