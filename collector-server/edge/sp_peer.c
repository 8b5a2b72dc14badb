#include "collector-server/edge/sp_peer.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 16 << 10, GROWTH = 4, WORD = 4, LAST_WORD_BIT = 0x80 };

const uint8_t sj_sp_rep_greeting[SJ_SP_PEER_GREETING_BYTES] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};
static const uint8_t req_greeting[SJ_SP_PEER_GREETING_BYTES] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};

/* Moves bytes from the front of `bytes` to the prefix until it has `wanted` bytes. Returns true
 * when it has. */
static bool fill_prefix(sj_sp_peer *peer, size_t wanted, sj_slice *bytes)
{
    const size_t missing = wanted - peer->prefix_bytes;
    const size_t part = missing < bytes->size ? missing : bytes->size;
    memcpy(peer->prefix + peer->prefix_bytes, bytes->data, part);
    peer->prefix_bytes = (uint8_t)(peer->prefix_bytes + part);
    bytes->data += part;
    bytes->size -= part;
    return part == missing;
}

/* Checks the greeting. Fails at the first wrong byte, because an HTTP client would wait for an
 * answer after its first line. */
static sj_sp_result greet(sj_sp_peer *peer, sj_slice *bytes)
{
    const bool whole = fill_prefix(peer, SJ_SP_PEER_GREETING_BYTES, bytes);
    if (memcmp(peer->prefix, req_greeting, peer->prefix_bytes) != 0) {
        return SJ_SP_BROKEN;
    }
    if (whole) {
        peer->is_greeted = true;
        peer->prefix_bytes = 0;
    }
    return SJ_SP_MORE;
}

static sj_sp_result begin_message(sj_sp_peer *peer, const sj_sp_limits *limits)
{
    uint64_t size = 0;
    for (unsigned i = peer->is_ipc; i < 8u + peer->is_ipc; i++) {
        size = size << 8 | peer->prefix[i];
    }
    if ((peer->is_ipc && peer->prefix[0] != 1) || size < WORD || size > limits->message_bytes) {
        return SJ_SP_BROKEN;
    }
    peer->size = (size_t)size;
    peer->is_skipping = peer->size > limits->kept_bytes;
    return SJ_SP_MORE;
}

static sj_sp_result grow(sj_sp_peer *peer, sj_byte_account *account, bool may_exceed)
{
    const size_t most = peer->is_skipping ? SJ_SP_CUT_BYTES : peer->size;
    size_t capacity = peer->got < FIRST_CAPACITY / 2 ? FIRST_CAPACITY : peer->got * GROWTH;
    capacity = capacity < most ? capacity : most;
    const size_t more = capacity - peer->capacity;
    const bool fits = account->used < account->limit && more <= account->limit - account->used;
    if (!fits && !may_exceed) {
        return SJ_SP_NO_SPACE;
    }
    uint8_t *moved = realloc(peer->message, capacity);
    if (moved == NULL) {
        return SJ_SP_BROKEN;
    }
    account->used += more;
    peer->message = moved;
    peer->capacity = capacity;
    return SJ_SP_MORE;
}

/* Adds bytes to the message that has begun. */
static sj_sp_result fill_message(sj_sp_peer *peer, sj_byte_account *account, bool may_exceed,
                                 sj_slice *bytes)
{
    const bool is_cut = peer->is_skipping && peer->got >= SJ_SP_CUT_BYTES;
    if (!is_cut && peer->got == peer->capacity) {
        const sj_sp_result grown = grow(peer, account, may_exceed);
        if (grown != SJ_SP_MORE) {
            return grown;
        }
    }
    const size_t missing = (is_cut ? peer->size : peer->capacity) - peer->got;
    const size_t part = missing < bytes->size ? missing : bytes->size;
    if (!is_cut) {
        memcpy(peer->message + peer->got, bytes->data, part);
    }
    peer->got += part;
    bytes->data += part;
    bytes->size -= part;
    return peer->got == peer->size ? SJ_SP_MESSAGE : SJ_SP_MORE;
}

sj_sp_result sj_sp_peer_feed(sj_sp_peer *peer, const sj_sp_limits *limits, sj_byte_account *account,
                             bool may_exceed, sj_slice *bytes)
{
    sj_sp_result result = SJ_SP_MORE;
    while (bytes->size > 0 && result == SJ_SP_MORE) {
        if (!peer->is_greeted) {
            result = greet(peer, bytes);
        } else if (peer->size != 0) {
            result = fill_message(peer, account, may_exceed, bytes);
        } else if (fill_prefix(peer, 8u + peer->is_ipc, bytes)) {
            result = begin_message(peer, limits);
        }
    }
    return result;
}

uint8_t *sj_sp_peer_reserve(sj_sp_peer *peer, sj_byte_account *account, bool may_exceed,
                            size_t *space_bytes, sj_sp_result *result)
{
    *result = SJ_SP_MORE;
    if (peer->size - peer->got <= FIRST_CAPACITY || peer->is_skipping) {
        return NULL;
    }
    if (peer->got == peer->capacity) {
        *result = grow(peer, account, may_exceed);
        if (*result != SJ_SP_MORE) {
            return NULL;
        }
    }
    *space_bytes = peer->capacity - peer->got;
    return peer->message + peer->got;
}

sj_sp_result sj_sp_peer_commit(sj_sp_peer *peer, size_t bytes)
{
    peer->got += bytes;
    return peer->got == peer->size ? SJ_SP_MESSAGE : SJ_SP_MORE;
}

/* Returns the length of the way back, or 0 if it does not end within its limits. */
static size_t way_back_of(const uint8_t *message, size_t size)
{
    for (size_t at = 0; at + WORD <= size && at + WORD <= SJ_SP_WAY_BACK_MAX_BYTES; at += WORD) {
        if ((message[at] & LAST_WORD_BIT) != 0) {
            return at + WORD;
        }
    }
    return 0;
}

sj_status sj_sp_peer_pop(sj_sp_peer *peer, sj_sp_whole *whole)
{
    const size_t kept = peer->is_skipping ? peer->capacity : peer->size;
    const size_t way_back = way_back_of(peer->message, kept);
    if (way_back == 0) {
        return SJ_ECORRUPT;
    }
    *whole = (sj_sp_whole){.memory = peer->message,
                           .charged = peer->capacity,
                           .way_back_bytes = way_back,
                           .is_cut = peer->is_skipping,
                           .body = {.data = peer->message + way_back,
                                    .size = peer->is_skipping ? 0 : peer->size - way_back}};
    *peer = (sj_sp_peer){.is_ipc = peer->is_ipc, .is_greeted = true};
    return SJ_OK;
}

void sj_sp_peer_discard(sj_sp_peer *peer, sj_byte_account *account)
{
    free(peer->message);
    account->used -= peer->capacity;
    *peer = (sj_sp_peer){.is_ipc = peer->is_ipc, .is_greeted = peer->is_greeted};
}

bool sj_sp_peer_is_within(const sj_sp_peer *peer)
{
    return peer->prefix_bytes != 0 || peer->size != 0;
}

size_t sj_sp_reply_prefix(bool is_ipc, uint64_t rest_bytes, uint8_t prefix[SJ_SP_PEER_PREFIX_BYTES])
{
    prefix[0] = 1;
    for (unsigned i = 0; i < 8; i++) {
        prefix[i + is_ipc] = (uint8_t)(rest_bytes >> (56 - 8 * i));
    }
    return 8u + is_ipc;
}
