/* Feeds the edge with what an unauthenticated peer sends. The first byte selects tcp or ipc, a
 * small or a large account, and the size of the pieces in which the rest arrives. If a message is a
 * whole frame, its credentials are read. */
#include "collector-server/edge/sp_peer.h"
#include "collector-server/ingest/credentials.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { KEPT_BYTES = 4096, MESSAGE_BYTES = 1 << 20, SMALL_ACCOUNT = 512 };

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_whole(const sj_sp_whole *whole)
{
    sj_frame_view frame;
    sj_credentials shown;
    must(whole->way_back_bytes >= 4 && whole->way_back_bytes <= SJ_SP_WAY_BACK_MAX_BYTES);
    must((whole->memory[whole->way_back_bytes - 4] & 0x80) != 0);
    must(!whole->is_cut || whole->body.size == 0);
    if (!whole->is_cut && sj_frame_read(whole->body, &frame) == SJ_OK &&
        sj_credentials_read(&frame, &shown) == SJ_OK) {
        must(shown.device_id.size == 16);
        must(shown.token.size <= frame.header.size);
        must(shown.session_secret.size <= frame.header.size);
    }
}

static bool pop_whole(sj_sp_peer *peer, sj_byte_account *account)
{
    sj_sp_whole whole;
    if (sj_sp_peer_pop(peer, &whole) != SJ_OK) {
        return false;
    }
    check_whole(&whole);
    must(account->used == whole.charged);
    account->used -= whole.charged;
    free(whole.memory);
    return true;
}

/* Feeds one piece. Returns false if the edge would disconnect the peer. */
static bool feed(sj_sp_peer *peer, sj_byte_account *account, sj_slice piece)
{
    const sj_sp_limits limits = {.message_bytes = MESSAGE_BYTES, .kept_bytes = KEPT_BYTES};
    while (piece.size > 0) {
        const size_t before = piece.size;
        const sj_sp_result result = sj_sp_peer_feed(peer, &limits, account, false, &piece);
        must(account->used == peer->capacity && account->used <= account->limit);
        must(peer->capacity <= KEPT_BYTES);
        if (result == SJ_SP_BROKEN || result == SJ_SP_NO_SPACE) {
            return false;
        }
        must(result == SJ_SP_MESSAGE || piece.size == 0);
        must(result == SJ_SP_MESSAGE || piece.size < before);
        if (result == SJ_SP_MESSAGE && !pop_whole(peer, account)) {
            return false;
        }
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    const size_t most = (size_t)(data[0] >> 2) * 16 + 1;
    sj_sp_peer peer = {.is_ipc = (data[0] & 1) != 0};
    sj_byte_account account = {.limit = (data[0] & 2) != 0 ? SMALL_ACCOUNT : 1 << 20};
    bool may_continue = true;
    for (size_t at = 1; at < size && may_continue;) {
        const size_t part = size - at < most ? size - at : most;
        may_continue = feed(&peer, &account, (sj_slice){.data = data + at, .size = part});
        at += part;
    }
    sj_sp_peer_discard(&peer, &account);
    must(account.used == 0);
    return 0;
}
