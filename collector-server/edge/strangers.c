/* Strangers by age. When there are too many the oldest goes: to refuse the newest would keep good
 * peers out for as long as hostile ones hold their places. A device that means it says HELLO within
 * a few turns; `grace_ms` is what it has at least, as nobody is accepted while all are younger. */
#include "collector-server/edge/edge_internal.h"

void sj_strangers_add(sj_edge *edge, sj_connection *connection)
{
    connection->is_stranger = true;
    connection->older = edge->newest;
    connection->newer = SJ_EDGE_NOBODY;
    if (edge->newest == SJ_EDGE_NOBODY) {
        edge->oldest = connection->index;
    } else {
        edge->slots[edge->newest].newer = connection->index;
    }
    edge->newest = connection->index;
    edge->counters.strangers++;
    edge->per_bucket[connection->bucket]++;
}

void sj_strangers_remove(sj_edge *edge, sj_connection *connection)
{
    if (!connection->is_stranger) {
        return;
    }
    connection->is_stranger = false;
    if (connection->older == SJ_EDGE_NOBODY) {
        edge->oldest = connection->newer;
    } else {
        edge->slots[connection->older].newer = connection->newer;
    }
    if (connection->newer == SJ_EDGE_NOBODY) {
        edge->newest = connection->older;
    } else {
        edge->slots[connection->newer].older = connection->older;
    }
    edge->counters.strangers--;
    edge->per_bucket[connection->bucket]--;
}

bool sj_strangers_are_full(const sj_edge *edge)
{
    return edge->counters.strangers >= edge->limits.strangers ||
           edge->counters.open >= edge->limits.connections;
}

sj_connection *sj_strangers_next_to_go(sj_edge *edge)
{
    for (uint32_t i = edge->oldest; i != SJ_EDGE_NOBODY; i = edge->slots[i].newer) {
        const sj_connection *connection = &edge->slots[i];
        if (!connection->reader.is_ipc &&
            edge->per_bucket[connection->bucket] > edge->limits.strangers_per_address) {
            return &edge->slots[i];
        }
    }
    return edge->oldest != SJ_EDGE_NOBODY ? &edge->slots[edge->oldest] : NULL;
}

bool sj_strangers_have_room(sj_edge *edge)
{
    if (!sj_strangers_are_full(edge)) {
        return true;
    }
    const sj_connection *victim = sj_strangers_next_to_go(edge);
    return victim != NULL && edge->now_ms - victim->since_ms >= edge->limits.grace_ms;
}
