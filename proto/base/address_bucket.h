/* Addresses of peers, as limits count them. */
#ifndef SJ_PROTO_BASE_ADDRESS_BUCKET_H
#define SJ_PROTO_BASE_ADDRESS_BUCKET_H

#include <stdint.h>
#include <string.h>

/* sj_address_bucket returns a number below `buckets` for the `size` bytes of an IPv4 (4) or IPv6
 * address (16), of which the first 8 count: neighbours in a /64 are one. An IPv4 address that comes
 * as an IPv6 one (::ffff:192.0.2.1, RFC 4291, 2.5.5.2) has its IPv4 address' bucket. Others share a
 * bucket by chance, which only makes limits tighter. Any thread; does not block. */
static inline uint32_t sj_address_bucket(const void *address, size_t size, uint32_t buckets)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    uint64_t key = 0;
    if (size > sizeof(mapped) && memcmp(address, mapped, sizeof(mapped)) == 0) {
        memcpy(&key, (const uint8_t *)address + sizeof(mapped), size - sizeof(mapped));
    } else {
        memcpy(&key, address, size < sizeof(key) ? size : sizeof(key));
    }
    key ^= key >> 32; /* a product has the high bits of a key in its high bits only */
    return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 40) % buckets;
}

#endif
