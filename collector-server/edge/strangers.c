/* If there are too many strangers, the oldest is displaced. Refusing the newest would lock valid
 * peers out for as long as hostile peers stay connected. A device says HELLO within a few turns
 * of the loop. It has at least `grace_ms` for that: no connection is accepted while the next
 * stranger to displace is younger.
 *
 * Silent strangers and those that have sent something are in separate lists. The larger list is
 * displaced first. So an attacker that only connects displaces its own connections, and not the
 * valid peers of its address. */
#include "collector-server/edge/edge_internal.h"

void sj_strangers_init(sj_edge *edge)
{
    for (int i = 0; i < SJ_STRANGER_LISTS; i++) {
        edge->strangers[i] = (sj_stranger_list){.oldest = SJ_EDGE_NOBODY, .newest = SJ_EDGE_NOBODY};
    }
}

static sj_stranger_list *list_of(sj_edge *edge, const sj_connection *connection)
{
    return &edge->strangers[connection->is_heard ? SJ_STRANGERS_HEARD : SJ_STRANGERS_SILENT];
}

static void link_last(sj_edge *edge, sj_connection *connection)
{
    sj_stranger_list *list = list_of(edge, connection);
    connection->older = list->newest;
    connection->newer = SJ_EDGE_NOBODY;
    if (list->newest == SJ_EDGE_NOBODY) {
        list->oldest = connection->index;
    } else {
        edge->slots[list->newest].newer = connection->index;
    }
    list->newest = connection->index;
    list->count++;
}

static void unlink_from(sj_edge *edge, const sj_connection *connection)
{
    sj_stranger_list *list = list_of(edge, connection);
    if (connection->older == SJ_EDGE_NOBODY) {
        list->oldest = connection->newer;
    } else {
        edge->slots[connection->older].newer = connection->newer;
    }
    if (connection->newer == SJ_EDGE_NOBODY) {
        list->newest = connection->older;
    } else {
        edge->slots[connection->newer].older = connection->older;
    }
    list->count--;
}

void sj_strangers_add(sj_edge *edge, sj_connection *connection)
{
    connection->is_stranger = true;
    link_last(edge, connection);
    edge->counters.strangers++;
    edge->per_bucket[connection->bucket]++;
}

void sj_strangers_mark_heard(sj_edge *edge, sj_connection *connection)
{
    if (connection->is_heard) {
        return;
    }
    if (connection->is_stranger) {
        unlink_from(edge, connection);
    }
    connection->is_heard = true;
    if (connection->is_stranger) {
        link_last(edge, connection);
    }
}

void sj_strangers_remove(sj_edge *edge, sj_connection *connection)
{
    if (!connection->is_stranger) {
        return;
    }
    connection->is_stranger = false;
    unlink_from(edge, connection);
    edge->counters.strangers--;
    edge->per_bucket[connection->bucket]--;
}

bool sj_strangers_are_full(const sj_edge *edge)
{
    return edge->counters.strangers >= edge->limits.strangers ||
           edge->counters.open >= edge->limits.connections;
}

/* Returns the oldest stranger of a list whose address is over its limit, or NULL. */
static sj_connection *find_in_excess(sj_edge *edge, const sj_stranger_list *list)
{
    for (uint32_t i = list->oldest; i != SJ_EDGE_NOBODY; i = edge->slots[i].newer) {
        const sj_connection *connection = &edge->slots[i];
        if (!connection->reader.is_ipc &&
            edge->per_bucket[connection->bucket] > edge->limits.strangers_per_address) {
            return &edge->slots[i];
        }
    }
    return NULL;
}

sj_connection *sj_strangers_next_to_go(sj_edge *edge)
{
    const sj_stranger_list *lists = edge->strangers;
    const int larger = lists[SJ_STRANGERS_SILENT].count >= lists[SJ_STRANGERS_HEARD].count
                           ? SJ_STRANGERS_SILENT
                           : SJ_STRANGERS_HEARD;
    const int order[SJ_STRANGER_LISTS] = {larger, SJ_STRANGERS_HEARD - larger};
    for (int i = 0; i < SJ_STRANGER_LISTS; i++) {
        sj_connection *found = find_in_excess(edge, &lists[order[i]]);
        if (found != NULL) {
            return found;
        }
    }
    const uint32_t oldest = lists[larger].oldest;
    return oldest != SJ_EDGE_NOBODY ? &edge->slots[oldest] : NULL;
}

bool sj_strangers_have_slot(sj_edge *edge)
{
    if (!sj_strangers_are_full(edge)) {
        return true;
    }
    const sj_connection *victim = sj_strangers_next_to_go(edge);
    return victim != NULL && edge->now_ms - victim->since_ms >= edge->limits.grace_ms;
}
