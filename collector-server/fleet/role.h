/* Roles of the people and programs that send requests to the collector over HTTP. Each role has all
 * rights of the roles before it. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_ROLE_H
#define SJ_COLLECTOR_SERVER_FLEET_ROLE_H

#include <stdbool.h>

typedef enum sj_role {
    SJ_ROLE_NONE,     /* no valid token */
    SJ_ROLE_READER,   /* reads sessions by the routes made for that, and by shipped queries */
    SJ_ROLE_ANALYST,  /* also runs any SQL that reads, from all tables */
    SJ_ROLE_OPERATOR, /* also sends commands, sets policies, and marks sessions and findings */
    SJ_ROLE_ADMIN     /* also imports and removes sessions */
} sj_role;

/* Returns "none", "reader", "analyst", "operator" or "admin". */
const char *sj_role_name(sj_role role);

/* Parses the name of a role that a token may have. Returns false for any other text, and for
 * "none". */
bool sj_role_parse(const char *text, sj_role *role);

#endif
