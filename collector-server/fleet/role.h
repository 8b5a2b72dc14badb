/* Roles of those who ask the collector over HTTP. Each role may do everything that the roles before
 * it may do. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_ROLE_H
#define SJ_COLLECTOR_SERVER_FLEET_ROLE_H

#include <stdbool.h>

typedef enum sj_role {
    SJ_ROLE_NONE,     /* no valid token */
    SJ_ROLE_READER,   /* reads sessions by the routes made for that, and by shipped queries */
    SJ_ROLE_ANALYST,  /* also runs their own SQL, which reads all tables */
    SJ_ROLE_OPERATOR, /* also sends commands, sets policies, and marks sessions and findings */
    SJ_ROLE_ADMIN     /* also imports and removes sessions */
} sj_role;

/* Returns "none", "reader", "analyst", "operator" or "admin". */
const char *sj_role_name(sj_role role);

/* Parses the name of a role that a token may have. Returns false for any other text, and for
 * "none". */
bool sj_role_parse(const char *text, sj_role *role);

#endif
