#include "collector-server/http/route.h"

#include <stdio.h>

extern const sj_route sj_route_health, sj_route_sessions, sj_route_overview, sj_route_functions,
    sj_route_call_tree, sj_route_gaps, sj_route_unhooked, sj_route_events, sj_route_openapi,
    sj_route_metrics, sj_route_healthz, sj_route_devices, sj_route_policies, sj_route_commands,
    sj_route_command, sj_route_command_file, sj_route_timeline, sj_route_zombies, sj_route_zombie,
    sj_route_zombie_frames, sj_route_sql, sj_route_queries, sj_route_calls, sj_route_facets,
    sj_route_export, sj_route_imports;

const sj_route *const sj_routes[] = {
    &sj_route_health,       &sj_route_sessions,      &sj_route_overview,
    &sj_route_functions,    &sj_route_call_tree,     &sj_route_gaps,
    &sj_route_unhooked,     &sj_route_events,        &sj_route_openapi,
    &sj_route_metrics,      &sj_route_healthz,       &sj_route_devices,
    &sj_route_policies,     &sj_route_commands,      &sj_route_command,
    &sj_route_command_file, &sj_route_timeline,      &sj_route_zombies,
    &sj_route_zombie,       &sj_route_zombie_frames, &sj_route_sql,
    &sj_route_queries,      &sj_route_calls,         &sj_route_facets,
    &sj_route_export,       &sj_route_imports,       NULL};

void sj_role_refusal(const sj_visitor *visitor, sj_role role, char *text, size_t size)
{
    snprintf(text, size, "this needs the role %s or a higher one; %s has the role %s",
             sj_role_name(role), visitor->who, sj_role_name(visitor->role));
}

sj_status sj_request_needs(const sj_request *request, sj_role role, sj_error *error)
{
    char text[SJ_LOGIN_WHO_BYTES + 100];
    if (request->visitor.role >= role) {
        return SJ_OK;
    }
    sj_role_refusal(&request->visitor, role, text, sizeof(text));
    return sj_fail(error, SJ_EPERM, "%s", text);
}

const sj_route *sj_route_find(const char *path, int64_t *id)
{
    for (size_t i = 0; sj_routes[i] != NULL; i++) {
        if (sj_route_match(sj_routes[i]->pattern, path, id)) {
            return sj_routes[i];
        }
    }
    return NULL;
}
