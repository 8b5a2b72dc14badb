/* The space that a spool may use: its budgets, and the reserve of the disk. */
#include "agent/uplink/spool_state.h"

#include <sys/statvfs.h>

enum {
    FLOWING_BYTES = 4 << 20, /* Most unacknowledged bytes on a disk without its reserve. */
    ANNOUNCED_SHARE = 8,     /* Announcements may use 1/8 of quota, budget and disk. */
    RESERVED_SHARE = 8,      /* Share of a small disk that is left free as its reserve. */
    DEFAULT_RESERVE_BYTES = 64 << 20
};

static uint64_t reserve_on(const sj_spool *spool, const struct statvfs *disk)
{
    const uint64_t share = (uint64_t)disk->f_blocks * disk->f_frsize / RESERVED_SHARE;
    const uint64_t suited = share < DEFAULT_RESERVE_BYTES ? share : DEFAULT_RESERVE_BYTES;
    return spool->reserve_bytes != 0 ? spool->reserve_bytes : suited;
}

static uint64_t least(uint64_t left, uint64_t right)
{
    return left < right ? left : right;
}

uint64_t sj_spool_most_announced(const sj_spool *spool)
{
    struct statvfs disk;
    uint64_t most = spool->budget_bytes / ANNOUNCED_SHARE;
    if (spool->quota.budget_bytes != 0) {
        most = least(most, spool->quota.budget_bytes / ANNOUNCED_SHARE);
    }
    if (statvfs(spool->directory, &disk) == 0) {
        const uint64_t size = (uint64_t)disk.f_blocks * disk.f_frsize;
        const uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
        const uint64_t reserve = reserve_on(spool, &disk);
        const uint64_t free_bytes = left > reserve ? left - reserve : 0;
        most = least(most, least(size / ANNOUNCED_SHARE, spool->announced.bytes + free_bytes));
    }
    return most;
}

static uint64_t bytes_on_disk(const sj_spool *spool)
{
    uint64_t sum = spool->aside.bytes + spool->announced.bytes;
    for (size_t i = 0; i < spool->segment_count; ++i) {
        sum += spool->segments[i].size;
    }
    return sum;
}

/* True for blocks, profiles and reports, not for frames that describe them. The budgets apply only
 * to the former, because the end of a session must fit even if its calls did not. */
static bool is_bulk(sj_slice frame)
{
    sj_reader reader = sj_reader_of(frame.data, frame.size);
    (void)sj_read_u32(&reader); /* Magic. */
    (void)sj_read_u8(&reader);
    (void)sj_read_u8(&reader);
    const uint16_t type = sj_read_u16(&reader);
    return type == SJ_FRAME_BLOCK || type == SJ_FRAME_PROFILE || type == SJ_FRAME_REPORT;
}

sj_status sj_spool_check_space(sj_spool *spool, sj_slice frame, sj_error *error)
{
    const size_t size = frame.size;
    struct statvfs disk;
    if (!is_bulk(frame)) {
        return SJ_OK;
    }
    if (sj_spool_quota_left(&spool->quota, spool->directory, bytes_on_disk(spool),
                            spool->segment_bytes) < size) {
        return sj_fail(error, SJ_EFULL, "the spools beside %s have reached their %llu bytes",
                       spool->directory, (unsigned long long)spool->quota.budget_bytes);
    }
    if (spool->counters.pending_bytes + size > spool->budget_bytes) {
        return sj_fail(error, SJ_EFULL, "the spool %s has reached its %llu bytes", spool->directory,
                       (unsigned long long)spool->budget_bytes);
    }
    if (statvfs(spool->directory, &disk) != 0) {
        return SJ_OK;
    }
    const uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    const bool is_flowing =
        spool->counters.pending_bytes + size <= FLOWING_BYTES && left >= 2 * FLOWING_BYTES + size;
    if (left < reserve_on(spool, &disk) + size && !is_flowing) {
        return sj_fail(error, SJ_EFULL, "the disk of the spool %s is full", spool->directory);
    }
    return SJ_OK;
}
