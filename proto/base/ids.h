/* Identities that all components share. */
#ifndef SJ_PROTO_BASE_IDS_H
#define SJ_PROTO_BASE_IDS_H

#include <stdint.h>

enum { SJ_SESSION_ID_BYTES = 16, SJ_DEVICE_ID_BYTES = 16, SJ_BUILD_ID_MAX_BYTES = 32 };

/* A session id: 128 random bits, printed as 32 lower-case hexadecimal digits. */
typedef struct sj_session_id {
    uint8_t bytes[SJ_SESSION_ID_BYTES];
} sj_session_id;

/* A call id: `stream << 38 | index`. `stream` is the number that the store gave to the stream (one
 * execution stack). `index` numbers the stream's calls in preorder and counts lost calls, too. JSON
 * has call ids as decimal strings, because they exceed 2^53. */
enum { SJ_CALL_INDEX_BITS = 38 };

typedef uint64_t sj_call_id;

static inline sj_call_id sj_call_id_of(uint64_t stream, uint64_t index)
{
    return stream << SJ_CALL_INDEX_BITS | index;
}

#endif
