/* Logs all writes to a database, and computes what is on the disk after a power loss. fault_vfs.h
 * adds the entries. Any threads may add entries and count them; one thread does the rest. */
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
    LOSS_DROPS,   /* writes without a later sync are lost */
    LOSS_KEEPS,   /* all writes are on the disk */
    LOSS_SHUFFLES /* any sectors of the unsynced writes are on the disk, written in any sequence */
} power_loss;

/* Begins a log and discards the previous one. Only one database may be written until the log ends,
 * and the log must see its first byte. */
void power_log_begin(void);

/* power_log_end ends the log. power_log_count returns its number of entries. */
void power_log_end(void);
uint64_t power_log_count(void);

/* Creates `path`, `path`-wal and `path`-journal as they are on the disk if power fails after the
 * first `entries` of the log. The last `lies` syncs among these had no effect. */
void power_log_lose(const char *path, uint64_t entries, power_loss loss, unsigned lies,
                    uint64_t seed);

/* power_log_write notes bytes, which it copies. power_log_truncate and power_log_sync note their
 * operation. POWER_NONE: nothing is noted. */
void power_log_write(power_file file, uint64_t at, const void *bytes, size_t size);
void power_log_truncate(power_file file, uint64_t size);
void power_log_sync(power_file file);

/* Notes that a file was deleted. The name tells which file of the database it was. */
void power_log_delete(const char *name);

#endif
