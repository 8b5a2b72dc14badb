#include "agent/uplink/spool_ack_log.h"

#include "proto/base/crc32c.h"
#include "proto/base/cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LEDGER_MAGIC UINT32_C(0x314c4a53) /* "SJL1" */

enum { SLOT_BYTES = 32, SLOT_SEALED_BYTES = 24 };

static void read_slot(int file, unsigned slot, sj_spool_ack_log *ledger)
{
    uint8_t bytes[SLOT_BYTES];
    if (pread(file, bytes, sizeof(bytes), (off_t)slot * SLOT_BYTES) != SLOT_BYTES) {
        return;
    }
    sj_reader reader = sj_reader_of(bytes, sizeof(bytes));
    const uint32_t magic = sj_read_u32(&reader);
    const uint32_t version = sj_read_u32(&reader);
    const uint64_t sequence = sj_read_u64(&reader);
    const uint64_t watermark = sj_read_u64(&reader);
    const uint32_t crc = sj_read_u32(&reader);
    if (magic != LEDGER_MAGIC || version != 1 || crc != sj_crc32c(0, bytes, SLOT_SEALED_BYTES) ||
        sequence < ledger->sequence) {
        return;
    }
    ledger->sequence = sequence;
    ledger->watermark = watermark;
}

sj_status sj_spool_ack_log_open(const char *path, sj_spool_ack_log *ledger, sj_error *error)
{
    *ledger = (sj_spool_ack_log){.file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    if (ledger->file < 0) {
        return sj_fail(error, SJ_EIO, "cannot open %s: %s", path, strerror(errno));
    }
    if (flock(ledger->file, LOCK_EX | LOCK_NB) != 0) {
        const sj_status status = errno == EWOULDBLOCK ? SJ_EEXIST : SJ_EIO;
        sj_fail(error, status, "cannot lock %s: %s", path,
                status == SJ_EEXIST ? "another process uses this spool" : strerror(errno));
        sj_spool_ack_log_close(ledger);
        return status;
    }
    read_slot(ledger->file, 0, ledger);
    read_slot(ledger->file, 1, ledger);
    return SJ_OK;
}

sj_status sj_spool_ack_log_advance(sj_spool_ack_log *ledger, uint64_t watermark)
{
    uint8_t bytes[SLOT_BYTES] = {0};
    sj_writer writer = sj_writer_of(bytes, sizeof(bytes));
    sj_write_u32(&writer, LEDGER_MAGIC);
    sj_write_u32(&writer, 1);
    sj_write_u64(&writer, ledger->sequence + 1);
    sj_write_u64(&writer, watermark);
    sj_write_u32(&writer, sj_crc32c(0, bytes, SLOT_SEALED_BYTES));
    const off_t at = (off_t)((ledger->sequence + 1) % 2) * SLOT_BYTES;
    if (pwrite(ledger->file, bytes, sizeof(bytes), at) != SLOT_BYTES) {
        return SJ_EIO;
    }
    ledger->sequence++;
    ledger->watermark = watermark;
    return SJ_OK;
}

sj_status sj_spool_ack_log_sync(sj_spool_ack_log *ledger)
{
    return fdatasync(ledger->file) == 0 ? SJ_OK : SJ_EIO;
}

void sj_spool_ack_log_close(sj_spool_ack_log *ledger)
{
    if (ledger->file >= 0) {
        close(ledger->file);
    }
    ledger->file = -1;
}

void sj_spool_ack_log_remove(const char *directory)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%.4000s/acked", directory);
    (void)unlink(path);
}
