/* Groups peer addresses into buckets, so that limits can count requests per peer. */
#ifndef SJ_PROTO_BASE_ADDRESS_BUCKET_H
#define SJ_PROTO_BASE_ADDRESS_BUCKET_H

#include <stdint.h>
#include <string.h>

/* Returns a bucket below `buckets` for an IPv4 address (`size` 4) or an IPv6 address (`size` 16).
 * Only the first 8 bytes count, so all addresses of an IPv6 /64 network share a bucket. An
 * IPv4-mapped IPv6 address (::ffff:192.0.2.1, RFC 4291, 2.5.5.2) has the bucket of its IPv4
 * address. Unrelated addresses may share a bucket by chance; this only makes a limit stricter.
 * Thread-safe. Does not block. */
static inline uint32_t sj_address_bucket(const void *address, size_t size, uint32_t buckets)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    uint64_t key = 0;
    if (size > sizeof(mapped) && memcmp(address, mapped, sizeof(mapped)) == 0) {
        memcpy(&key, (const uint8_t *)address + sizeof(mapped), size - sizeof(mapped));
    } else {
        memcpy(&key, address, size < sizeof(key) ? size : sizeof(key));
    }
    /* The multiplication moves bits upwards only, so the high half is mixed into the low one
     * first */
    key ^= key >> 32;
    return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 40) % buckets;
}

#endif
